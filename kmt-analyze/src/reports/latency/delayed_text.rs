//! The table of allocations that waited.

use super::rows::LatencyTables;
use crate::render::screen::{Cell, Column, Ink, Table};
use crate::reports::common::View;

/// Allocations that waited, the longest waits first.
pub fn table(latency: &LatencyTables, view: &View) -> Table {
    let result = |failed: bool| match failed {
        true => Cell::Verdict("failed".to_owned(), Ink::Bad),
        false => Cell::Empty,
    };
    let name = |key| latency.kinds.iter().find(|kind| kind.kind == key).map_or("", |kind| &kind.name);
    Table::of_rows("page allocations that waited", &latency.delayed_allocations)
        .of("kind", "kinds", latency.delayed_allocations_total)
        .column(Column::number("order"), |row| Cell::Count(row.order.into()))
        .column(Column::name("gfp flags"), |row| Cell::text(&row.gfp_flags_text))
        .column(Column::text("migrate type").leaves(3), |row| Cell::text(&row.migratetype))
        .column(Column::name("slab call site").leaves(2), |row| {
            row.symbol.as_ref().map_or(Cell::Empty, Cell::symbol)
        })
        .column(Column::whole("result").leaves(1), |row| result(row.failed))
        .column(Column::text("stall").leaves(4), |row| Cell::text(name(row.kind)))
        .column(Column::number("waits"), |row| Cell::Count(row.count))
        .column(Column::number("total"), |row| view.duration_cell(Some(row.total)))
        .column(Column::number("max"), |row| view.duration_cell(Some(row.max)))
        .explain("slab call site", "slab call site: the slab allocation that needed the page.")
        .into()
}
