//! Tables of call sites and pages.

use kmt_format::kernel::ClockUnit;

use super::row::LeakRow;
use super::text_parts::{self, TextParts};
use crate::render::screen::{Cell, Column, Ink, Table};
use crate::render::text::escaped;
use crate::render::words::listed;
use crate::reports::analysis::leaks::verdict::Verdict;
use crate::reports::common::View;

const OVER_TIME: Column = Column::whole("over time");

/// Columns of numbers that a verdict rests on; they leave first.
const EVIDENCE: [Column; 5] = [
    Column::number("old objects").leaves(9),
    Column::number("not freed").leaves(10),
    Column::number("freed within").leaves(11),
    Column::whole("steps").leaves(12),
    Column::whole("halves").leaves(13),
];

/// Cells under [`EVIDENCE`].
fn evidence(row: &LeakRow, view: &View) -> [Cell; 5] {
    [
        Cell::Count(row.old_survivors),
        Cell::share(row.old_survivors, row.allocations_of_that_age),
        row.lifetime_p99.map_or(Cell::Empty, |p99| Cell::Duration(p99, view.unit)),
        Cell::text(format!("{}/{}", row.steps_with_survivors, row.steps)),
        Cell::text(format!("{}, {}", row.first_half, row.second_half)),
    ]
}

/// Meanings of the columns that both tables of call sites have.
fn explain(table: &mut Table) {
    table.explain("over time", "over time: live objects by the time of their allocation, over the window.");
    table.explain(
        "old objects",
        "old objects: older than 3 times the lifetime of 99 of 100 freed ones, and than 1/8 of the window.",
    );
    table.explain("not freed", "not freed: old objects as a share of the allocations in their time.");
    table.explain("freed within", "freed within: time in which 99 of 100 freed objects were freed.");
    table.explain(
        "steps",
        "steps: of 32 parts of the window, those with old objects, of those that can have some.",
    );
    table.explain("halves", "halves: old objects of the first and the second half of these steps.");
}

/// Call sites that grow, by family.
pub fn growing(parts: &TextParts, view: &View) -> Table {
    let several = parts.families.len() > 1;
    let task = Column::name("task").leaves(if several { 2 } else { 6 });
    let mut columns = Vec::new();
    columns.extend(several.then_some(Column::number("group")));
    columns.extend([
        Column::name("call site"),
        Column::text("cache").leaves(1),
        growth_column(view),
        Column::number("grown"),
    ]);
    columns.extend([task, OVER_TIME.leaves(3), Column::text("since").leaves(4)]);
    columns.extend([Column::number("live").leaves(7), Column::number("live bytes").leaves(8)]);
    columns.extend(EVIDENCE);
    let title = if several { "growing, by group of call sites" } else { "growing together" };
    let title = if parts.family_rows_total == 1 { "" } else { title };
    let mut table = Table::new(title, columns).of("call site", "call sites", parts.family_rows_total);
    for (number, family) in (1..).zip(&parts.families) {
        for row in &family.table.rows {
            let mut cells = Vec::new();
            cells.extend(several.then_some(Cell::Count(number)));
            cells.extend([Cell::from(&row.symbol), Cell::text(&row.cache), growth(row, view)]);
            cells.extend([Cell::Bytes(row.old_bytes), task_of(row), course(row)]);
            cells.push(row.since.map_or(Cell::Empty, |since| Cell::text(view.time(since))));
            cells.extend([Cell::Count(row.survivors), Cell::Bytes(row.bytes)]);
            cells.extend(evidence(row, view));
            table.row(cells);
        }
    }
    for sentence in aliases(parts) {
        table.explain("cache", sentence);
    }
    table.explain(
        "grown",
        "grown: live bytes of objects older than 3 times the usual lifetime at their call site.",
    );
    explain(&mut table);
    table
}

