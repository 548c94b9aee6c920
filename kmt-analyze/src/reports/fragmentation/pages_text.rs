//! Tables of free memory, and of pages from pageblocks of another migrate type.

use super::fallbacks::FallbackTable;
use super::order_columns::{ORDERS, order_columns};
use super::pageblocks_text;
use super::rows::PageFragmentation;
use super::zones::ZoneRow;
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{count, counted};
use crate::reports::common::View;
use crate::reports::common::shown::{is_more, part};

/// Kinds of fallbacks, unless more are allowed.
const FALLBACKS: usize = 5;

/// Adds free memory, fallbacks and pageblocks.
/// Given the order that free memory is judged by, and the bytes of a page.
pub fn add(screen: &mut Screen, rows: &PageFragmentation, (order, page_size): (u8, u64), view: &View) {
    let is_all = view.look.wide || is_more(view.limit);
    if let Some(zones) = &rows.zones {
        screen.table(unusable(zones, order, page_size));
        screen.table(indices(zones, order, is_all));
    }
    if let Some(fallbacks) = rows.fallbacks.as_ref().filter(|table| table.events > 0) {
        screen.lines("fallbacks: pages from pageblocks of another migrate type", vec![sums(fallbacks)]);
        screen.table(self::fallbacks(fallbacks, view));
    }
    if let Some(pageblocks) = &rows.pageblocks {
        pageblocks_text::add(screen, pageblocks, view);
    }
}

/// Columns of the orders that there are, after others; that of `kept` never leaves.
fn columns(zones: &[ZoneRow], kept: u8, first: impl IntoIterator<Item = Column>) -> Vec<Column> {
    let orders = zones.iter().map(|zone| zone.free_blocks.len()).max().unwrap_or(0);
    let column = |(order, column): (usize, Column)| {
        if order == usize::from(kept) { column.leaves(0) } else { column }
    };
    first.into_iter().chain(order_columns().take(orders).enumerate().map(column)).collect()
}

/// Free memory that requests of each order cannot use.
fn unusable(zones: &[ZoneRow], order: u8, page_size: u64) -> Table {
    let first = [Column::name("zone"), Column::whole("when"), Column::number("free")];
    let title = "between pages: % of free memory that a request of this order cannot use";
    let mut table = Table::new(title, columns(zones, order, first));
    for zone in zones {
        let free = Cell::Bytes(zone.free_pages.saturating_mul(page_size));
        let first = [Cell::text(zone.name()), Cell::text(zone.when), free];
        // Thousandths are shown as percent, without loss.
        let indices = zone.unusable_index.iter().map(|&index| Cell::Percent(index as f64 / 10.0));
        table.row(first.into_iter().chain(indices).take(3 + ORDERS));
    }
    table
}

/// Causes of failure of requests of each order, where some would fail.
fn indices(zones: &[ZoneRow], order: u8, is_all: bool) -> Table {
    let first = [Column::name("zone"), Column::whole("when")];
    let title = "requests of this order that would fail: 0 for lack of memory, 1 for fragmentation";
    let mut table = Table::new(title, columns(zones, order, first));
    let would_fail = |zone: &&ZoneRow| zone.extfrag_index.iter().any(|&index| index != SUCCESS);
    for zone in zones.iter().filter(|zone| is_all || would_fail(zone)) {
        let first = [Cell::text(zone.name()), Cell::text(zone.when)];
        let index = |&index: &i64| match index {
            SUCCESS if !is_all => Cell::Empty,
            index => Cell::text(format!("{:.3}", index as f64 / 1000.0)),
        };
        table.row(first.into_iter().chain(zone.extfrag_index.iter().map(index)).take(2 + ORDERS));
    }
    if is_all {
        table.explain("zone", "-1.000: a request of this order would succeed.");
    }
    table
}

/// Index of a request that would succeed, in thousandths.
const SUCCESS: i64 = -1000;

/// Fallbacks by severity.
fn sums(rows: &FallbackTable) -> String {
    let mut parts = Vec::new();
    if rows.severe > 0 {
        parts.push(format!("{} severe (up to order 3)", count(rows.severe)));
    }
    if rows.moderate > 0 {
        let largest = rows.pageblock_order.saturating_sub(1);
        parts.push(format!("{} moderate (order 4 to {largest})", count(rows.moderate)));
    }
    if rows.type_changed > 0 {
        parts.push(format!("{} changed the type of the pageblock", count(rows.type_changed)));
    }
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    let assumed = match rows.pageblock_order_assumed {
        true => format!("; pageblock order {} is assumed", rows.pageblock_order),
        false => String::new(),
    };
    format!("{}{parts}{assumed}", counted(rows.events, "fallback", "fallbacks"))
}

/// Fallbacks, the most severe first.
fn fallbacks(rows: &FallbackTable, view: &View) -> Table {
    let known = |text: Option<&str>| text.map_or(Cell::Unknown, Cell::text);
    let pages = |kind: Option<&str>, order: Option<u32>| match kind.zip(order) {
        Some((kind, order)) => Cell::text(format!("{kind} order {order}")),
        None => known(kind),
    };
    let is_changed = |changed: bool| if changed { "yes" } else { "no" };
    Table::of_rows("", rows.rows.iter().take(part(view.limit, FALLBACKS)))
        .of("kind of fallback", "kinds of fallbacks", rows.rows_total)
        .column(Column::number("events"), |row| Cell::Count(row.count))
        .column(Column::whole("severity").leaves(2), |row| known(row.severity))
        .column(Column::whole("requested").leaves(1), |r| {
            pages(r.alloc_migratetype.as_deref(), r.alloc_order)
        })
        .column(Column::whole("taken from"), |r| pages(r.fallback_migratetype.as_deref(), r.fallback_order))
        .column(Column::whole("type changed").leaves(5), |row| known(row.type_changed.map(is_changed)))
        .column(Column::name("task"), |row| Cell::text(&row.task))
        .column(Column::text("gfp_flags").leaves(3), |row| {
            row.gfp_flags_text.as_deref().map_or(Cell::Empty, Cell::text)
        })
        .column(Column::name("for slab objects of").leaves(4), |row| {
            row.symbol.as_deref().map_or(Cell::Empty, Cell::symbol)
        })
        .into()
}
