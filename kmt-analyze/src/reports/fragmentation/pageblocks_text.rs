//! Tables of pageblocks.

use std::collections::{BTreeSet, HashMap};

use super::order_columns::{LARGER, ORDERS};
use super::pageblocks::{Pageblocks, ZoneBlocks};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::text::{count, escaped};
use crate::render::words::{counted, share};
use crate::reports::common::View;
use crate::reports::common::shown::{is_more, part};

/// Allocations of unmovable pages, unless more are allowed.
const UNMOVABLE: usize = 5;

/// Adds mixed pageblocks, unmovable pages in movable blocks, and changed types.
pub fn add(screen: &mut Screen, rows: &Pageblocks, view: &View) {
    let is_all = view.look.is_wide() || is_more(view.limit);
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
    let place = |order: u8| usize::from(order).min(ORDERS.len());
    let orders: BTreeSet<usize> = rows.by_order_and_migratetype.iter().map(|row| place(row.order)).collect();
    let mut columns =
        vec![Column::whole("migrate type"), Column::number("pageblocks"), Column::number("live pages")];
    // Most pages are of low orders: high ones leave first.
    let column = |order: usize| ORDERS.get(order).unwrap_or(&LARGER).clone().leaves(order as u8 + 1);
    columns.extend(orders.iter().map(|&order| column(order)));
    let mut pages: HashMap<(&str, usize), u64> = HashMap::new();
    for row in &rows.by_order_and_migratetype {
        *pages.entry((&row.migratetype, place(row.order))).or_default() += row.pages;
    }
    let of_order = |name, order| pages.get(&(name, order)).copied().unwrap_or_default();
    let mut table = Table::new("", columns);
    for row in &rows.by_migratetype {
        let first = [Cell::text(&row.migratetype), Cell::Count(row.blocks), Cell::Count(row.pages)];
        let by_order = orders.iter().map(|&order| Cell::Count(of_order(row.migratetype.as_str(), order)));
        table.row(first.into_iter().chain(by_order));
    }
    table
}

/// Unmovable pages in movable blocks.
fn unmovable(rows: &Pageblocks, view: &View) -> Table {
    let columns = [
        Column::name("task"),
        Column::number("pageblocks"),
        Column::number("pages"),
        Column::number("order").leaves(1),
        Column::text("gfp_flags").leaves(2),
    ];
    let title = "unmovable pages in movable pageblocks";
    let mut table = Table::new(title, columns).of("group", "groups", rows.culprits_total);
    for row in rows.culprits.iter().take(part(view.limit, UNMOVABLE)) {
        table.row([
            Cell::text(&row.task),
            Cell::Count(row.blocks),
            Cell::Count(row.pages),
            Cell::Count(row.order.into()),
            Cell::text(&row.gfp_flags_text),
        ]);
    }
    table.explain(
        "pageblocks",
        "The type of a pageblock is that of most pages allocated in it without a fallback; pages older than the trace are not counted.",
    );
    table
}

/// All pageblocks by type, before and after; those that changed, or all.
fn all_blocks(before: &[ZoneBlocks], after: &[ZoneBlocks], is_all: bool) -> Table {
    let columns = [
        Column::name("zone"),
        Column::whole("migrate type"),
        Column::number("before"),
        Column::number("after"),
        Column::number("change"),
    ];
    let title = if is_all { "all pageblocks, by type" } else { "all pageblocks, types that changed" };
    let mut table = Table::new(title, columns);
    for (before, after) in before.iter().zip(after) {
        let zone = format!("node {} {}", before.node, escaped(before.zone.as_bytes()));
        for (before, after) in before.types.iter().zip(&after.types) {
            if is_all || before.blocks != after.blocks {
                table.row([
                    Cell::text(&zone),
                    Cell::text(escaped(before.migratetype.as_bytes())),
                    Cell::Count(before.blocks),
                    Cell::Count(after.blocks),
                    Cell::Change(after.blocks.wrapping_sub(before.blocks) as i64),
                ]);
            }
        }
    }
    table
}