/// Other caches that the names of growing ones stand for.
fn aliases(parts: &TextParts) -> Vec<String> {
    let rows = parts.families.iter().flat_map(|family| &family.table.rows);
    let mut sentences: Vec<String> = Vec::new();
    for share in rows.filter_map(|row| row.caches.first()) {
        let Some(names) = share.aliases.as_deref().filter(|names| !names.is_empty()) else { continue };
        let names: Vec<String> = names.iter().map(|name| escaped(name.as_bytes())).collect();
        let sentence = format!("{} also stands for {}.", share.cache, listed(&names));
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    sentences
}

/// Call sites that do not grow, by verdict.
pub fn others(parts: &TextParts, view: &View) -> Table {
    let mut columns =
        vec![Column::whole("verdict"), Column::name("call site"), Column::text("cache").leaves(1)];
    columns.extend([Column::number("live bytes"), Column::number("live").leaves(2), OVER_TIME.leaves(3)]);
    columns.extend([Column::number("old bytes").leaves(8), growth_column(view).leaves(8)]);
    columns.extend(EVIDENCE);
    let title = if parts.families.is_empty() { "" } else { "other call sites" };
    let mut table = Table::new(title, columns).of("call site", "call sites", parts.others.total);
    for row in &parts.others.rows {
        let mut cells = vec![verdict(row), Cell::from(&row.symbol), Cell::text(&row.cache)];
        cells.extend([Cell::Bytes(row.bytes), Cell::Count(row.survivors), course(row)]);
        cells.extend([Cell::Bytes(row.old_bytes), growth(row, view)]);
        cells.extend(evidence(row, view));
        table.row(cells);
    }
    if parts.others.rows.iter().any(|row| row.verdict == Verdict::ImpliedFrees) {
        table.explain(
            "verdict",
            "frees have no event: the kernel may have freed these objects in bulk or by RCU.",
        );
    }
    explain(&mut table);
    table
}

/// Pages by call site, or by kind.
pub fn pages(
    title: &'static str,
    noun: (&'static str, &'static str),
    pages: &text_parts::LeakTable,
    view: &View,
) -> Table {
    let mut columns = vec![Column::whole("verdict"), Column::name(noun.0), Column::text("type").leaves(1)];
    columns.extend([Column::number("live bytes"), growth_column(view).leaves(2), OVER_TIME.leaves(3)]);
    columns.extend([Column::number("old bytes").leaves(8)]);
    columns.extend(EVIDENCE.into_iter().skip(1));
    let mut table = Table::new(title, columns).of(noun.0, noun.1, pages.total);
    for row in &pages.rows {
        let mut cells = vec![verdict(row), kind(row, view), Cell::text(&row.cache)];
        cells.extend([Cell::Bytes(row.bytes), growth(row, view), course(row), Cell::Bytes(row.old_bytes)]);
        cells.extend(evidence(row, view).into_iter().skip(1));
        table.row(cells);
    }
    table
}

fn growth_column(view: &View) -> Column {
    Column::number(if view.unit == ClockUnit::Ticks { "per 10^9 ticks" } else { "growth" })
}

fn growth(row: &LeakRow, view: &View) -> Cell {
    match view.unit {
        _ if row.old_bytes == 0 => Cell::Empty,
        ClockUnit::Ticks => Cell::Bytes(row.old_bytes_per_second),
        ClockUnit::Nanoseconds => Cell::BytesPerSecond(row.old_bytes_per_second),
    }
}

fn verdict(row: &LeakRow) -> Cell {
    let ink = if row.verdict.is_growth() { Ink::Bad } else { Ink::Plain };
    Cell::Verdict(row.verdict.words().to_owned(), ink)
}

/// Call site or kind of pages; flags lose their common prefix where the terminal is narrow.
fn kind(row: &LeakRow, view: &View) -> Cell {
    if view.look.is_wide() { Cell::from(&row.symbol) } else { Cell::symbol(row.symbol.replace("__GFP_", "")) }
}

/// The task with most objects.
fn task_of(row: &LeakRow) -> Cell {
    row.holders.first().map_or(Cell::Empty, |most| Cell::text(&most.task))
}

fn course(row: &LeakRow) -> Cell {
    Cell::Course(row.survivors_by_birth.to_vec())
}
