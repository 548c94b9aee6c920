//! Tables of bytes allocated beyond those requested.

use super::internal::{InternalTables, Waste};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::reports::common::View;
use crate::reports::common::shown::part;

/// Rows of call sites and caches, unless more are allowed.
const ROWS: usize = 5;

/// Columns of waste.
const WASTE: [Column; 6] = [
    Column::number("mean waste"),
    Column::number("mean %").leaves(5),
    Column::number("live waste").leaves(1),
    Column::number("live %").leaves(2),
    Column::number("total waste").leaves(3),
    Column::number("total %").leaves(4),
];

/// Adds waste by kind, and by call site of kmalloc and cache.
pub fn add(screen: &mut Screen, rows: &InternalTables, view: &View) {
    let kinds = [
        ("kmalloc, size classes", rows.kmalloc.as_ref()),
        ("kmalloc, whole pages", rows.kmalloc_large.as_ref()),
        ("caches, own rounding", rows.caches.as_ref()),
    ];
    let columns = || WASTE.into_iter();
    let mut table = Table::new("inside objects", std::iter::once(Column::whole("kind")).chain(columns()));
    for (name, waste) in kinds {
        // A kind that wastes nothing is left out; one that was not recorded is unknown.
        if waste.is_none_or(|waste| waste.bytes_wasted > 0) {
            table.row(cells(Cell::text(name), waste));
        }
    }
    table.explain(
        "mean waste",
        "mean waste: bytes allocated beyond those requested, on average over the window.",
    );
    if kinds.iter().any(|(_, waste)| waste.is_some_and(|waste| waste.bytes_wasted > 0)) {
        screen.table(table);
    }
    let mut all: Vec<(Cell, &Waste)> = Vec::new();
    all.extend(rows.kmalloc_callers.iter().map(|row| (Cell::from(&row.symbol), &row.waste)));
    all.extend(rows.cache_rounding.iter().map(|row| (Cell::text(&row.cache), &row.waste)));
    let time = |waste: &Waste| waste.byte_time_wasted.as_ref().and_then(|time| time.parse::<u128>().ok());
    all.sort_by_key(|(_, waste)| std::cmp::Reverse((time(waste), waste.bytes_wasted)));
    let total = rows.kmalloc_callers_total.unwrap_or(0) + rows.cache_rounding_total.unwrap_or(0);
    let columns = std::iter::once(Column::name("kmalloc call site or cache")).chain(columns());
    let mut table = Table::new("", columns).of("call site or cache", "call sites and caches", total);
    for (name, waste) in all.into_iter().take(part(view.limit, ROWS)) {
        table.row(cells(name, Some(waste)));
    }
    screen.table(table);
}

/// Cells under a name and [`WASTE`].
fn cells(name: Cell, waste: Option<&Waste>) -> [Cell; 7] {
    [
        name,
        Cell::bytes(waste.and_then(|w| w.wasted_on_average)),
        Cell::percent(waste.and_then(|w| w.percent_of_byte_time)),
        Cell::bytes(waste.and_then(|w| w.bytes_wasted_live)),
        Cell::percent(waste.and_then(|w| w.percent_of_live)),
        Cell::bytes(waste.map(|w| w.bytes_wasted)),
        Cell::percent(waste.map(|w| w.percent_of_alloc)),
    ]
}
