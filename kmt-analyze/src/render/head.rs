//! `trace` and `clock`, which the JSON of every report has, and the answer of a selection that leaves nothing.
//!
//! Facts come from the opened file. An empty result has the same words everywhere, with values of the trace that would match.

use std::collections::{BTreeMap, HashMap};

use kmt_common::tell;
use kmt_format::kernel::ClockUnit;
use kmt_format::read::{Metadata, Trace};
use serde::Serialize;

use crate::render::screen::Screen;
use crate::render::words::{count, shown, time};
use crate::trace::busy_tasks;
use crate::trace::losses::{CpuLosses, Losses};
use crate::trace::names::task_in_message;
use crate::trace::session::Session;

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

/// The sentence.
const NOTHING: &str = "Nothing matches.";

/// The heading of the values.
const HAS: &str = "The trace has:";

/// The screen, with lines of values.
pub fn nothing(values: Vec<String>) -> Screen {
    let mut screen = Screen::new(NOTHING);
    screen.lines(HAS, values);
    screen
}

/// Reports on standard error that no event was selected, with the events, tasks, CPUs and times of the trace.
pub fn report_no_event(session: &Session<'_>) {
    report_nothing(&values(session));
}

/// Reports the sentence of [`screen`] on standard error, beside data.
pub fn report_nothing(values: &[String]) {
    tell!("{NOTHING} {HAS}");
    values.iter().for_each(|line| tell!("  {line}"));
}

/// Events with their numbers, tasks, CPUs and times. Reads the whole trace.
fn values(session: &Session<'_>) -> Vec<String> {
    let trace = session.trace;
    let (mut events, mut pids) = (BTreeMap::<usize, u64>::new(), HashMap::<i32, u64>::new());
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        for event in run.events() {
            *events.entry(event.class_index()).or_default() += 1;
            *pids.entry(event.pid()).or_default() += 1;
        }
    }
    let named = events.iter().filter_map(|(index, number)| {
        let class = trace.schema().class(*index)?;
        let name = shown(format!("{}:{}", class.system, class.name).as_bytes());
        Some(format!("{name} ({})", count(*number)))
    });
    let names = session.names();
    let mut tasks: Vec<i32> = pids.keys().copied().collect();
    busy_tasks::sort(&mut tasks, &pids, names);
    let task = |&pid: &i32| task_in_message(names.shown_at(pid, u64::MAX), pid);
    let cpus = session.losses.cpus.iter().map(|cpu| cpu.cpu.to_string());
    let mut out = vec![
        format!("events: {}", some_values(named.collect())),
        format!("tasks: {}", some_values(tasks.iter().map(task).collect())),
        format!("CPUs: {}", some_values(cpus.collect())),
    ];
    if let (Some(start), Some(end)) = (session.first_time(), session.last_time()) {
        out.push(format!("times: {} to {}", time(start, session.unit()), time(end, session.unit())));
    }
    out
}

/// The first values of a list, and the number of the others.
pub fn some_values(all: Vec<String>) -> String {
    const SHOWN: usize = 12;
    let more = all.len().saturating_sub(SHOWN);
    let shown = all.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown}, and {more} more") } else { shown }
}
