//! The table of slab tails.

use super::slabs::SlabTails;
use crate::render::table::{Align, table};
use crate::render::text::{count, escaped};
use crate::reports::common::View;
use crate::reports::common::shown::more;
use Align::{Left, Right};

/// Rows that are shown at most.
const ROWS_MAX: usize = 10;

/// Tails by cache.
pub fn of(rows: Option<&SlabTails>, view: &View) -> String {
    let Some(rows) = rows else {
        return "INSIDE SLABS: not known, the file holds no /proc/slabinfo\n".to_owned();
    };
    let metadata = match rows.debug_metadata_bytes {
        Some(0) => "no cache has red zones, poison or tracking\n".to_owned(),
        Some(bytes) => format!("{} bytes are red zones, poison and tracking\n", count(bytes)),
        None => {
            "whether objects carry debug metadata is not known: the file holds nothing of /sys/kernel/slab\n"
                .to_owned()
        }
    };
    let wasteful = rows.caches.iter().filter(|cache| cache.tail_bytes > 0);
    let cells: Vec<Vec<String>> = wasteful
        .take(view.limit.min(ROWS_MAX))
        .map(|cache| {
            vec![
                escaped(cache.cache.as_bytes()),
                count(cache.num_slabs),
                format!("{} x {}", cache.objects_per_slab, cache.object_size),
                count(cache.pages_per_slab.saturating_mul(rows.page_size)),
                count(cache.tail_bytes_per_slab),
                count(cache.tail_bytes),
            ]
        })
        .collect();
    let columns = [
        ("cache", Left),
        ("slabs", Right),
        ("objects", Right),
        ("slab bytes", Right),
        ("tail", Right),
        ("tails", Right),
    ];
    format!(
        "INSIDE SLABS: {} of {} bytes of all slabs, by /proc/slabinfo, fit no object\n{metadata}{}{}",
        count(rows.tail_bytes),
        count(rows.bytes_held),
        table(&columns, &cells),
        more(cells.len(), rows.caches_with_tails, "caches")
    )
}
