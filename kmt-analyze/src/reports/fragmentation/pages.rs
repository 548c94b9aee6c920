//! Free memory between pages: allocations from pageblocks of another migrate type, and free pages that large requests cannot use.
//!
//! Fallbacks are by severity, task and call site (collector `Fallbacks`). Zones have the kernel's indices before and after the
//! trace, from snapshots of /proc/buddyinfo.

use std::collections::HashMap;

use kmt_format::schema::EventClass;
use serde::Serialize;

use super::PageFragmentation;
use super::pageblocks::{self, ORDERS, order_columns};
use super::slabs::Traced;
use crate::collect::fallbacks::Fallback;
use crate::collect::page_use::Severity;
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{count, counted, escaped};
use crate::reports::common::View;
use crate::reports::common::cells::{is_more, part};
use crate::reports::common::rows::Address;
use crate::sort_rows::SortRows;
use crate::trace::meminfo::{self, Zone};

/// Kinds of fallbacks, unless more are allowed.
const FALLBACKS: usize = 5;

/// Adds free memory, fallbacks and pageblocks.
/// Given the order that free memory is judged by, and the bytes of a page.
pub fn add_pages(screen: &mut Screen, rows: &PageFragmentation, (order, page_size): (u8, u64), view: &View) {
    let is_all = view.look.wide || is_more(view.limit);
    if let Some(zones) = &rows.zones {
        screen.table(unusable(zones, order, page_size));
        screen.table(indices(zones, order, is_all));
    }
    if let Some(fallbacks) = rows.fallbacks.as_ref().filter(|table| table.events > 0) {
        screen.lines("fallbacks: pages from pageblocks of another migrate type", vec![sums(fallbacks)]);
        screen.table(self::fallbacks_table(fallbacks, view));
    }
    if let Some(pageblocks) = &rows.pageblocks {
        pageblocks::add_pageblocks(screen, pageblocks, view);
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
fn fallbacks_table(rows: &FallbackTable, view: &View) -> Table {
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

/// Allocations from pageblocks of another migrate type.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FallbackTable {
    /// Number of fallbacks.
    pub events: u64,
    /// Fallbacks below pageblock order, up to order 3.
    pub severe: u64,
    /// Fallbacks below pageblock order, of a larger order.
    pub moderate: u64,
    /// Fallbacks that changed the type of the pageblock to the requested one.
    pub type_changed: u64,
    /// log2 of the pages of a pageblock.
    pub pageblock_order: u32,
    /// True if the pageblock order is assumed, not recorded.
    pub pageblock_order_assumed: bool,
    /// Number of kinds of fallbacks.
    pub rows_total: usize,
    /// Kinds of fallbacks, the most severe first.
    pub rows: Vec<FallbackRow>,
}

/// Fallbacks with the same properties; `null`: the event lacks the property.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FallbackRow {
    /// `none`, `moderate`, `severe`.
    pub severity: Option<&'static str>,
    /// Number of fallbacks.
    pub count: u64,
    /// Requested migrate type.
    pub alloc_migratetype: Option<String>,
    /// Type of the allocated pages.
    pub fallback_migratetype: Option<String>,
    /// Requested order.
    pub alloc_order: Option<u32>,
    /// Order of the allocated pages.
    pub fallback_order: Option<u32>,
    /// The type of the pageblock changed to the requested one.
    pub type_changed: Option<bool>,
    /// Thread id.
    pub pid: i32,
    /// Name and id.
    pub task: String,
    /// Flags of the page allocation that followed.
    pub gfp_flags_text: Option<String>,
    /// Site of the slab allocation that needed the pages; `null`: none.
    pub call_site: Option<Address>,
    /// Function and offset of that site.
    pub symbol: Option<String>,
}

/// Rows of a trace; `None` if fallbacks were not recorded.
pub fn fallbacks(traced: &Traced<'_, '_, '_>, fallbacks: &HashMap<Fallback, u64>) -> Option<FallbackTable> {
    let is_it = |class: &EventClass| class.name == "mm_page_alloc_extfrag";
    if fallbacks.is_empty() && traced.context.recorded_class(is_it) != Some(true) {
        return None;
    }
    let (pageblock_order, pageblock_order_assumed) = traced.context.session.pageblock_order();
    let severity = |f: &Fallback| Some(Severity::of(f.fallback_order?.into(), pageblock_order.into()));
    let mut all: Vec<(&Fallback, u64)> = fallbacks.iter().map(|(f, n)| (f, *n)).collect();
    all.sort_rows_by_key(|(f, n)| (std::cmp::Reverse(severity(f)), std::cmp::Reverse(*n), **f));
    let sum = |is_it: &dyn Fn(&Fallback) -> bool| -> u64 {
        all.iter().filter(|(fallback, _)| is_it(fallback)).map(|(_, count)| count).sum()
    };
    let rows = all.iter().take(traced.context.limit);
    Some(FallbackTable {
        events: sum(&|_| true),
        severe: sum(&|f| severity(f) == Some(Severity::Severe)),
        moderate: sum(&|f| severity(f) == Some(Severity::Moderate)),
        type_changed: sum(&|f| f.change_ownership == Some(true)),
        pageblock_order,
        pageblock_order_assumed,
        rows_total: all.len(),
        rows: rows.map(|(f, count)| row(traced, f, severity(f), *count)).collect(),
    })
}

fn row(traced: &Traced<'_, '_, '_>, f: &Fallback, severity: Option<Severity>, count: u64) -> FallbackRow {
    let (interner, names) = (&traced.context.analysis.interner, &traced.context.analysis.migratetypes);
    let slab = f.slab_site.and_then(|site| interner.sites.get(site));
    let pages = f.page_site.and_then(|site| interner.pages.get(site));
    FallbackRow {
        severity: severity.map(Severity::name),
        count,
        alloc_migratetype: f.alloc_migratetype.map(|number| names.name(number)),
        fallback_migratetype: f.fallback_migratetype.map(|number| names.name(number)),
        alloc_order: f.alloc_order,
        fallback_order: f.fallback_order,
        type_changed: f.change_ownership,
        pid: f.pid,
        task: traced.context.labels().task(f.pid),
        gfp_flags_text: pages.map(|pages| escaped(&interner.gfp_text(pages.gfp_flags))),
        call_site: slab.map(|site| Address(site.call_site)),
        symbol: slab.map(|site| traced.context.labels().symbol(site.call_site)),
    }
}

/// Free pages of a zone.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ZoneRow {
    /// `before` or `after` the trace; empty: not recorded.
    pub when: &'static str,
    /// Node.
    pub node: u32,
    /// Zone.
    pub zone: String,
    /// Free pages.
    pub free_pages: u64,
    /// Free blocks by order.
    pub free_blocks: Vec<u64>,
    /// Share of the free pages that a request cannot use, by order, in thousandths, as mm/vmstat.c computes it.
    pub unusable_index: Vec<u64>,
    /// By order, in thousandths: -1000 the request would succeed, towards 0 it would fail for lack of memory, towards
    /// 1000 for fragmentation, as mm/vmstat.c computes it.
    pub extfrag_index: Vec<i64>,
}

