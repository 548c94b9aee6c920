//! The table of caches.

use super::rows::{CacheRow, CacheRows};
use crate::render::table::{Align, table};
use crate::reports::common::View;
use crate::reports::common::cells::{live_range_cells, slab_cells, slab_columns};
use crate::reports::common::known::legend;
use crate::reports::common::live_bounds;
use crate::reports::common::shown::more;

/// The table, and the meaning of its marks and names.
pub fn of(rows: &CacheRows, view: &View) -> String {
    let mut columns = vec![("cache", Align::Left), ("size", Align::Right)];
    columns.extend(slab_columns(view.is_lossy));
    columns.extend(live_bounds::COLUMNS.into_iter().filter(|_| rows.has_doubts));
    let cells: Vec<Vec<String>> = rows
        .caches
        .iter()
        .map(|row| {
            let sums = slab_cells(&row.sums, row.estimated.as_ref(), view.is_lossy);
            let bounds = rows.has_doubts.then(|| live_range_cells(&row.live_range));
            let bounds = bounds.into_iter().flatten();
            [row.name.clone(), size(row)].into_iter().chain(sums).chain(bounds).collect()
        })
        .collect();
    let mut out = table(&columns, &cells)
        + &more(rows.caches.len(), rows.caches_total, "caches")
        + legend(rows.lives_are_known);
    if rows.has_doubts {
        out.push_str(rows.bounds_legend);
    }
    out.push_str(&aliases(rows));
    if rows.has_nameless {
        out.push_str(
            "?: no event tells the cache of these objects; the kernel names it in frees since 5.12 only.\n",
        );
    }
    out
}

fn size(row: &CacheRow) -> String {
    let (low, high) = (row.object_size_min, row.object_size_max);
    if low == high { low.to_string() } else { format!("{low}-{high}") }
}

/// Caches that a name stands for.
fn aliases(rows: &CacheRows) -> String {
    if !rows.aliases_are_known {
        return "\nA name may stand for several caches: SLUB merges caches of like size, the kernel names the first, and the file does not tell the others.\n"
            .to_owned();
    }
    let mut out = String::new();
    for row in &rows.caches {
        let names = row.alias_names.as_deref().unwrap_or_default();
        if !names.is_empty() {
            out.push_str(&format!("\n{} also stands for {}", row.name, names.join(", ")));
        }
    }
    out + "\n"
}
