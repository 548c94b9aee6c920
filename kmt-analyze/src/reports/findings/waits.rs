//! Tasks that waited for memory.

use kmt_format::kernel::ClockUnit;

use super::Sources;
use super::finding::Finding;
use crate::reports::common::View;
use crate::reports::latency::WaitSums;

/// Rule of a finding of waits.
const THRESHOLD: &str =
    "tasks waited at least 10 ms together in direct reclaim, compaction and reclaim for a cgroup";

/// Rule of a finding of waits where the clock counts ticks of unknown length.
const THRESHOLD_IN_TICKS: &str =
    "tasks waited at least 10,000,000 ticks together in direct reclaim, compaction and reclaim for a cgroup";

/// Shortest time of all waits together, in the clock's unit.
const WAITED_MIN: u64 = 10_000_000;

/// The finding, where reclaim or compaction was recorded. The share is that of the task that waited longest.
pub fn compute(sources: &Sources, length: u64, view: &View) -> Option<Finding> {
    let waits = WaitSums::of(&sources.latency.as_ref()?.latency)?;
    if waits.total < WAITED_MIN {
        return None;
    }
    let threshold = if view.unit == ClockUnit::Ticks { THRESHOLD_IN_TICKS } else { THRESHOLD };
    let finding = Finding::new("wait", threshold, "latency", view, |view| waits.sentence(view.unit));
    let share_of = "length of the trace, of the task that waited longest";
    Some(Finding { time: Some(waits.total), ..finding }.share(waits.longest, length, share_of))
}
