//! The screen of event counts.

use super::rows::{CountTable, EventRows};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::text::{count, escaped};
use crate::render::words::{counted, share};
use crate::reports::common::View;

/// Counts by event, task and CPU.
pub fn of(rows: &EventRows, view: &View) -> Screen {
    let mut screen = Screen::new(answer(rows));
    if let Some(busiest) = busiest(rows) {
        screen.answer(busiest);
    }
    let all = rows.events_total;
    screen.table(table(Column::name("event"), ("event", "events"), &rows.by_event, all));
    screen.table(table(Column::name("task"), ("task", "tasks"), &rows.by_task, all));
    screen.table(table(Column::number("CPU"), ("CPU", "CPUs"), &rows.by_cpu, all));
    if all > 0 && rows.per_second.is_none() {
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

/// Events, their rate, and the most frequent one.
fn answer(rows: &EventRows) -> String {
    let all = rows.events_total;
    if all == 0 {
        return "No events: the file has none, or the selection leaves none.".to_owned();
    }
    let rate = rows.per_second.map_or(String::new(), |rate| format!(" ({} per second)", rounded(rate)));
    let first = rows.by_event.rows.first().map_or(String::new(), |(name, row)| {
        format!(", {} of them {}", share(row.events, all), escaped(name.as_bytes()))
    });
    format!("{}{rate}{first}.", counted(all, "event", "events"))
}

/// The task and the CPU with most events.
fn busiest(rows: &EventRows) -> Option<String> {
    let (task, of_task) = rows.by_task.rows.first()?;
    let (cpu, of_cpu) = rows.by_cpu.rows.first()?;
    let share = |events| share(events, rows.events_total);
    Some(format!(
        "Task {} has most of them ({}); CPU {} has {}.",
        escaped(task.as_bytes()),
        share(of_task.events),
        cpu.trim(),
        share(of_cpu.events)
    ))
}

/// A rate; one that would round to 0 is not 0.
fn rounded(rate: f64) -> String {
    if rate > 0.0 && rate < 0.5 { "<1".to_owned() } else { count(rate.round() as u64) }
}

fn table(
    column: Column,
    (one, several): (&'static str, &'static str),
    counts: &CountTable,
    all: u64,
) -> Table {
    let has_rates = counts.rows.iter().any(|(_, row)| row.events_per_second.is_some());
    let rate = |rate: Option<f64>| rate.map_or(Cell::Empty, |rate| Cell::text(rounded(rate)));
    Table::of_rows("", &counts.rows)
        .of(one, several, counts.total)
        .column(column, |(name, _)| Cell::text(escaped(name.trim_start().as_bytes())))
        .column(Column::number("count"), |(_, row)| Cell::Count(row.events))
        .column(Column::number("%"), |(_, row)| Cell::share(row.events, all))
        .column(Column::whole("share").leaves(2), |(_, row)| Cell::bar(row.events, all))
        .column_if(has_rates, Column::number("per second").leaves(1), |(_, row)| rate(row.events_per_second))
        .into()
}
