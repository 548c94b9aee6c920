//! The screen of caches.

use super::rows::{CacheRow, CacheRows};
use crate::render::nothing::{self, some};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::text::escaped;
use crate::render::words::listed;
use crate::reports::common::View;
use crate::reports::common::cells::{LIVE_RANGE, live_range_cells, slab_cells, slab_columns};
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
    let mut columns = vec![Column::name("cache"), Column::number("size").leaves(5)];
    columns.extend(slab_columns(sort, view.is_lossy));
    columns.extend(LIVE_RANGE.into_iter().filter(|_| rows.has_doubts));
    let mut table = Table::new("", columns).of("cache", "caches", total);
    for row in &rows.caches {
        let mut cells = vec![Cell::text(name(row)), Cell::text(size(row))];
        cells.extend(slab_cells(&row.sums, row.estimated.as_ref(), view.is_lossy));
        cells.extend(rows.has_doubts.then(|| live_range_cells(&row.live_range)).into_iter().flatten());
        table.row(cells);
    }
    table.explain(LIVE_RANGE[0].heading, rows.bounds_legend);
    screen.table(table);
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
