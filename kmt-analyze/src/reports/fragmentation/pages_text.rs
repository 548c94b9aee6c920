//! Tables of fragmentation between pages.

use std::collections::BTreeSet;

use super::fallbacks::{FallbackRow, FallbackTable};
use super::pageblocks::{Pageblocks, ZoneBlocks};
use super::rows::PageFragmentation;
use super::zones::ZoneRow;
use crate::render::table::{Align, table};
use crate::render::text::{count, escaped, percent};
use crate::reports::common::View;
use crate::reports::common::known::NOT_RECORDED;
use crate::reports::common::shown::more;
use Align::{Left, Right};

/// Fallbacks that are shown at most.
const FALLBACKS_MAX: usize = 15;
/// Allocations of unmovable pages that are shown at most.
const CULPRITS_MAX: usize = 10;

/// Indices, fallbacks, pageblocks.
pub fn of(rows: &PageFragmentation, view: &View) -> String {
    let zones = rows.zones.as_ref().map_or_else(
        || "unusable_index and extfrag_index are not known: the file holds no /proc/buddyinfo\n".to_owned(),
        |zones| self::zones(zones),
    );
    let fallbacks = rows.fallbacks.as_ref().map_or_else(
        || "fallbacks: not recorded (kmem:mm_page_alloc_extfrag), or none happened\n".to_owned(),
        |fallbacks| self::fallbacks(fallbacks, view),
    );
    let pageblocks = rows.pageblocks.as_ref().map_or_else(
        || "pageblocks: page events were not recorded\n".to_owned(),
        |pageblocks| self::pageblocks(pageblocks, view),
    );
    format!("BETWEEN PAGES\n{zones}\n{fallbacks}\n{pageblocks}")
}

/// The kernel's indices by zone and order.
fn zones(zones: &[ZoneRow]) -> String {
    let thousandths = |value: f64| format!("{:.3}", value / 1000.0);
    let mut rows: Vec<Vec<String>> = Vec::new();
    for zone in zones {
        let name = format!("{}/{} {}", zone.node, escaped(zone.zone.as_bytes()), zone.when);
        let unusable = zone.unusable_index.iter().map(|value| thousandths(*value as f64));
        let extfrag = zone.extfrag_index.iter().map(|value| thousandths(*value as f64));
        let first = [name, count(zone.free_pages), "unusable".to_owned()];
        rows.push(first.into_iter().chain(unusable).collect());
        let first = [String::new(), String::new(), "extfrag".to_owned()];
        rows.push(first.into_iter().chain(extfrag).collect());
    }
    let orders = zones.iter().map(|zone| zone.free_blocks.len()).max().unwrap_or(0);
    let headings: Vec<String> = (0..orders).map(|order| order.to_string()).collect();
    let mut columns = vec![("node/zone", Left), ("free pages", Right), ("by order", Left)];
    columns.extend(headings.iter().map(|heading| (heading.as_str(), Right)));
    let meaning = "unusable: share of the free pages that a request of that order cannot use. extfrag: -1 it would succeed, towards 0 it would fail for lack of memory, towards 1 for fragmentation. Pages on per-CPU lists are in neither.\n";
    format!("{}{meaning}", table(&columns, &rows))
}

/// Fallbacks, the most severe first.
fn fallbacks(rows: &FallbackTable, view: &View) -> String {
    let cells: Vec<Vec<String>> =
        rows.rows.iter().take(view.limit.min(FALLBACKS_MAX)).map(fallback).collect();
    let columns = [
        ("severity", Left),
        ("times", Right),
        ("type", Left),
        ("order", Left),
        ("block changes type", Left),
        ("task", Left),
        ("gfp_flags", Left),
        ("for a slab object of", Left),
    ];
    format!(
        "fallbacks: {} pages came from blocks of another type: {} severe, {} moderate, {} changed the block's type (pageblock order {}{})\n{}{}",
        count(rows.events),
        count(rows.severe),
        count(rows.moderate),
        count(rows.type_changed),
        rows.pageblock_order,
        if rows.pageblock_order_assumed { ", assumed" } else { "" },
        table(&columns, &cells),
        more(cells.len(), rows.rows_total, "kinds")
    )
}

