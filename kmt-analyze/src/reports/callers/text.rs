//! The screen of call sites.

use super::Callers;
use super::rows::{AllCallers, CallerRows, names};
use crate::render::head::{self, some_values};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::reports::common::cells::{LIVE_RANGE, live_range, live_range_cells, slab_cells, slab_columns};
use crate::reports::common::lead::{CALL_SITES, lead};
use crate::reports::common::{ReportContext, View};

/// The largest call sites, and the share of the first.
pub fn screen(report: &Callers, context: &ReportContext<'_, '_>, rows: &CallerRows, view: &View) -> Screen {
    let (sort, filter) = (report.rows.sort.first().copied(), report.call_site.as_deref());
    let total = rows.callers_total;
    let names = if total == 0 && filter.is_some() { names(context) } else { Vec::new() };
    if !names.is_empty() {
        return head::nothing(vec![format!("call sites: {}", some_values(names))]);
    }
    let all = AllCallers::of(context, filter);
    let first = rows.callers.first().map(|row| (row.symbol.as_str(), &row.sums));
    let mut screen = Screen::new(lead(sort, total as u64, CALL_SITES, &all.sums, first, view));
    let is_lossy = view.is_lossy;
    screen.table(
        Table::of_rows("", &rows.callers)
            .of("call site", "call sites", total)
            .column(Column::name("call site"), |row| Cell::from(&row.symbol))
            .column(Column::whole("api").leaves(5), |row| Cell::text(row.api))
            .columns(slab_columns(sort, is_lossy), |r| slab_cells(&r.sums, r.estimated.as_ref(), is_lossy))
            .column_if(all.has_failures, Column::number("failed").leaves(6), |r| {
                Cell::Count(r.alloc_failures)
            })
            .columns(live_range(all.has_doubts), |r| {
                live_range_cells(all.has_doubts, &r.live_range, r.sums.live)
            })
            .explain(LIVE_RANGE[0].heading, context.live_bounds().legend()),
    );
    screen.next("lifetimes", "how long their objects live, and where they are freed");
    screen.next("callers --sort wasted", "who wastes most");
    screen
}
