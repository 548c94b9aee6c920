//! The table of pages.

use crate::render::screen::{Cell, Column, Table};
use crate::reports::common::page_sums::PageSums;
use crate::reports::common::{ReportContext, View};

/// Balance of all pages; no rows where nothing happened to any. `--wide` has rows of zeros, too.
pub fn table(context: &ReportContext<'_, '_>, pages: &PageSums, view: &View) -> Table {
    let columns = [
        Column::text("page allocator"),
        Column::number("events"),
        Column::number("pages"),
        Column::number("bytes"),
    ];
    let mut table = Table::new("", columns);
    if pages.is_empty() {
        return table;
    }
    for (name, cells) in rows(context, pages) {
        if view.look.wide || !cells.iter().all(Cell::is_nothing) {
            table.row(std::iter::once(Cell::text(name)).chain(cells));
        }
    }
    table
}

/// Names of the rows, and their events, pages and bytes.
fn rows(context: &ReportContext<'_, '_>, pages: &PageSums) -> [(&'static str, [Cell; 3]); 7] {
    let (sums, page_size) = (&pages.sums, context.analysis.page_size.0);
    let size = |frames: Option<u64>| {
        [Cell::count(frames), Cell::bytes(frames.map(|frames| frames.saturating_mul(page_size)))]
    };
    let both = |events: Option<u64>, frames: Option<u64>| {
        let [pages, bytes] = size(frames);
        [Cell::count(events), pages, bytes]
    };
    let events = |events: Option<u64>| [Cell::count(events), Cell::Empty, Cell::Empty];
    let frames = |frames: Option<u64>| {
        let [pages, bytes] = size(frames);
        [Cell::Empty, pages, bytes]
    };
    let frees = match pages.frees_matched {
        Some(_) => both(pages.frees_matched, sums.pages_freed),
        None => both(pages.free_events, PageSums::raw_pages_freed(context)),
    };
    [
        ("allocs", both(sums.alloc_events, sums.pages_alloc)),
        ("  failed", events(sums.alloc_failures)),
        ("frees", frees),
        ("  of part of an allocation", events(pages.frees_partial)),
        ("frees without a traced allocation", both(pages.frees_unmatched, pages.pages_free_only)),
        ("implied frees", frames(sums.pages_freed_unseen)),
        ("live", frames(sums.pages_live)),
    ]
}
