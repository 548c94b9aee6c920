//! The table of lines: live bytes of each over time.

use super::TimelineKey;
use super::lines::LineRow;
use super::rows::TimelineRow;
use crate::render::screen::{Cell, Column, Table};

/// Characters of a sparkline at most: it is never shortened.
const COURSE_MAX: usize = 20;

/// Lines, the largest first.
pub fn table(timeline: &TimelineRow, by: TimelineKey) -> Table {
    let (one, several) = noun(by);
    let bytes = |bytes: Option<&i64>| bytes.map_or(Cell::Empty, |bytes| level(*bytes));
    let count = |line: &LineRow, all: &[u64]| match line.is_pages {
        true => Cell::Empty,
        false => Cell::Count(sum(all)),
    };
    Table::of_rows(format!("live bytes by {one}"), &timeline.lines)
        .of(one, several, timeline.lines.len())
        .column(Column::name(one), |line| Cell::symbol(&line.name))
        .column(Column::whole("over time").leaves(1), |line| Cell::Sparkline(sparkline_values(line)))
        .column(Column::number("highest"), |line| bytes(line.bytes_live.iter().max()))
        .column(Column::number("at the end"), |line| bytes(line.bytes_live.last()))
        .column(Column::number("allocs").leaves(3), |line| count(line, &line.alloc_events))
        .column(Column::number("allocated").leaves(2), |line| Cell::Bytes(sum(&line.bytes_alloc)))
        .column(Column::number("frees").leaves(5), |line| count(line, &line.frees_matched))
        .column(Column::number("freed").leaves(4), |line| Cell::Bytes(sum(&line.bytes_freed)))
        .into()
}

fn sum(all: &[u64]) -> u64 {
    all.iter().fold(0, |sum, number| sum.saturating_add(*number))
}

/// Live bytes at equal steps, as many as fit.
fn sparkline_values(line: &LineRow) -> Vec<u64> {
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
