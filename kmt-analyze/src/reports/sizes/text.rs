//! The table of size classes.

use super::rows::{SizeRow, SizeRows};
use crate::render::table::{Align, table};
use crate::render::text::{count, percent};
use crate::reports::common::View;
use crate::reports::common::cells::{slab_cells, slab_columns};
use crate::reports::common::known::legend;
use crate::reports::common::shown::more;

/// Sizes asked for that are named for each class.
const REQUESTS: usize = 3;

/// The table, and the meaning of its marks.
pub fn of(rows: &SizeRows, view: &View) -> String {
    let mut columns = vec![("kmalloc size class", Align::Right), ("requested", Align::Right)];
    columns.extend(slab_columns(view.is_lossy));
    columns.push(("most of its waste: size x count", Align::Left));
    let cells: Vec<Vec<String>> = rows
        .sizes
        .iter()
        .map(|row| {
            let mut cells = vec![count(row.size_class), range(row)];
            cells.extend(slab_cells(&row.sums, row.estimated.as_ref(), view.is_lossy));
            cells.push(worst(row));
            cells
        })
        .collect();
    let mut out = table(&columns, &cells)
        + &more(rows.sizes.len(), rows.sizes_total, "size classes")
        + legend(rows.lives_are_known);
    out.push_str("\nSizes between two classes are rounded up. Caches have one size each: see caches.\n");
    out
}

/// Smallest and largest size asked for.
fn range(row: &SizeRow) -> String {
    let sizes = || row.requests.iter().map(|request| request.size);
    let (smallest, largest) = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
    if smallest == largest { smallest.to_string() } else { format!("{smallest}-{largest}") }
}

/// The sizes asked for that waste most.
fn worst(row: &SizeRow) -> String {
    let all = row.sums.bytes_wasted.unwrap_or(0);
    let wasted = row.requests.iter().filter_map(|request| {
        let wasted = request.sums.bytes_wasted.filter(|&wasted| wasted > 0)?;
        let allocs = count(request.sums.alloc_events.unwrap_or(0));
        Some(format!("{} x {allocs} ({})", request.size, percent(wasted, all)))
    });
    wasted.take(REQUESTS).collect::<Vec<_>>().join(", ")
}
