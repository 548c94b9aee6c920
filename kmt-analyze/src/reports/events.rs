//! `events`: counts and rates of all events, by event, task and CPU.
//!
//! The counts are of all selected events, also of those that the ledger does not use. They have no collector: the pass counts
//! them (`Needs::EVENT_COUNTS`).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use kmt_format::kernel::ClockUnit;
use serde::Serialize;

use crate::collect::Collectors;
use crate::pass::Needs;
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{count, counted, escaped, share, shown};
use crate::reports::common::basis::Input;
use crate::reports::common::lead::leaders;
use crate::reports::common::rows::text;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::report::Report;
use crate::sort_rows::SortRows;

/// The report.
#[derive(Debug, clap::Args)]
pub struct Events;

impl Report for Events {
    type Handles = ();
    type Rows = EventRows;

    const NAME: &'static str = "events";
    const ABOUT: &'static str = "Counts and rates of events, by event, task and CPU";
    const RESTS_ON: Input = Input::Nothing;
    const KEYS: Keys = Keys::Tasks;
    const NEEDS: Needs = Needs::EVENT_COUNTS;
    const ACCOUNTS: bool = false;

    fn collect(&self, _: &Context<'_, '_>, _: &mut Collectors) -> Self::Handles {}

    /// Rows of the selected events.
    fn compute(&self, context: &ReportContext<'_, '_>, (): &()) -> EventRows {
        let (counts, labels) = (counts(context), context.labels());
        let shown = EventsShown {
            by_task: sorted(by_name(&counts, |cell| labels.task(cell.pid))),
            by_cpu: sorted(by_name(&counts, |cell| format!("{:3}", cell.cpu))),
            seconds: seconds(context),
        };
        let count = |events| EventCount { events, events_per_second: shown.rate(events) };
        let names = context.session.names();
        let end = context.selection.span(context.session).1;
        let event = |cell: &CountCell| {
            let class = context.session.trace.schema().class(cell.class as usize);
            class.map_or("?".to_owned(), |class| format!("{}:{}", class.system, class.name))
        };
        let cell = |(cell, &events): (&CountCell, &u64)| CellRow {
            event: event(cell),
            pid: cell.pid,
            comm: names.at(cell.pid, end).map(text),
            cpu: cell.cpu,
            count: count(events),
        };
        let by_event = by_name(&counts, event);
        EventRows {
            events_total: counts.values().sum(),
            events: by_event.into_iter().map(|(name, events)| (name, count(events))).collect(),
            cells_total: counts.len(),
            cells: counts.iter().take(context.limit).map(cell).collect(),
            shown,
        }
    }

    /// Counts by event, task and CPU.
    fn screen(&self, rows: &EventRows, view: &View) -> Screen {
        let EventsShown { by_task, by_cpu, .. } = &rows.shown;
        let by_event = sorted(rows.events.iter().map(|(name, count)| (name.clone(), count.events)).collect());
        let all = rows.events_total;
        let rate = rows.shown.rate(all);
        let mut screen = Screen::new(answer(all, rate, by_event.first()));
        if let Some(sentence) = busiest(by_task, by_cpu, all) {
            screen.answer(sentence);
        }
        screen.table(table(Column::name("event"), ("event", "events"), &by_event, rows, view));
        screen.table(table(Column::name("task"), ("task", "tasks"), by_task, rows, view));
        screen.table(table(Column::number("CPU"), ("CPU", "CPUs"), by_cpu, rows, view));
        if all > 0 && rate.is_none() {
            screen.note("There are no rates: the clock counts ticks, or all events have one time.");
        }
        if all > 0 {
            screen.next("dump -l 20", "the first events as text");
            screen.next("tasks", "memory by task");
        }
        if view.is_lossy {
            screen.next("info", "what is missing, and where as far as known");
        }
        screen
    }
}

/// An event class, a task and a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CountCell {
    /// Number of the class.
    class: u32,
    /// Thread id.
    pid: i32,
    /// Number of the CPU.
    cpu: u32,
}

/// Counts of the selected events by class, task and CPU.
fn counts(context: &ReportContext<'_, '_>) -> BTreeMap<CountCell, u64> {
    let interner = &context.analysis.interner;
    let mut cells = BTreeMap::new();
    for &(class, number, events) in &context.analysis.event_counts {
        let Some(origin) = interner.origins.get(number) else { continue };
        if interner.selected.origins.get(number as usize).copied().unwrap_or(true) {
            *cells.entry(CountCell { class, pid: origin.pid, cpu: origin.cpu }).or_default() += events;
        }
    }
    cells
}

/// Length of the selected time in seconds; `None`: it is 0, or the clock's unit is not a part of a second.
fn seconds(context: &ReportContext<'_, '_>) -> Option<f64> {
    let (first, last) = context.selection.span(context.session);
    match context.session.unit() {
        ClockUnit::Nanoseconds => Some(last.saturating_sub(first) as f64 / 1e9).filter(|s| *s > 0.0),
        ClockUnit::Ticks => None,
    }
}

/// Sums of cells with the same name.
fn by_name(cells: &BTreeMap<CountCell, u64>, name: impl Fn(&CountCell) -> String) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (cell, events) in cells {
        *sums.entry(name(cell)).or_default() += events;
    }
    sums
}

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EventRows {
    /// Number of events.
    pub events_total: u64,
    /// Counts by `system:event`.
    pub events: BTreeMap<String, EventCount>,
    /// Number of cells, including those beyond the limit of rows.
    pub cells_total: usize,
    /// Counts by event, task and CPU.
    pub cells: Vec<CellRow>,
    #[serde(skip)]
    shown: EventsShown,
}

