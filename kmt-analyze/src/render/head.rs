//! `trace` and `clock`, which the JSON of every report has.

use kmt_format::kernel::ClockUnit;
use kmt_format::read::{Metadata, Trace};
use serde::Serialize;

use crate::trace::losses::{CpuLosses, Losses};

/// The trace and its clock; each CPU has a row of type `C`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Head<C = CpuHead> {
    /// The trace.
    pub trace: TraceHead<C>,
    /// The trace clock.
    pub clock: ClockHead,
}

/// Events of a trace, and its losses.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TraceHead<C> {
    /// Events in the file.
    pub events: u64,
    /// Events lost while recording, and those of `missing_in_input`.
    pub lost_events: u64,
    /// Of `lost_events`, those lost before the first event of the file: they are before the recorded time, and make
    /// nothing in it uncertain.
    pub lost_events_before_first: u64,
    /// True if more events may be lost: also where the file lacks the kernel's counters of a CPU.
    pub lost_events_is_minimum: bool,
    /// Events that were overwritten by design before `window_begin`: a ring buffer kept the newest. They are not lost.
    pub overwritten_events: u64,
    /// Time from which on the events of all CPUs are in the file, where older ones were overwritten by design: what reports
    /// select if no time is given. `null`: none were.
    pub window_begin: Option<u64>,
    /// Entries that a converted text lacks, by the count in its own header; their CPUs and times are unknown.
    pub missing_in_input: u64,
    /// True if the recording ended unexpectedly: events that were still in the ring buffers are unknown.
    pub ended_unexpectedly: bool,
    /// Number of CPUs.
    pub cpus: usize,
    /// Time of the first event, in the clock's unit; `null`: no event.
    pub first: Option<u64>,
    /// Time of the last event.
    pub last: Option<u64>,
    /// Events and losses of each CPU.
    pub per_cpu: Vec<C>,
}

/// Events of one CPU, and its losses.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CpuHead {
    /// Number of the CPU.
    pub cpu: u32,
    /// Events in the file.
    pub events: u64,
    /// Events lost while recording.
    pub lost_events: u64,
    /// Of `lost_events`, those lost before the first event of the file.
    pub lost_events_before_first: u64,
    /// True if more events may be lost: also where the file lacks the kernel's counters of this CPU.
    pub lost_events_is_minimum: bool,
    /// Where the recording ended unexpectedly: time until which all events of this CPU are in the file or counted as lost;
    /// `null`: it ended in order, or no such time is known.
    pub complete_until: Option<u64>,
}

/// The trace clock.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClockHead {
    /// Name; `null`: not recorded.
    pub name: Option<String>,
    /// Unit of all times: `ns` or `ticks`.
    pub unit: &'static str,
}

/// True if more events than those counted may be lost on a CPU. Without the kernel's counters that is not known: events
/// that it dropped leave no mark.
fn is_minimum_of_cpu(losses: &CpuLosses) -> bool {
    losses.is_minimum() || losses.stats.and_then(|stats| stats.lost_events()).is_none()
}

/// True if more events than those counted may be lost on any CPU.
pub fn is_minimum(losses: &Losses) -> bool {
    losses.is_minimum() || losses.cpus.iter().any(is_minimum_of_cpu)
}

impl From<&CpuLosses> for CpuHead {
    fn from(losses: &CpuLosses) -> Self {
        Self {
            cpu: losses.cpu,
            events: losses.events,
            lost_events: losses.lost_events(),
            lost_events_before_first: losses.lost_before_first(),
            lost_events_is_minimum: is_minimum_of_cpu(losses),
            complete_until: losses.early_end().and_then(|place| place.after),
        }
    }
}

impl<C: for<'l> From<&'l CpuLosses>> Head<C> {
    /// Of a trace.
    pub fn of(trace: &Trace<'_>, losses: &Losses) -> Self {
        let chunks = trace.streams().values().flat_map(|stream| &stream.chunks).map(|(_, info)| info);
        let with_events = chunks.filter(|info| info.event_count > 0);
        Self {
            trace: TraceHead {
                events: trace.event_count(),
                lost_events: losses.lost_events(),
                lost_events_before_first: losses.lost_before_first(),
                lost_events_is_minimum: is_minimum(losses),
                overwritten_events: losses.overwritten_events(),
                window_begin: losses.window_begin(),
                missing_in_input: losses.missing_in_input,
                ended_unexpectedly: losses.ended_early,
                cpus: losses.cpus.len(),
                first: with_events.clone().map(|info| info.t_first).min(),
                last: with_events.map(|info| info.t_last).max(),
                per_cpu: losses.cpus.iter().map(C::from).collect(),
            },
            clock: ClockHead::of(trace.metadata()),
        }
    }
}

impl ClockHead {
    /// Clock of a file.
    pub fn of(metadata: &Metadata<'_>) -> Self {
        let clock = metadata.clock.as_ref();
        let unit = clock.map_or(ClockUnit::Nanoseconds, |clock| clock.unit);
        Self {
            name: clock.map(|clock| clock.name.clone()).filter(|name| !name.is_empty()),
            unit: if unit == ClockUnit::Nanoseconds { "ns" } else { "ticks" },
        }
    }
}
