//! The table of slab objects.

use super::shown;
use super::slab::{BothTotals, InterfaceTotals, SlabTotals};
use crate::render::screen::{Cell, Column, Table};
use crate::reports::common::View;
use crate::reports::common::cells::at_most;
use crate::reports::common::rows::Estimated;

/// Balance of all slab objects, those of kmalloc, and those of caches. `--wide` has rows of zeros, too.
pub fn table(slab: &BothTotals, is_bounded: bool, view: &View) -> Table {
    let columns = [
        Column::text("slab objects"),
        Column::number("total"),
        Column::number("kmalloc"),
        Column::number("caches"),
    ];
    let mut table = Table::new("", columns);
    let mut all = allocations(slab);
    all.extend(shown::estimated(slab).iter().flat_map(|total| estimates(slab, total)));
    all.extend(frees(slab, view.is_lossy));
    all.extend(lives(slab));
    if is_bounded {
        all.extend(live_at_most(slab));
    }
    all.extend(others(slab));
    for (name, cells) in all {
        if view.look.wide || is_shown(name, &cells) {
            table.row(std::iter::once(Cell::text(name)).chain(cells));
        }
    }
    if is_bounded && view.is_lossy && slab.bytes_live_range.is_some() {
        table.explain(
            "slab objects",
            "Live at most: all objects of these caches in /proc/slabinfo, also those allocated before the trace.",
        );
    }
    table
}

/// A row: its name, and its cells for the total, kmalloc and caches.
type TextRow = (&'static str, [Cell; 3]);

/// True if it is a part of another row that is known, or a row of its own that is not zero.
fn is_shown(name: &str, cells: &[Cell; 3]) -> bool {
    let is_part = name.starts_with(' ');
    !cells.iter().all(|cell| cell.is_nothing() || is_part && cell.is_unknown())
}

fn all(slab: &BothTotals) -> [&SlabTotals; 3] {
    [&slab.totals, &slab.kmalloc.totals, &slab.cache.totals]
}

fn count(slab: &BothTotals, name: &'static str, of: fn(&SlabTotals) -> Option<u64>) -> TextRow {
    (name, all(slab).map(|totals| Cell::count(of(totals))))
}

fn bytes(slab: &BothTotals, name: &'static str, of: fn(&SlabTotals) -> Option<u64>) -> TextRow {
    (name, all(slab).map(|totals| Cell::bytes(of(totals))))
}

/// The row without its total: bytes that a cache rounds up and bytes that kmalloc wastes are different things, and
/// their sum means nothing.
fn apart((name, [_, kmalloc, caches]): TextRow) -> TextRow {
    (name, [Cell::Empty, kmalloc, caches])
}

fn allocations(slab: &BothTotals) -> Vec<TextRow> {
    let percent = |totals: &SlabTotals| Cell::percent(totals.internal_fragmentation_percent);
    vec![
        count(slab, "allocs", |t| t.alloc_events),
        bytes(slab, "  requested", |t| t.bytes_req),
        bytes(slab, "  allocated", |t| t.bytes_alloc),
        apart(bytes(slab, "  wasted", |t| t.bytes_wasted)),
        apart(("  waste %", all(slab).map(percent))),
        count(slab, "  failed", |t| t.alloc_failures),
    ]
}

/// Sums of all events, estimated from samples.
fn estimates(slab: &BothTotals, total: &Estimated) -> [TextRow; 3] {
    let all = [Some(*total), slab.kmalloc.estimated, slab.cache.estimated];
    let row = |name, of: fn(&Estimated) -> Cell| {
        let cell = |all: Option<Estimated>| all.map_or(Cell::Empty, |all| Cell::About(Box::new(of(&all))));
        (name, all.map(cell))
    };
    [
        row("estimated allocs of all events", |all| Cell::Count(all.alloc_events)),
        row("  estimated requested", |all| Cell::Bytes(all.bytes_req)),
        row("  estimated allocated", |all| Cell::Bytes(all.bytes_alloc)),
    ]
}

/// Frees. Where events were lost, the allocation of an object that seems older may be among them.
fn frees(slab: &BothTotals, is_lossy: bool) -> Vec<TextRow> {
    let older = match is_lossy {
        true => "  allocated before the trace, or lost",
        false => "  allocated before the trace",
    };
    vec![
        count(slab, "frees", |t| t.free_events),
        count(slab, "  of traced allocations", |t| t.frees_matched),
        bytes(slab, "  freed", |t| t.bytes_freed),
        count(slab, older, |t| t.frees_allocated_before),
        count(slab, "  without a traced allocation", |t| t.frees_untraced_birth),
        count(slab, "  on another CPU", |t| t.cross_cpu_frees),
        count(slab, "  mixed API (kmalloc / kmem_cache_free)", |t| t.mixed_api_frees),
        count(slab, "  late free events", |t| t.late_frees),
        count(slab, "implied frees", |t| t.freed_unseen),
        bytes(slab, "  implied freed", |t| t.bytes_freed_unseen),
    ]
}

fn lives(slab: &BothTotals) -> Vec<TextRow> {
    vec![
        count(slab, "live", |t| t.live),
        bytes(slab, "  live bytes", |t| t.bytes_live),
        apart(bytes(slab, "  wasted in live objects", |t| t.bytes_wasted_live)),
    ]
}

/// Upper bounds of live objects.
fn live_at_most(slab: &BothTotals) -> [TextRow; 2] {
    let BothTotals { kmalloc, cache, .. } = slab;
    let lives = all(slab).map(|totals| totals.live);
    let row = |name, bound: fn(u64) -> Cell, ranges: [Option<[u64; 2]>; 3]| {
        let mut cells =
            lives.iter().zip(ranges).map(|(live, range)| at_most(*live, range.map(|[_, most]| most), bound));
        (name, std::array::from_fn(|_| cells.next().unwrap_or(Cell::Empty)))
    };
    let objects = |totals: &InterfaceTotals| totals.live_range;
    let bytes = |totals: &InterfaceTotals| totals.bytes_live_range;
    [
        row("live at most", Cell::Count, [slab.live_range, objects(kmalloc), objects(cache)]),
        row("  live bytes at most", Cell::Bytes, [slab.bytes_live_range, bytes(kmalloc), bytes(cache)]),
    ]
}

fn others(slab: &BothTotals) -> Vec<TextRow> {
    vec![
        count(slab, "uncertain objects", |t| t.uncertain),
        bytes(slab, "  live bytes", |t| t.bytes_live_uncertain),
        count(slab, "frees of NULL", |t| t.null_frees),
        count(slab, "frees of zero-size objects", |t| t.zero_size_frees),
        count(slab, "duplicate kmalloc events", |t| t.double_reports),
    ]
}
