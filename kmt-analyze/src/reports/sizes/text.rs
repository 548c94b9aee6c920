//! The screen of size classes.

use super::rows::{SizeRow, SizeRows, all};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{count, percent};
use crate::reports::common::cells::{slab_cells, slab_columns};
use crate::reports::common::lead::{Nouns, lead};
use crate::reports::common::sorting::SortKey;
use crate::reports::common::{ReportContext, View};

/// Requested sizes that are named for each class.
const REQUESTS: usize = 3;

const NOUNS: Nouns = Nouns { one: "kmalloc size class", several: "kmalloc size classes" };

/// The largest size classes, and the requests that waste most in them.
pub fn screen(
    context: &ReportContext<'_, '_>,
    rows: &SizeRows,
    sort: Option<SortKey>,
    view: &View,
) -> Screen {
    let name = rows.sizes.first().map(|row| format!("kmalloc of {} bytes", count(row.size_class)));
    let first = name.as_deref().zip(rows.sizes.first().map(|row| &row.sums));
    let total = rows.sizes_total;
    let mut screen = Screen::new(lead(sort, total as u64, NOUNS, &all(context), first, view));
    let is_lossy = view.is_lossy;
    screen.table(
        Table::of_rows("", &rows.sizes)
            .of("size class", "size classes", total)
            .column(Column::number("size class"), |row| Cell::Count(row.size_class))
            .column(Column::number("sizes").leaves(4), |row| Cell::text(range(row)))
            .columns(slab_columns(sort, is_lossy), |r| slab_cells(&r.sums, r.estimated.as_ref(), is_lossy))
            .column(Column::text("most waste: size x count").leaves(5), |row| Cell::text(worst(row))),
    );
    screen.note("kmalloc rounds each size up to its class. Caches have one size each.");
    screen.next("what-if", "what other size classes would save");
    screen
}

/// Smallest and largest requested size.
fn range(row: &SizeRow) -> String {
    let sizes = || row.requests.iter().map(|request| request.size);
    let (smallest, largest) = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
    if smallest == largest { smallest.to_string() } else { format!("{smallest}-{largest}") }
}

/// Requested sizes that waste most.
fn worst(row: &SizeRow) -> String {
    let all = row.sums.bytes_wasted.unwrap_or(0);
    let wasted = row.requests.iter().filter_map(|request| {
        let wasted = request.sums.bytes_wasted.filter(|&wasted| wasted > 0)?;
        let allocs = count(request.sums.alloc_events.unwrap_or(0));
        Some(format!("{} x {allocs} ({})", request.size, percent(wasted, all)))
    });
    wasted.take(REQUESTS).collect::<Vec<_>>().join(", ")
}
