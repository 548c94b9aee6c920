//! The screen of caches.

use super::rows::{CacheRow, CacheRows};
use crate::render::nothing::{self, some};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::text::escaped;
use crate::render::words::listed;
use crate::reports::common::View;
use crate::reports::common::cells::{LIVE_RANGE, live_range, live_range_cells, slab_cells, slab_columns};
use crate::reports::common::lead::{Nouns, lead};
use crate::reports::common::sorting::SortKey;

const NOUNS: Nouns = Nouns { one: "cache", several: "caches" };

/// The largest caches, and the meaning of their names.
pub fn of(rows: &CacheRows, sort: Option<SortKey>, view: &View) -> Screen {
    let largest = rows.caches.first().map(name);
    let first = largest.as_deref().zip(rows.caches.first().map(|row| &row.sums));
    if !rows.others.is_empty() {
        return nothing::screen(vec![format!("caches: {}", some(rows.others.clone()))]);
    }
    let total = rows.caches_total;
    let mut screen = Screen::new(lead(sort, total as u64, NOUNS, &rows.all, first, view));
    let is_lossy = view.is_lossy;
    screen.table(
        Table::of_rows("", &rows.caches)
            .of("cache", "caches", total)
            .column(Column::name("cache"), |row| Cell::text(name(row)))
            .column(Column::number("size").leaves(5), |row| Cell::text(size(row)))
            .columns(slab_columns(sort, is_lossy), |r| slab_cells(&r.sums, r.estimated.as_ref(), is_lossy))
            .columns(live_range(rows.has_doubts), |r| live_range_cells(rows.has_doubts, &r.live_range))
            .explain(LIVE_RANGE[0].heading, rows.bounds_legend),
    );
    for sentence in aliases(rows) {
        screen.note(sentence);
    }
    if let Some(reason) = rows.nameless {
        screen.note(format!("?: the cache of these objects is unknown: {reason}."));
    }
    screen.next("callers --sort live", "call sites that hold the memory");
    screen.next("sizes", "sizes that kmalloc rounds up");
    screen
}

/// Name of a cache on one line.
fn name(row: &CacheRow) -> String {
    escaped(row.cache.as_bytes())
}

/// Size of an object, or the range of sizes.
fn size(row: &CacheRow) -> String {
    let (low, high) = (row.object_size_min, row.object_size_max);
    if low == high { low.to_string() } else { format!("{low}-{high}") }
}

/// Other caches of a name.
fn aliases(rows: &CacheRows) -> Vec<String> {
    if !rows.aliases_are_recorded {
        return vec![
            "A name may stand for several caches: SLUB merges caches of like size and events name the first; the file does not list the others."
                .to_owned(),
        ];
    }
    let named = rows.caches.iter().filter_map(|row| {
        let names = row.aliases.as_ref().filter(|names| !names.is_empty())?;
        let names: Vec<String> = names.iter().map(|name| escaped(name.as_bytes())).collect();
        Some(format!("{} also stands for {}.", name(row), listed(&names)))
    });
    named.collect()
}
