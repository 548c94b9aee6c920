//! The table of bytes after the last object of each slab.

use super::slabs::{self, SlabTails};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::escaped;
use crate::reports::common::shown::part;
use crate::reports::common::{ReportContext, View};

/// Caches, unless more are allowed.
const ROWS: usize = 5;

/// Adds unused bytes of slabs by cache.
pub fn add(screen: &mut Screen, rows: Option<&SlabTails>, context: &ReportContext<'_, '_>, view: &View) {
    let Some(rows) = rows else { return };
    let page_size = context.analysis.page_size.0;
    let wasteful = rows.caches.iter().filter(|cache| cache.tail_bytes > 0);
    let title = "inside slabs: bytes behind the last object (all slabs, /proc/slabinfo)";
    screen.table(
        Table::of_rows(title, wasteful.take(part(view.limit, ROWS)))
            .of("cache", "caches", slabs::number_with_tails(context))
            .column(Column::name("cache"), |c| Cell::text(escaped(c.cache.as_bytes())))
            .column(Column::number("slabs"), |c| Cell::Count(c.num_slabs))
            .column(Column::number("objects x size").leaves(3), |c| {
                Cell::text(format!("{} x {}", c.objects_per_slab, c.object_size))
            })
            .column(Column::number("slab size").leaves(2), |c| {
                Cell::Bytes(c.pages_per_slab.saturating_mul(page_size))
            })
            .column(Column::number("tail"), |c| Cell::Bytes(c.tail_bytes_per_slab))
            .column(Column::number("all tails"), |c| Cell::Bytes(c.tail_bytes))
            .column(Column::number("share").leaves(1), |c| Cell::share(c.tail_bytes, rows.tail_bytes)),
    );
    match rows.debug_metadata_bytes {
        Some(0) => {}
        Some(bytes) => screen.note(format!(
            "Debug options (red zones, poison, tracking) add {} to the objects of all slabs.",
            view.bytes(bytes)
        )),
        None if view.look.wide => screen.note(
            "Debug data in objects (red zones, poison, tracking): unknown; the file has no /sys/kernel/slab.",
        ),
        None => {}
    }
}