fn fallback(row: &FallbackRow) -> Vec<String> {
    let known = |text: Option<&str>| text.unwrap_or(NOT_RECORDED).to_owned();
    let order = |order: Option<u32>| order.map_or(NOT_RECORDED.to_owned(), |order| order.to_string());
    let (asked, taken) = (row.alloc_migratetype.as_deref(), row.fallback_migratetype.as_deref());
    vec![
        known(row.severity),
        count(row.count),
        format!("{} from {}", known(asked), known(taken)),
        format!("{} from {}", order(row.alloc_order), order(row.fallback_order)),
        known(row.type_changed.map(|changed| if changed { "yes" } else { "no" })),
        row.task.clone(),
        row.gfp_flags_text.clone().unwrap_or_default(),
        row.symbol.clone().unwrap_or_default(),
    ]
}

/// Pageblocks of mixed types.
fn pageblocks(rows: &Pageblocks, view: &View) -> String {
    let all = rows.blocks_with_live_pages as u64;
    let mut out = format!(
        "pageblocks: {} hold live pages of the trace, {} ({}) of more than one type, {} ({}) of more than one order; {} movable ones hold pages that cannot be moved\n",
        count(all),
        count(rows.blocks_mixed),
        percent(rows.blocks_mixed, all),
        count(rows.blocks_of_mixed_orders),
        percent(rows.blocks_of_mixed_orders, all),
        count(rows.movable_blocks_with_unmovable_pages)
    );
    out.push_str(&by_type(rows));
    out.push_str(&culprits(rows, view));
    if let (Some(before), Some(after)) = (&rows.blocks_by_type_before, &rows.blocks_by_type_after) {
        out.push_str(&all_blocks(before, after));
    }
    out.push_str("A block's type is that of most pages served from it without falling back; before its first event it is not known. What was allocated before the trace is in no block.\n");
    out
}

/// Blocks and pages by type, and the pages by order.
fn by_type(rows: &Pageblocks) -> String {
    let orders: BTreeSet<u8> = rows.by_order_and_migratetype.iter().map(|row| row.order).collect();
    let headings: Vec<String> = orders.iter().map(|order| format!("order {order}")).collect();
    let mut columns = vec![("asked for", Left), ("in blocks", Right), ("live pages", Right)];
    columns.extend(headings.iter().map(|heading| (heading.as_str(), Right)));
    let of_order = |name: &str, order: u8| -> u64 {
        let rows = rows.by_order_and_migratetype.iter();
        rows.filter(|row| row.order == order && row.migratetype == name).map(|row| row.pages).sum()
    };
    let cells: Vec<Vec<String>> = rows
        .by_migratetype
        .iter()
        .map(|row| {
            let by_order = orders.iter().map(|&order| count(of_order(&row.migratetype, order)));
            let first = [row.migratetype.clone(), count(row.blocks), count(row.pages)];
            first.into_iter().chain(by_order).collect()
        })
        .collect();
    table(&columns, &cells)
}

/// Unmovable pages in movable blocks.
fn culprits(rows: &Pageblocks, view: &View) -> String {
    if rows.culprits_total == 0 {
        return String::new();
    }
    let cells: Vec<Vec<String>> = rows
        .culprits
        .iter()
        .take(view.limit.min(CULPRITS_MAX))
        .map(|row| {
            let (order, flags) = (row.order.to_string(), row.gfp_flags_text.clone());
            vec![row.task.clone(), order, flags, count(row.blocks), count(row.pages)]
        })
        .collect();
    let columns = [
        ("unmovable in movable blocks", Left),
        ("order", Right),
        ("gfp_flags", Left),
        ("blocks", Right),
        ("pages", Right),
    ];
    format!("\n{}{}", table(&columns, &cells), more(cells.len(), rows.culprits_total, "kinds"))
}

/// All pageblocks by type, before and after.
fn all_blocks(before: &[ZoneBlocks], after: &[ZoneBlocks]) -> String {
    let types = before.first().map(|zone| zone.types.as_slice()).unwrap_or_default();
    let mut columns = vec![("all blocks by type", Left)];
    columns.extend(types.iter().map(|of_type| (of_type.migratetype.as_str(), Right)));
    let rows: Vec<Vec<String>> = before
        .iter()
        .zip(after)
        .map(|(before, after)| {
            let name = format!("{}/{}", before.node, escaped(before.zone.as_bytes()));
            let cells = before.types.iter().zip(&after.types).map(|(before, after)| {
                match after.blocks == before.blocks {
                    true => count(after.blocks),
                    false => format!("{} (was {})", count(after.blocks), count(before.blocks)),
                }
            });
            std::iter::once(name).chain(cells).collect()
        })
        .collect();
    format!("\n{}", table(&columns, &rows))
}
