//! The table of bytes after the last object of each slab.

use super::slabs::{CacheTail, SlabTails};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::text::escaped;
use crate::reports::common::View;
use crate::reports::common::shown::part;

/// Caches, unless more are allowed.
const ROWS: usize = 5;

/// Adds unused bytes of slabs by cache.
pub fn add(screen: &mut Screen, rows: Option<&SlabTails>, view: &View) {
    let Some(rows) = rows else { return };
    let columns = [
        Column::name("cache"),
        Column::number("slabs"),
        Column::number("objects x size").leaves(3),
        Column::number("slab size").leaves(2),
        Column::number("tail"),
        Column::number("all tails"),
        Column::number("share").leaves(1),
    ];
    let title = "inside slabs: bytes behind the last object (all slabs, /proc/slabinfo)";
    let mut table = Table::new(title, columns).of("cache", "caches", rows.caches_with_tails);
    let wasteful = rows.caches.iter().filter(|cache| cache.tail_bytes > 0);
    for cache in wasteful.take(part(view.limit, ROWS)) {
        table.row(cells(cache, rows));
    }
    screen.table(table);
    match rows.debug_metadata_bytes {
        Some(0) => {}
        Some(bytes) => screen.note(format!(
            "Debug options (red zones, poison, tracking) add {} to the objects of all slabs.",
            view.bytes(bytes)
        )),
        None if view.look.is_wide() => screen.note(
            "Debug data in objects (red zones, poison, tracking): unknown; the file has no /sys/kernel/slab.",
        ),
        None => {}
    }
}

fn cells(cache: &CacheTail, rows: &SlabTails) -> [Cell; 7] {
    [
        Cell::text(escaped(cache.cache.as_bytes())),
        Cell::Count(cache.num_slabs),
        Cell::text(format!("{} x {}", cache.objects_per_slab, cache.object_size)),
        Cell::Bytes(cache.pages_per_slab.saturating_mul(rows.page_size)),
        Cell::Bytes(cache.tail_bytes_per_slab),
        Cell::Bytes(cache.tail_bytes),
        Cell::share(cache.tail_bytes, rows.tail_bytes),
    ]
}
