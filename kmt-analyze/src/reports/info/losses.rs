//! The table of CPUs, and that of their losses.

use std::cmp::Reverse;

use super::cpus::{CpuRow, LossRow, StatsRow};
use super::rows::InfoRows;
use crate::render::screen::{Cell, Column, Table};
use crate::render::text::count;
use crate::reports::common::View;

/// Counts of each CPU, those with most losses first, and the number of CPUs that are left out.
pub fn cpus(rows: &InfoRows, limit: usize) -> (Table, usize) {
    let columns = [
        Column::number("CPU"),
        Column::number("events"),
        Column::number("lost"),
        Column::number("lost %").leaves(1),
        Column::number("overrun").leaves(2),
        Column::number("dropped").leaves(2),
        Column::number("commit overrun").leaves(3),
        Column::number("counted").leaves(4),
        Column::number("uncounted gaps").leaves(5),
        Column::number("lost in gaps").leaves(6),
        Column::number("without time").leaves(6),
    ];
    let mut table = Table::new("", columns);
    let mut cpus: Vec<&CpuRow> = rows.head.trace.per_cpu.iter().collect();
    cpus.sort_by_key(|cpu| (Reverse(cpu.head.lost_events), cpu.head.cpu));
    let left = cpus.len().saturating_sub(limit);
    cpus.truncate(limit);
    cpus.iter().for_each(|cpu| table.row(cells(cpu)));
    table.explain(
        "overrun",
        "Overrun, dropped, commit overrun: the kernel's counters of events that were overwritten before they were read, refused by a full buffer, lost in nested interrupts.",
    );
    table.explain("counted", "Counted: lost events that sub-buffers count.");
    table
        .explain("lost in gaps", "Lost in gaps: overrun events beyond those counted, in all uncounted gaps.");
    table.explain("without time", "Without time: lost events that mark no sub-buffer.");
    (table, left)
}

fn cells(cpu: &CpuRow) -> [Cell; 11] {
    let head = &cpu.head;
    let counter =
        |of: fn(&StatsRow) -> Option<u64>| cpu.stats.as_ref().and_then(of).map_or(Cell::Empty, Cell::Count);
    let lost = Cell::Count(head.lost_events);
    [
        Cell::Count(head.cpu.into()),
        Cell::Count(head.events),
        if head.lost_events_is_minimum {
            Cell::text(format!(">= {}", count(head.lost_events)))
        } else {
            lost
        },
        Cell::share(head.lost_events, head.events.saturating_add(head.lost_events)),
        counter(|stats| stats.overrun),
        counter(|stats| stats.dropped_events),
        counter(|stats| stats.commit_overrun),
        Cell::Count(cpu.lost_events_counted_in_place),
        Cell::Count(cpu.uncounted_places as u64),
        cpu.lost_events_at_uncounted_places.map_or(Cell::Empty, Cell::Count),
        Cell::Count(cpu.lost_events_unplaced),
    ]
}

/// Gaps in the streams, uncounted ones and the largest first, and the number of gaps that are left out.
pub fn places(rows: &InfoRows, view: &View) -> (Table, usize) {
    let columns = [
        Column::number("CPU"),
        Column::number("after"),
        Column::number("before"),
        Column::number("lost"),
        Column::number("in missing chunks").leaves(1),
        Column::text("remark").leaves(2),
    ];
    let mut table = Table::new("Gaps", columns);
    let cpus = rows.head.trace.per_cpu.iter();
    let mut places: Vec<(u32, &LossRow)> =
        cpus.flat_map(|cpu| cpu.losses.iter().map(|loss| (cpu.head.cpu, loss))).collect();
    places.sort_by_key(|(_, loss)| {
        (Reverse(loss.uncounted), Reverse(loss.lost_events.unwrap_or(0).max(loss.events_missing)))
    });
    let left = places.len().saturating_sub(view.limit);
    for (cpu, loss) in places.into_iter().take(view.limit) {
        let at = |time: Option<u64>, end| time.map_or(Cell::text(end), |time| Cell::text(view.time(time)));
        table.row([
            Cell::Count(cpu.into()),
            at(loss.after, "start"),
            at(loss.before, "end"),
            lost(loss),
            Cell::Count(loss.events_missing),
            Cell::text(remark(loss)),
        ]);
    }
    (table, left)
}

/// Events lost in a gap, as far as the kernel counted them.
fn lost(loss: &LossRow) -> Cell {
    match loss.lost_events.filter(|lost| *lost > 0) {
        None => Cell::Empty,
        Some(lost) if loss.uncounted => Cell::text(format!(">= {}", count(lost))),
        Some(lost) => Cell::Count(lost),
    }
}

/// Reasons why the number of lost events is not exact.
fn remark(loss: &LossRow) -> &'static str {
    match (loss.uncounted, loss.damaged_input) {
        (true, true) => "not counted by the kernel; input damaged",
        (true, false) => "not counted by the kernel",
        (false, true) => "input damaged",
        (false, false) => "",
    }
}
