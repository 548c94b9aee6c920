//! The screen of call sites.

use super::rows::CallerRows;
use crate::render::nothing::{self, some};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::reports::common::View;
use crate::reports::common::cells::{LIVE_RANGE, live_range_cells, slab_cells, slab_columns};
use crate::reports::common::lead::{Nouns, lead};
use crate::reports::common::sorting::SortKey;

const NOUNS: Nouns = Nouns { one: "call site", several: "call sites" };

/// The largest call sites, and the share of the first.
pub fn of(rows: &CallerRows, sort: Option<SortKey>, view: &View) -> Screen {
    if !rows.others.is_empty() {
        return nothing::screen(vec![format!("call sites: {}", some(rows.others.clone()))]);
    }
    let first = rows.callers.first().map(|row| (row.symbol.as_str(), &row.sums));
    let total = rows.callers_total;
    let mut screen = Screen::new(lead(sort, total as u64, NOUNS, &rows.all, first, view));
    let mut columns = vec![Column::name("call site"), Column::whole("api").leaves(5)];
    columns.extend(slab_columns(sort, view.is_lossy));
    columns.extend(rows.has_failures.then_some(Column::number("failed").leaves(6)));
    columns.extend(LIVE_RANGE.into_iter().filter(|_| rows.has_doubts));
    let mut table = Table::new("", columns).of("call site", "call sites", total);
    for row in &rows.callers {
        let mut cells = vec![Cell::from(&row.symbol), Cell::text(row.api)];
        cells.extend(slab_cells(&row.sums, row.estimated.as_ref(), view.is_lossy));
        cells.extend(rows.has_failures.then_some(Cell::Count(row.alloc_failures)));
        cells.extend(rows.has_doubts.then(|| live_range_cells(&row.live_range)).into_iter().flatten());
        table.row(cells);
    }
    table.explain(LIVE_RANGE[0].heading, rows.bounds_legend);
    screen.table(table);
    screen.next("lifetimes", "how long their objects live, and where they are freed");
    screen.next("callers --sort wasted", "who wastes most");
    screen
}
