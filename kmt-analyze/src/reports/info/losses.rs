//! The table of CPUs, and that of their losses.

use std::cmp::Reverse;

use super::cpus::{CpuRow, LossRow, StatsRow};
use super::rows::InfoRows;
use crate::render::screen::{Cell, Column, Table};
use crate::render::words::{count, escaped};
use crate::reports::common::View;

/// Counts of each CPU, those with most losses first, and the number of CPUs that are left out.
pub fn cpus(rows: &InfoRows, limit: usize) -> (Table, usize) {
    let mut cpus: Vec<&CpuRow> = rows.head.trace.per_cpu.iter().collect();
    cpus.sort_by_key(|cpu| (Reverse(cpu.head.lost_events), cpu.head.cpu));
    let left = cpus.len().saturating_sub(limit);
    cpus.truncate(limit);
    let known = |number: Option<u64>| number.map_or(Cell::Empty, Cell::Count);
    let counter = |cpu: &CpuRow, of: fn(&StatsRow) -> Option<u64>| known(cpu.stats.as_ref().and_then(of));
    let lost = |cpu: &CpuRow| match (cpu.head.lost_events, cpu.head.lost_events_is_minimum) {
        (0, _) if is_unknown(cpu) => Cell::text("unknown"),
        (lost, true) => Cell::text(format!(">= {}", count(lost))),
        (lost, false) => Cell::Count(lost),
    };
    let lost_share = |cpu: &CpuRow| match cpu.head.lost_events {
        0 if is_unknown(cpu) => Cell::Empty,
        lost => Cell::share(lost, cpu.head.events.saturating_add(lost)),
    };
    let unplaced = |cpu: &CpuRow| cpu.stats.as_ref().map(|_| cpu.lost_events_unplaced);
    let table = Table::of_rows("", cpus)
        .column(Column::number("CPU"), |cpu| Cell::Count(cpu.head.cpu.into()))
        .column(Column::number("events"), |cpu| Cell::Count(cpu.head.events))
        .column(Column::number("lost"), |cpu| lost(cpu))
        .column(Column::number("lost %").leaves(1), |cpu| lost_share(cpu))
        .column(Column::number("overrun").leaves(2), |cpu| counter(cpu, |stats| stats.overrun))
        .column(Column::number("dropped").leaves(2), |cpu| counter(cpu, |stats| stats.dropped_events))
        .column(Column::number("commit overrun").leaves(3), |cpu| counter(cpu, |stats| stats.commit_overrun))
        .column(Column::number("counted").leaves(4), |cpu| Cell::Count(cpu.lost_events_counted_in_place))
        .column(Column::number("uncounted gaps").leaves(5), |cpu| Cell::Count(cpu.uncounted_places as u64))
        .column(Column::number("lost in gaps").leaves(6), |cpu| known(cpu.lost_events_at_uncounted_places))
        .column(Column::number("without time").leaves(6), |cpu| known(unplaced(cpu)))
        .explain(
            "overrun",
            "Overrun, dropped, commit overrun: the kernel's counters of events that were overwritten before they were read, refused by a full buffer, lost in nested interrupts.",
        )
        .explain("counted", "Counted: lost events that sub-buffers count.")
        .explain("lost in gaps", "Lost in gaps: overrun events beyond those counted, in all uncounted gaps.")
        .explain("without time", "Without time: lost events that mark no sub-buffer.");
    (table.into(), left)
}

/// True if 0 lost events are only those that are known: there are no counters, or the recording was cut or changed.
fn is_unknown(cpu: &CpuRow) -> bool {
    let has_counters = cpu
        .stats
        .as_ref()
        .is_some_and(|s| s.overrun.is_some() || s.dropped_events.is_some() || s.commit_overrun.is_some());
    cpu.head.lost_events_is_minimum || !has_counters
}

/// Gaps in the streams, uncounted ones and the largest first, and the number of gaps that are left out.
pub fn places(rows: &InfoRows, view: &View) -> (Table, usize) {
    let cpus = rows.head.trace.per_cpu.iter();
    let mut places: Vec<(u32, &LossRow)> =
        cpus.flat_map(|cpu| cpu.losses.iter().map(|loss| (cpu.head.cpu, loss))).collect();
    places.sort_by_key(|(_, loss)| {
        (Reverse(loss.uncounted), Reverse(loss.lost_events.unwrap_or(0).max(loss.events_missing)))
    });
    let left = places.len().saturating_sub(view.limit);
    let at = |time: Option<u64>, end| time.map_or(Cell::text(end), |time| Cell::text(view.time(time)));
    let table = Table::of_rows("Gaps", places.into_iter().take(view.limit))
        .column(Column::number("CPU"), |(cpu, _)| Cell::Count((*cpu).into()))
        .column(Column::number("after"), |(_, loss)| at(loss.after, "start"))
        .column(Column::number("before"), |(_, loss)| at(loss.before, "end"))
        .column(Column::number("lost"), |(_, loss)| lost(loss))
        .column(Column::number("in missing chunks").leaves(1), |(_, loss)| Cell::Count(loss.events_missing))
        .column(Column::text("remark").leaves(2), |(_, loss)| Cell::text(remark(loss)));
    (table.into(), left)
}

/// Settings that other processes wrote.
pub fn changes(rows: &InfoRows, view: &View) -> Table {
    let value = |value: &str| Cell::text(escaped(value.as_bytes()));
    Table::of_rows("Changes by other processes", rows.changes.iter().take(view.limit))
        .column(Column::number("after"), |row| Cell::text(view.time(row.from)))
        .column(Column::number("before"), |row| Cell::text(view.time(row.to)))
        .column(Column::name("file"), |row| value(&row.file))
        .column(Column::text("old value"), |row| value(&row.old_value))
        .column(Column::text("new value"), |row| value(&row.new_value))
        .into()
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
    if loss.early_end {
        return "ended unexpectedly; unknown what was unread";
    }
    match (loss.uncounted, loss.damaged_input) {
        (true, _) if loss.before_first => "before the recorded time, not counted",
        (false, _) if loss.before_first => "before the recorded time",
        (true, true) => "not counted by the kernel; input damaged",
        (true, false) => "not counted by the kernel",
        (false, true) => "input damaged",
        (false, false) => "",
    }
}
