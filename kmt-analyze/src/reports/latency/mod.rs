//! `latency`: time that tasks waited for memory, and the allocations that waited.
//!
//! The collector `Stalls` has them. The answer is one sentence: time that tasks waited, the task that waited longest, the worst
//! wait. Rows are in `rows` and `tasks`, tables in `text`.

mod intervals;
mod kinds;
pub mod live;
mod rows;
mod tasks;
mod text;
mod tracepoints;

pub use rows::LatencyRows;
use rows::LatencyTables;

use std::cmp::Reverse;
use std::collections::HashMap;

use kmt_common::quantity::Span;
use kmt_format::kernel::ClockUnit;

use crate::collect::stalls::Compactors;
use crate::collect::{Collectors, Handle, Stalls};
use crate::failure::Result;
use crate::pass::Needs;
use crate::render::screen::Screen;
use crate::render::words::duration;
use crate::reports::common::basis::Input;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::report::Report;
use crate::trace::session::Session;

/// Times that tasks waited for memory.
#[derive(Debug, Default, clap::Args)]
pub struct Latency {
    #[command(flatten)]
    options: LatencyOptions,
}

/// Options of the report.
#[derive(Debug, Default, clap::Args)]
pub struct LatencyOptions {
    /// Show only stalls of at least this length, nested, with the events of their tasks
    #[arg(long, value_name = "TIME", value_parser = Span::parse)]
    pub threshold: Option<Span>,
    /// Print stalls as they end, of a file that is being written or of a stream, and sums at the end
    #[arg(short, long, conflicts_with_all = ["time", "at", "comms", "children", "cpus", "terms", "start_branch", "without_recorder", "threads", "lines"])]
    pub follow: bool,
}

impl Latency {
    /// With all stalls, however short.
    pub fn with_all_stalls() -> Self {
        Self { options: LatencyOptions { threshold: Span::parse("0").ok(), follow: false } }
    }
}

impl Report for Latency {
    /// With the threshold in the clock's unit.
    type Handles = (Handle<Stalls>, Option<u64>);
    type Rows = LatencyRows;

    const NAME: &'static str = "latency";
    const ABOUT: &'static str = "Time that tasks waited for memory";
    const NEEDS: Needs = Needs::FLAG_NAMES;
    const RESTS_ON: Input = Input::Stalls;
    const KEYS: Keys = Keys::Tasks;

    fn with_defaults() -> Option<Self> {
        Some(Self::default())
    }

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        self.options.threshold.map_or(Ok(()), |threshold| context.session.clock().units(threshold).map(drop))
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        // Checked before.
        let threshold =
            self.options.threshold.and_then(|threshold| context.session.clock().units(threshold).ok());
        (collectors.add(Stalls { threshold, compactors: compactors(context.session) }), threshold)
    }

    fn compute(&self, context: &ReportContext<'_, '_>, (stalls, threshold): &Self::Handles) -> LatencyRows {
        rows::compute(context, context.analysis.get(*stalls), *threshold)
    }

    fn screen(&self, rows: &LatencyRows, view: &View) -> Screen {
        let mut screen = text::screen(rows, view);
        if rows.shown.guesses_compactors {
            screen.note("mm_compaction_try_to_compact_pages was not recorded: compactions by tasks other than kcompactd and kswapd count as waits of these tasks.");
        }
        screen
    }
}

/// Tasks that compact for their own allocations. Without the event that says so, only names tell kernel threads apart.
pub fn compactors(session: &Session<'_>) -> Compactors {
    let is_announced = |name: &str| name == "mm_compaction_try_to_compact_pages";
    if session.trace.schema().classes().any(|(_, class)| is_announced(&class.name)) {
        return Compactors::Announced;
    }
    let names = session.names().all_at(session.last_time().unwrap_or(0));
    let is_thread = |name: &[u8]| name.starts_with(b"kcompactd") || name.starts_with(b"kswapd");
    let mut pids: Vec<i32> =
        names.into_iter().filter(|(_, name)| is_thread(name)).map(|(pid, _)| pid).collect();
    pids.sort_unstable();
    Compactors::AllBut(pids)
}

/// Waits of all tasks for memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitSums {
    /// Time of all waits together, in the clock's unit.
    pub total: u64,
    /// Time that the task waited that waited longest.
    pub longest: u64,
    task: String,
    worst: u64,
    tasks: usize,
    number: u64,
}

impl WaitSums {
    /// Waits of a trace; `None`: no task waited, or no waits were recorded.
    pub fn of(latency: &LatencyTables) -> Option<Self> {
        let waits = || latency.kinds.iter().filter(|kind| kind.delays());
        let mut tasks: HashMap<i32, (&str, u64)> = HashMap::new();
        for task in waits().flat_map(|kind| &kind.tasks) {
            let (_, total) = tasks.entry(task.pid).or_insert((&task.task, 0));
            *total = total.saturating_add(task.total);
        }
        let most = tasks.iter().max_by_key(|(pid, (_, total))| (*total, Reverse(**pid)));
        let (_, &(task, longest)) = most?;
        Some(Self {
            total: waits().fold(0u64, |sum, kind| sum.saturating_add(kind.lengths.total)),
            longest,
            task: task.to_owned(),
            worst: waits().filter_map(|kind| kind.lengths.max).max()?,
            tasks: tasks.len(),
            number: waits().map(|kind| kind.lengths.count).sum(),
        })
    }

    /// One sentence.
    pub fn sentence(&self, unit: ClockUnit) -> String {
        let [total, worst, longest] = [self.total, self.worst, self.longest].map(|time| rounded(time, unit));
        let task = &self.task;
        match (self.tasks, self.number) {
            (_, 1) => format!("{task} waited {total} for memory, once."),
            (1, _) => format!("{task} waited {total} for memory; the worst wait was {worst}."),
            _ => format!(
                "Tasks waited {total} for memory, {task} longest ({longest}); the worst wait was {worst}."
            ),
        }
    }
}

/// A length of time with three significant digits: `457 ms`, `2.27 s`, `10 ms`.
fn rounded(length: u64, unit: ClockUnit) -> String {
    const UNITS: [(f64, &str); 3] = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    if unit == ClockUnit::Ticks || length < 1_000 {
        return duration(length, unit);
    }
    // From 999.5 on three digits would read 1000.
    let fits = |(size, _): &&(f64, &str)| length as f64 / size >= 0.9995;
    let (size, name) = UNITS.iter().find(fits).copied().unwrap_or((1e3, "us"));
    let value = length as f64 / size;
    let number = match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    };
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { &number };
    format!("{number} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_three_digits() {
        let lengths = [(999, "999 ns"), (1_000, "1 us"), (456_620_000, "457 ms"), (999_600_000, "1 s")];
        let longer = [(10_000_000, "10 ms"), (45_120_000, "45.1 ms"), (2_271_000_000, "2.27 s")];
        for (length, text) in lengths.into_iter().chain(longer) {
            assert_eq!(rounded(length, ClockUnit::Nanoseconds), text, "{length}");
        }
        assert_eq!(rounded(10_000, ClockUnit::Ticks), "10,000 ticks");
        assert_eq!(rounded(u64::MAX, ClockUnit::Nanoseconds), "18446744074 s");
    }
}
