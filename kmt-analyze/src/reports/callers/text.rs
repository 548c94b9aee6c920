//! The screen of call sites.

use super::rows::CallerRows;
use crate::render::nothing::{self, some};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::reports::common::View;
use crate::reports::common::cells::{LIVE_RANGE, live_range, live_range_cells, slab_cells, slab_columns};
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
    let is_lossy = view.is_lossy;
    screen.table(
        Table::of_rows("", &rows.callers)
            .of("call site", "call sites", total)
            .column(Column::name("call site"), |row| Cell::from(&row.symbol))
            .column(Column::whole("api").leaves(5), |row| Cell::text(row.api))
            .columns(slab_columns(sort, is_lossy), |r| slab_cells(&r.sums, r.estimated.as_ref(), is_lossy))
            .column_if(rows.has_failures, Column::number("failed").leaves(6), |r| {
                Cell::Count(r.alloc_failures)
            })
            .columns(live_range(rows.has_doubts), |r| live_range_cells(rows.has_doubts, &r.live_range))
            .explain(LIVE_RANGE[0].heading, rows.bounds_legend),
    );
    screen.next("lifetimes", "how long their objects live, and where they are freed");
    screen.next("callers --sort wasted", "who wastes most");
    screen
}
