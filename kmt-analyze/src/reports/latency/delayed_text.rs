//! The table of allocations that waited.

use super::rows::LatencyTables;
use crate::render::screen::{Cell, Column, Ink, Table};
use crate::reports::common::View;

/// Allocations that waited, the longest waits first.
pub fn table(latency: &LatencyTables, view: &View) -> Table {
    let columns = [
        Column::number("order"),
        Column::name("gfp flags"),
        Column::text("migrate type").leaves(3),
        Column::name("slab call site").leaves(2),
        Column::whole("result").leaves(1),
        Column::text("stall").leaves(4),
        Column::number("waits"),
        Column::number("total"),
        Column::number("max"),
    ];
    let total = latency.delayed_allocations_total;
    let mut table = Table::new("page allocations that waited", columns).of("kind", "kinds", total);
    for row in &latency.delayed_allocations {
        let failed = Cell::Verdict("failed".to_owned(), Ink::Bad);
        table.row([
            Cell::Count(row.order.into()),
            Cell::text(&row.gfp_flags_text),
            Cell::text(&row.migratetype),
            row.symbol.as_ref().map_or(Cell::Empty, Cell::symbol),
            if row.failed { failed } else { Cell::Empty },
            Cell::text(&row.name),
            Cell::Count(row.count),
            view.duration_cell(Some(row.total)),
            view.duration_cell(Some(row.max)),
        ]);
    }
    table.explain("slab call site", "slab call site: the slab allocation that needed the page.");
    table
}
