//! Tables of pageblocks.

use std::collections::{BTreeSet, HashMap};

use super::order_columns::{LARGER, ORDERS, order_columns};
use super::pageblocks::{Pageblocks, ZoneBlocks};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{count, counted, escaped, share};
use crate::reports::common::View;
use crate::reports::common::shown::{is_more, part};

/// Allocations of unmovable pages, unless more are allowed.
const UNMOVABLE: usize = 5;

/// Adds mixed pageblocks, unmovable pages in movable blocks, and changed types.
pub fn add(screen: &mut Screen, rows: &Pageblocks, view: &View) {
    let is_all = view.look.wide || is_more(view.limit);
    let is_mixed =
        rows.blocks_mixed + rows.blocks_of_mixed_orders + rows.movable_blocks_with_unmovable_pages > 0;
    if rows.blocks_with_live_pages > 0 && (is_mixed || is_all) {
        screen.lines("pageblocks with live pages of the trace", vec![sums(rows)]);
        screen.table(by_type(rows));
    }
    screen.table(unmovable(rows, view));
    if let (Some(before), Some(after)) = (&rows.blocks_by_type_before, &rows.blocks_by_type_after) {
        screen.table(all_blocks(before, after, is_all));
    }
}

/// Blocks of several types or orders.
fn sums(rows: &Pageblocks) -> String {
    let all = rows.blocks_with_live_pages as u64;
    let part = |number: u64, of: &str| format!("{} ({}) {of}", count(number), share(number, all));
    let parts = [
        (rows.blocks_mixed, "with several migrate types"),
        (rows.blocks_of_mixed_orders, "with several orders"),
        (rows.movable_blocks_with_unmovable_pages, "movable with unmovable pages"),
    ];
    let parts = parts.iter().filter(|(number, _)| *number > 0).map(|(number, of)| part(*number, of));
    let all = counted(all, "pageblock", "pageblocks");
    std::iter::once(all).chain(parts).collect::<Vec<_>>().join(", ")
}

/// Blocks and pages by type, and the pages by order.
fn by_type(rows: &Pageblocks) -> Table {
    let place = |order: u8| usize::from(order).min(ORDERS);
    let orders: BTreeSet<usize> = rows.by_order_and_migratetype.iter().map(|row| place(row.order)).collect();
    let mut pages: HashMap<(&str, usize), u64> = HashMap::new();
    for row in &rows.by_order_and_migratetype {
        *pages.entry((&row.migratetype, place(row.order))).or_default() += row.pages;
    }
    let of_order = |name, order| pages.get(&(name, order)).copied().unwrap_or_default();
    let mut table = Table::of_rows("", &rows.by_migratetype)
        .column(Column::whole("migrate type"), |row| Cell::text(&row.migratetype))
        .column(Column::number("pageblocks"), |row| Cell::Count(row.blocks))
        .column(Column::number("live pages"), |row| Cell::Count(row.pages));
    for &order in &orders {
        let column = order_columns().nth(order).unwrap_or(LARGER).leaves(order as u8 + 1);
        table = table.column(column, |row| Cell::Count(of_order(row.migratetype.as_str(), order)));
    }
    table.into()
}

/// Unmovable pages in movable blocks.
fn unmovable(rows: &Pageblocks, view: &View) -> Table {
    let shown = rows.culprits.iter().take(part(view.limit, UNMOVABLE));
    Table::of_rows("unmovable pages in movable pageblocks", shown)
        .of("group", "groups", rows.culprits_total)
        .column(Column::name("task"), |row| Cell::text(&row.task))
        .column(Column::number("pageblocks"), |row| Cell::Count(row.blocks))
        .column(Column::number("pages"), |row| Cell::Count(row.pages))
        .column(Column::number("order").leaves(1), |row| Cell::Count(row.order.into()))
        .column(Column::text("gfp_flags").leaves(2), |row| Cell::text(&row.gfp_flags_text))
        .explain(
            "pageblocks",
            "The type of a pageblock is that of most pages allocated in it without a fallback; pages older than the trace are not counted.",
        )
        .into()
}

/// All pageblocks by type, before and after; those that changed, or all.
fn all_blocks(before: &[ZoneBlocks], after: &[ZoneBlocks], is_all: bool) -> Table {
    let title = if is_all { "all pageblocks, by type" } else { "all pageblocks, types that changed" };
    let zones = before.iter().zip(after);
    let types = zones.flat_map(|(zone, after)| {
        zone.types.iter().zip(&after.types).map(move |(before, after)| (zone, before, after))
    });
    let change = |before: u64, after: u64| Cell::Change(after.wrapping_sub(before) as i64);
    Table::of_rows(title, types.filter(|(_, before, after)| is_all || before.blocks != after.blocks))
        .column(Column::name("zone"), |(zone, ..)| {
            Cell::text(format!("node {} {}", zone.node, escaped(zone.zone.as_bytes())))
        })
        .column(Column::whole("migrate type"), |(_, of, _)| Cell::text(escaped(of.migratetype.as_bytes())))
        .column(Column::number("before"), |(_, before, _)| Cell::Count(before.blocks))
        .column(Column::number("after"), |(.., after)| Cell::Count(after.blocks))
        .column(Column::number("change"), |(_, before, after)| change(before.blocks, after.blocks))
        .into()
}
