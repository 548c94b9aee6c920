//! The screen of event counts.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::counts::CountedEvents;
use super::rows::EventRows;
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::text::{count, escaped, shown};
use crate::render::words::{counted, share};
use crate::reports::common::{ReportContext, View};

/// Counts by event, task and CPU.
pub fn screen(context: &ReportContext<'_, '_>, rows: &EventRows, view: &View) -> Screen {
    let (counts, labels) = (CountedEvents::of(context), context.labels());
    let events = rows.events.iter().map(|(name, count)| (name.clone(), count.events));
    let by_event = sorted(events.collect());
    let by_task = sorted(counts.by_name(|cell| labels.task(cell.pid)));
    let by_cpu = sorted(counts.by_name(|cell| format!("{:3}", cell.cpu)));
    let all = rows.events_total;
    let mut screen = Screen::new(answer(all, counts.rate(all), by_event.first()));
    if let (Some(task), Some(cpu)) = (by_task.first(), by_cpu.first()) {
        screen.answer(busiest(task, cpu, all));
    }
    let limit = view.limit;
    screen.table(table(Column::name("event"), ("event", "events"), &by_event, &counts, limit));
    screen.table(table(Column::name("task"), ("task", "tasks"), &by_task, &counts, limit));
    screen.table(table(Column::number("CPU"), ("CPU", "CPUs"), &by_cpu, &counts, limit));
    if all > 0 && counts.rate(all).is_none() {
        screen.note("There are no rates: the clock counts ticks, or all events have one time.");
    }
    if all > 0 {
        screen.next("dump -l 20", "the first events as text");
        screen.next("tasks", "memory by task");
    }
    if view.is_lossy {
        screen.next("info", "CPUs and times of the losses");
    }
    screen
}

/// Names and counts, the largest first.
fn sorted(sums: BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mut sums: Vec<(String, u64)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, events)| Reverse(*events));
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

/// The task and the CPU with most events.
fn busiest((task, of_task): &(String, u64), (cpu, of_cpu): &(String, u64), all: u64) -> String {
    format!(
        "Task {} has most of them ({}); CPU {} has {}.",
        shown(task.as_bytes()),
        share(*of_task, all),
        cpu.trim(),
        share(*of_cpu, all)
    )
}

/// A rate; one that would round to 0 is not 0.
fn rounded(rate: f64) -> String {
    if rate > 0.0 && rate < 0.5 { "<1".to_owned() } else { count(rate.round() as u64) }
}

fn table(
    column: Column,
    (one, several): (&'static str, &'static str),
    sums: &[(String, u64)],
    counts: &CountedEvents,
    limit: usize,
) -> Table {
    let all: u64 = counts.cells.values().sum();
    let rate = |events| counts.rate(events).map_or(Cell::Empty, |rate| Cell::text(rounded(rate)));
    let has_rates = !sums.is_empty() && counts.rate(all).is_some();
    Table::of_rows("", sums.iter().take(limit))
        .of(one, several, sums.len())
        .column(column, |(name, _)| Cell::text(escaped(name.trim_start().as_bytes())))
        .column(Column::number("count"), |(_, events)| Cell::Count(*events))
        .column(Column::number("%"), |(_, events)| Cell::share(*events, all))
        .column(Column::whole("share").leaves(2), |(_, events)| Cell::bar(*events, all))
        .column_if(has_rates, Column::number("per second").leaves(1), |(_, events)| rate(*events))
        .into()
}
