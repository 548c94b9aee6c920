//! The sentence about a recording that ended unexpectedly, and the CPUs whose events end before those of others.

use crate::render::words::{counted, duration, time};
use crate::trace::losses::CpuLosses;
use crate::trace::session::Session;
use kmt_format::kernel::ClockUnit;

/// CPUs that are named.
const NAMED_MAX: usize = 4;
/// How much earlier the events of a CPU end before it is named, in nanoseconds: a recorder writes each CPU once a second.
const EARLIER_NS: u64 = 1_500_000_000;

/// `None`: the recording ended in order.
pub fn sentence(session: &Session<'_>) -> Option<String> {
    let losses = &session.losses;
    if !losses.ended_early {
        return None;
    }
    const UNKNOWN: &str = "events that were still in the ring buffers are unknown";
    let until = |cpu: &CpuLosses| cpu.early_end().and_then(|place| place.after);
    let Some(end) = losses.cpus.iter().filter_map(until).max() else {
        return Some(format!("The recording ended unexpectedly: {UNKNOWN}."));
    };
    let unit = session.unit();
    let is_ns = unit == ClockUnit::Nanoseconds;
    let earlier = losses.cpus.iter().filter_map(|cpu| match until(cpu) {
        Some(until) if !is_ns || end.saturating_sub(until) < EARLIER_NS => None,
        Some(until) => Some(format!("CPU {} ends {} earlier", cpu.cpu, duration(end - until, unit))),
        None => Some(format!("CPU {} has no events", cpu.cpu)),
    });
    let mut earlier: Vec<String> = earlier.collect();
    let more = earlier.len().saturating_sub(NAMED_MAX) as u64;
    earlier.truncate(NAMED_MAX);
    if more > 0 {
        earlier.push(counted(more, "more CPU", "more CPUs"));
    }
    let earlier = if earlier.is_empty() { String::new() } else { format!(" ({})", earlier.join(", ")) };
    Some(format!("The recording ended unexpectedly at {}{earlier}: {UNKNOWN}.", time(end, unit)))
}
