//! Tables of bytes allocated beyond those requested.

use super::internal::{InternalTables, Waste};
use crate::render::screen::{Cell, Column, RowTable, Screen, Table};
use crate::reports::common::shown::part;
use crate::reports::common::{ReportContext, View};

/// Rows of call sites and caches, unless more are allowed.
const ROWS: usize = 5;

/// Adds waste by kind, and by call site of kmalloc and cache.
pub fn add(screen: &mut Screen, rows: &InternalTables, context: &ReportContext<'_, '_>, view: &View) {
    let (first, last) = context.selection.span(context.session);
    let length = last.saturating_sub(first);
    let kinds = [
        ("kmalloc, size classes", rows.kmalloc.as_ref()),
        ("kmalloc, whole pages", rows.kmalloc_large.as_ref()),
        ("caches, own rounding", rows.caches.as_ref()),
    ];
    if kinds.iter().any(|(_, waste)| waste.is_some_and(|waste| waste.bytes_wasted > 0)) {
        let shown = |(_, waste): &(_, Option<&Waste>)| waste.is_none_or(|waste| waste.bytes_wasted > 0);
        let table = Table::of_rows("inside objects", kinds.into_iter().filter(shown))
            .column(Column::whole("kind"), |(name, _)| Cell::text(*name));
        let note = "mean waste: bytes allocated beyond those requested, on average over the window.";
        screen.table(with_waste(table, length, |(_, waste)| *waste).explain("mean waste", note));
    }
    let mut all: Vec<(Cell, &Waste)> = Vec::new();
    all.extend(rows.kmalloc_callers.iter().map(|row| (Cell::from(&row.symbol), &row.waste)));
    all.extend(rows.cache_rounding.iter().map(|row| (Cell::text(&row.cache), &row.waste)));
    all.sort_by_key(|(_, waste)| std::cmp::Reverse((waste.waste_time(), waste.bytes_wasted)));
    let total = rows.kmalloc_callers_total.unwrap_or(0) + rows.cache_rounding_total.unwrap_or(0);
    let table = Table::of_rows("", all.into_iter().take(part(view.limit, ROWS)))
        .of("call site or cache", "call sites and caches", total)
        .column(Column::name("kmalloc call site or cache"), |(name, _)| name.clone());
    screen.table(with_waste(table, length, |(_, waste)| Some(waste)));
}

/// Columns of waste: on average over a window of that length, of live objects, of all.
fn with_waste<R>(table: RowTable<R>, length: u64, of: impl Fn(&R) -> Option<&Waste>) -> RowTable<R> {
    table
        .column(Column::number("mean waste"), |r| {
            Cell::bytes(of(r).and_then(|w| w.wasted_on_average(length)))
        })
        .column(Column::number("mean %").leaves(5), |r| {
            Cell::percent(of(r).and_then(|w| w.percent_of_byte_time))
        })
        .column(Column::number("live waste").leaves(1), |r| {
            Cell::bytes(of(r).and_then(|w| w.bytes_wasted_live))
        })
        .column(Column::number("live %").leaves(2), |r| Cell::percent(of(r).and_then(|w| w.percent_of_live)))
        .column(Column::number("wasted").leaves(3), |r| Cell::bytes(of(r).map(|w| w.bytes_wasted)))
        .column(Column::number("waste %").leaves(4), |r| Cell::percent(of(r).map(|w| w.percent_of_alloc)))
}
