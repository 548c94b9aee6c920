//! The screen of event counts.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::counts::CountedEvents;
use super::rows::EventRows;
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{count, counted, escaped, share, shown};
use crate::reports::common::lead::leaders;
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
    if let Some(sentence) = busiest(&by_task, &by_cpu, all) {
        screen.answer(sentence);
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
        screen.next("info", "what is missing, and where as far as known");
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