/// Sums that only the screen has.
#[derive(Debug)]
struct EventsShown {
    /// Counts by task, the largest first.
    by_task: Vec<(String, u64)>,
    /// Counts by CPU, the largest first.
    by_cpu: Vec<(String, u64)>,
    /// See [`seconds`].
    seconds: Option<f64>,
}

impl EventsShown {
    /// Events per second.
    fn rate(&self, events: u64) -> Option<f64> {
        self.seconds.map(|seconds| events as f64 / seconds)
    }
}

/// Count and rate of one event.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EventCount {
    /// Number of events.
    pub events: u64,
    /// Events per second; `null`: the clock counts ticks, or the selected time has no length.
    pub events_per_second: Option<f64>,
}

/// Count of one event, task and CPU.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CellRow {
    /// `system:event`.
    pub event: String,
    /// Thread id.
    pub pid: i32,
    /// Name of the task; `null`: unknown.
    pub comm: Option<String>,
    /// Number of the CPU.
    pub cpu: u32,
    /// Count and rate.
    #[serde(flatten)]
    pub count: EventCount,
}

/// Names and counts, the largest first.
fn sorted(sums: BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mut sums: Vec<(String, u64)> = sums.into_iter().collect();
    sums.sort_rows_by_key(|(_, events)| Reverse(*events));
    sums
}

/// Events, their rate, and the most frequent one.
fn answer(all: u64, rate: Option<f64>, first: Option<&(String, u64)>) -> String {
    if all == 0 {
        return "No events: the file has none, or the selection leaves none.".to_owned();
    }
    let rate = rate.map_or(String::new(), |rate| format!(" ({} per second)", rounded(rate)));
    let first = first.map_or(String::new(), |(name, events)| {
        format!(", {} of them {}", share(*events, all), shown(name.as_bytes()))
    });
    format!("{}{rate}{first}.", counted(all, "event", "events"))
}

/// The task and the CPU with most events; the sums are sorted. Of two with as many both are named, of more none.
fn busiest(tasks: &[(String, u64)], cpus: &[(String, u64)], all: u64) -> Option<String> {
    let task = match first_of(tasks) {
        [(task, events)] => {
            Some(format!("Task {} has most of them ({})", shown(task.as_bytes()), share(*events, all)))
        }
        [(one, events), (other, _)] => Some(format!(
            "Tasks {} and {} have most of them ({} each)",
            shown(one.as_bytes()),
            shown(other.as_bytes()),
            share(*events, all)
        )),
        _ => None,
    };
    let cpu = match first_of(cpus) {
        [(cpu, events)] => Some(format!("CPU {} has {}", cpu.trim(), share(*events, all))),
        [(one, events), (other, _)] => {
            Some(format!("CPUs {} and {} have {} each", one.trim(), other.trim(), share(*events, all)))
        }
        _ => None,
    };
    match (task, cpu) {
        (Some(task), Some(cpu)) => Some(format!("{task}; {cpu}.")),
        (Some(task), None) => Some(format!("{task}.")),
        (None, cpu) => cpu.map(|cpu| format!("{cpu} of them.")),
    }
}

/// The largest sum, and those that are equal to it.
fn first_of(sums: &[(String, u64)]) -> &[(String, u64)] {
    leaders(sums, |(_, events)| *events)
}

/// A rate; one that would round to 0 is not 0.
fn rounded(rate: f64) -> String {
    if rate > 0.0 && rate < 0.5 { "<1".to_owned() } else { count(rate.round() as u64) }
}

fn table(
    column: Column,
    (one, several): (&'static str, &'static str),
    sums: &[(String, u64)],
    rows: &EventRows,
    view: &View,
) -> Table {
    let all = rows.events_total;
    let rate = |events| rows.shown.rate(events).map_or(Cell::Empty, |rate| Cell::text(rounded(rate)));
    let has_rates = !sums.is_empty() && rows.shown.seconds.is_some();
    Table::of_rows("", sums.iter().take(view.limit))
        .of(one, several, sums.len())
        .column(column, |(name, _)| Cell::text(escaped(name.trim_start().as_bytes())))
        .column(Column::number("count"), |(_, events)| Cell::Count(*events))
        .column(Column::number("%"), |(_, events)| Cell::share(*events, all))
        .column(Column::whole("share").leaves(2), |(_, events)| Cell::bar(*events, all))
        .column_if(has_rates, Column::number("per second").leaves(1), |(_, events)| rate(*events))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(all: &[(&str, u64)]) -> Vec<(String, u64)> {
        all.iter().map(|(name, events)| ((*name).to_owned(), *events)).collect()
    }

    #[test]
    fn of_equal_tasks_and_cpus_both_are_named_or_none() {
        for (tasks, cpus, expected) in [
            (
                &[("a-1", 3), ("b-2", 1)][..],
                &[("  0", 4)][..],
                "Task a-1 has most of them (75 %); CPU 0 has 100 %.",
            ),
            (
                &[("a-1", 2), ("b-2", 2)],
                &[("  0", 2), ("  1", 2)],
                "Tasks a-1 and b-2 have most of them (50 % each); CPUs 0 and 1 have 50 % each.",
            ),
            (
                &[("a-1", 1), ("b-2", 1), ("c-3", 1), ("d-4", 1)],
                &[("  0", 3), ("  1", 1)],
                "CPU 0 has 75 % of them.",
            ),
            (
                &[("a-1", 4)],
                &[("  0", 1), ("  1", 1), ("  2", 1), ("  3", 1)],
                "Task a-1 has most of them (100 %).",
            ),
        ] {
            assert_eq!(busiest(&sums(tasks), &sums(cpus), 4).as_deref(), Some(expected));
        }
        assert_eq!(busiest(&[], &[], 0), None);
    }
}