impl ZoneRow {
    /// Name of the zone for people, escaped: `node 0 DMA32`.
    pub fn name(&self) -> String {
        format!("node {} {}", self.node, escaped(self.zone.as_bytes()))
    }

    /// Free pages in blocks below an order.
    pub fn unusable_pages(&self, order: u8) -> u64 {
        let below = self.free_blocks.iter().enumerate().take(order.into());
        below.fold(0, |sum, (order, &blocks)| sum.saturating_add(blocks.saturating_mul(1 << order)))
    }
}

/// Snapshots of /proc/buddyinfo, and when they were read.
const FILES: [(&str, &str); 3] =
    [("before", "buddyinfo.before"), ("after", "buddyinfo.after"), ("", "buddyinfo")];

/// Rows of a trace; `None` without a snapshot.
pub fn zones(traced: &Traced<'_, '_, '_>) -> Option<Vec<ZoneRow>> {
    let zones = |name: &str| traced.attachment(&[name]).map(meminfo::buddy).unwrap_or_default();
    let row = |when: &'static str, zone: Zone| {
        let orders = 0..zone.free.len();
        ZoneRow {
            when,
            node: zone.node,
            free_pages: zone.pages(),
            unusable_index: orders.clone().map(|order| zone.unusable_index(order)).collect(),
            extfrag_index: orders.map(|order| zone.extfrag_index(order)).collect(),
            zone: zone.name,
            free_blocks: zone.free,
        }
    };
    let rows =
        FILES.into_iter().flat_map(|(when, name)| zones(name).into_iter().map(move |zone| (when, zone)));
    let rows: Vec<ZoneRow> = rows.map(|(when, zone)| row(when, zone)).collect();
    (!rows.is_empty()).then_some(rows)
}
