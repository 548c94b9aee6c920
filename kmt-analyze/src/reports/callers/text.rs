//! The table of call sites.

use super::rows::CallerRows;
use crate::render::table::{Align, table};
use crate::render::text::count;
use crate::reports::common::View;
use crate::reports::common::cells::{live_range_cells, slab_cells, slab_columns};
use crate::reports::common::known::legend;
use crate::reports::common::live_bounds;
use crate::reports::common::shown::more;

/// The table, and the meaning of its marks.
pub fn of(rows: &CallerRows, view: &View) -> String {
    let mut columns = vec![("call site", Align::Left), ("of", Align::Left)];
    columns.extend(slab_columns(view.is_lossy));
    columns.extend(rows.has_failures.then_some(("failed", Align::Right)));
    columns.extend(live_bounds::COLUMNS.into_iter().filter(|_| rows.has_doubts));
    let cells: Vec<Vec<String>> = rows
        .callers
        .iter()
        .map(|row| {
            let mut cells = vec![row.symbol.clone(), row.api.to_owned()];
            cells.extend(slab_cells(&row.sums, row.estimated.as_ref(), view.is_lossy));
            cells.extend(rows.has_failures.then(|| count(row.alloc_failures)));
            cells.extend(rows.has_doubts.then(|| live_range_cells(&row.live_range)).into_iter().flatten());
            cells
        })
        .collect();
    let doubts = if rows.has_doubts { rows.bounds_legend } else { "" };
    table(&columns, &cells)
        + &more(rows.callers.len(), rows.callers_total, "call sites")
        + legend(rows.lives_are_known)
        + doubts
}
