//! Tables of `leaks`: call sites that grow, by group; other call sites; pages by call site or by kind.
//!
//! Rows come from `text_parts`, and `text` puts the tables on the screen. The numbers that a verdict rests on are the first columns
//! to leave on a narrow terminal; growth and task stay.

use kmt_format::kernel::ClockUnit;

use super::row::LeakRow;
use super::text_parts::{self, TextParts};
use crate::render::screen::{Cell, Column, Ink, RowTable, Table};
use crate::render::words::{escaped, listed};
use crate::reports::common::View;
use crate::reports::leaks::judge::verdict::Verdict;

const OVER_TIME: Column = Column::whole("over time");
/// Order in which columns leave: those of evidence first, then the course over time; growth, task and since stay.
const OVER_TIME_LEAVES: u8 = 6;

/// Columns of numbers that a verdict rests on; they leave first.
fn with_evidence<R>(table: RowTable<R>, of: impl Fn(&R) -> &LeakRow, view: &View) -> RowTable<R> {
    let share = |row: &LeakRow| Cell::share(row.old_survivors, row.allocations_of_that_age);
    let p99 = |p99: Option<u64>| p99.map_or(Cell::Empty, |p99| Cell::Duration(p99, view.unit));
    let steps = |row: &LeakRow| Cell::text(format!("{}/{}", row.steps_with_survivors, row.steps));
    let halves = |row: &LeakRow| Cell::text(format!("{}, {}", row.first_half, row.second_half));
    table
        .column(Column::number("not freed").leaves(10), |row| share(of(row)))
        .column(Column::number("freed within").leaves(11), |row| p99(of(row).lifetime_p99))
        .column(Column::whole("steps").leaves(12), |row| steps(of(row)))
        .column(Column::whole("halves").leaves(13), |row| halves(of(row)))
}

/// The column of old objects, and meanings of the columns that both tables of call sites have.
fn with_old<R>(table: RowTable<R>, of: impl Fn(&R) -> &LeakRow) -> RowTable<R> {
    table
        .column(Column::number("old objects").leaves(9), |row| Cell::Count(of(row).old_survivors))
        .explain("over time", "over time: live objects by the time of their allocation, over the window.")
        .explain(
            "old objects",
            "old objects: older than 3 times the lifetime of 99 of 100 freed ones, and than 1/8 of the window.",
        )
        .explain("not freed", "not freed: old objects as a share of the allocations in their time.")
        .explain("freed within", "freed within: time in which 99 of 100 freed objects were freed.")
        .explain(
            "steps",
            "steps: of 32 parts of the window, those with old objects, of those that can have some.",
        )
        .explain("halves", "halves: old objects of the first and the second half of these steps.")
}

/// Call sites that grow, by family.
pub fn growing(parts: &TextParts, view: &View) -> Table {
    let several = parts.families.len() > 1;
    let title = if several { "growing, by group of call sites" } else { "growing together" };
    let title = if parts.family_rows_total == 1 { "" } else { title };
    let families = (1..).zip(&parts.families);
    let rows = families.flat_map(|(number, family)| family.table.rows.iter().map(move |row| (number, row)));
    let since = |since: Option<u64>| since.map_or(Cell::Empty, |since| Cell::text(view.time(since)));
    let mut table = Table::of_rows(title, rows)
        .of("call site", "call sites", parts.family_rows_total)
        .column_if(several, Column::number("group"), |(number, _)| Cell::Count(*number))
        .column(Column::name("call site"), |(_, row)| Cell::from(&row.symbol))
        .column(Column::text("cache").leaves(1), |(_, row)| Cell::text(&row.cache))
        .column(growth_column(view), |(_, row)| growth(row, view))
        .column(Column::number("grown"), |(_, row)| Cell::Bytes(row.old_bytes))
        .column(Column::name("task").leaves(2), |(_, row)| task_of(row))
        .column(Column::text("since").leaves(3), |(_, row)| since(row.since))
        .column(OVER_TIME.leaves(OVER_TIME_LEAVES), |(_, row)| sparkline(row))
        .column(Column::number("live objects").leaves(7), |(_, row)| Cell::Count(row.survivors))
        .column(Column::number("live").leaves(8), |(_, row)| Cell::Bytes(row.bytes));
    for sentence in aliases(parts) {
        table = table.explain("cache", sentence);
    }
    let table = table.explain(
        "grown",
        "grown: live bytes of objects older than 3 times the usual lifetime at their call site; growth: these bytes by the time in which they were allocated, not by the whole window.",
    );
    with_evidence(with_old(table, |(_, row)| row), |(_, row)| row, view).into()
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
    let title = if parts.families.is_empty() { "" } else { "other call sites" };
    let table = Table::of_rows(title, &parts.others.rows)
        .of("call site", "call sites", parts.others.total)
        .column(Column::whole("verdict"), |row| verdict(row))
        .column(Column::name("call site"), |row| Cell::from(&row.symbol))
        .column(Column::text("cache").leaves(1), |row| Cell::text(&row.cache))
        .column(Column::number("live"), |row| Cell::Bytes(row.bytes))
        .column(Column::number("live objects").leaves(4), |row| Cell::Count(row.survivors))
        .column(OVER_TIME.leaves(OVER_TIME_LEAVES), |row| sparkline(row))
        .column(Column::number("old bytes").leaves(8), |row| Cell::Bytes(row.old_bytes))
        .column(growth_column(view).leaves(2), |row| growth(row, view));
    let table = with_meanings(table, &parts.others.rows);
    with_evidence(with_old(table, |row| row), |row| row, view).into()
}

/// Explains the verdicts that occur.
fn with_meanings<R>(mut table: RowTable<R>, rows: &[LeakRow]) -> RowTable<R> {
    for verdict in Verdict::ALL.into_iter().filter(|verdict| rows.iter().any(|row| row.verdict == *verdict)) {
        table = table.explain("verdict", format!("{}: {}.", verdict.words(), verdict.meaning()));
    }
    table
}

/// Pages by call site, or by kind.
pub fn pages(
    title: &'static str,
    noun: (&'static str, &'static str),
    pages: &text_parts::LeakTable,
    view: &View,
) -> Table {
    let table = Table::of_rows(title, &pages.rows)
        .of(noun.0, noun.1, pages.total)
        .column(Column::whole("verdict"), |row| verdict(row))
        .column(Column::name(noun.0), |row| kind(row, view))
        .column(Column::text("type").leaves(1), |row| Cell::text(&row.cache))
        .column(Column::number("live"), |row| Cell::Bytes(row.bytes))
        .column(growth_column(view).leaves(2), |row| growth(row, view))
        .column(OVER_TIME.leaves(OVER_TIME_LEAVES), |row| sparkline(row))
        .column(Column::number("old bytes").leaves(8), |row| Cell::Bytes(row.old_bytes));
    with_evidence(with_meanings(table, &pages.rows), |row| row, view).into()
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
    if view.look.wide { Cell::from(&row.symbol) } else { Cell::symbol(row.symbol.replace("__GFP_", "")) }
}

/// The task with most objects.
fn task_of(row: &LeakRow) -> Cell {
    row.holders.first().map_or(Cell::Empty, |most| Cell::text(&most.task))
}

fn sparkline(row: &LeakRow) -> Cell {
    Cell::Sparkline(row.survivors_by_birth.to_vec())
}
