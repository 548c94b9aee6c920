//! The table of lines: live bytes of each over time.

use super::TimelineKey;
use super::rows::{LineRow, TimelineRow};
use crate::render::screen::{Cell, Column, Table};

/// Characters of a course at most: it is never shortened.
const COURSE_MAX: usize = 20;

/// Lines, the largest first.
pub fn table(timeline: &TimelineRow, by: TimelineKey) -> Table {
    let (one, several) = noun(by);
    let columns = [
        Column::name(one),
        Column::whole("over time").leaves(1),
        Column::number("highest"),
        Column::number("at the end"),
        Column::number("allocs").leaves(3),
        Column::number("allocated").leaves(2),
        Column::number("frees").leaves(5),
        Column::number("freed").leaves(4),
    ];
    let mut table =
        Table::new(format!("live bytes by {one}"), columns).of(one, several, timeline.lines.len());
    for line in &timeline.lines {
        let bytes = |bytes: Option<&i64>| bytes.map_or(Cell::Empty, |bytes| level(*bytes));
        // Allocations of pages have no number by step.
        let count = |all: &[u64]| if line.is_pages { Cell::Empty } else { Cell::Count(sum(all)) };
        table.row([
            Cell::symbol(&line.name),
            Cell::Course(course(line)),
            bytes(line.bytes_live.iter().max()),
            bytes(line.bytes_live.last()),
            count(&line.alloc_events),
            Cell::Bytes(sum(&line.bytes_alloc)),
            count(&line.frees_matched),
            Cell::Bytes(sum(&line.bytes_freed)),
        ]);
    }
    table
}

fn sum(all: &[u64]) -> u64 {
    all.iter().fold(0, |sum, number| sum.saturating_add(*number))
}

/// Live bytes at equal steps, as many as fit.
fn course(line: &LineRow) -> Vec<u64> {
    let each = line.bytes_live.len().div_ceil(COURSE_MAX).max(1);
    let highest = |steps: &[i64]| steps.iter().max().map_or(0, |bytes| (*bytes).max(0) as u64);
    line.bytes_live.chunks(each).map(highest).collect()
}

/// Noun of a line, and of several.
fn noun(by: TimelineKey) -> (&'static str, &'static str) {
    match by {
        TimelineKey::Kind => ("kind", "kinds"),
        TimelineKey::CallSite => ("call site", "call sites"),
        TimelineKey::Cache => ("cache", "caches"),
        TimelineKey::Task => ("task", "tasks"),
        TimelineKey::Cpu => ("CPU", "CPUs"),
        TimelineKey::Node => ("node", "nodes"),
    }
}

/// A level of live bytes; one below zero is of frees whose allocations are not selected.
pub fn level(bytes: i64) -> Cell {
    u64::try_from(bytes).map_or(Cell::BytesChange(bytes), Cell::Bytes)
}
