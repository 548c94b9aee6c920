//! The table of pages.

use crate::render::table::{Align, table};
use crate::render::text::count;
use crate::reports::common::page_sums::PageSums;

/// The mark of a number whose events were not recorded.
pub const NOT_RECORDED: &str = "not recorded";

/// A number, or that its events were not recorded.
pub fn recorded(number: Option<u64>) -> String {
    number.map_or(NOT_RECORDED.to_owned(), count)
}

/// The table; nothing where nothing happened.
pub fn of(pages: &PageSums) -> String {
    if pages.is_empty {
        return String::new();
    }
    let sums = &pages.sums;
    let row = |name: &str, events: Option<Option<u64>>, frames: Option<u64>| {
        let bytes = frames.map(|frames| frames.saturating_mul(pages.page_size));
        vec![name.to_owned(), events.map_or(String::new(), recorded), recorded(frames), recorded(bytes)]
    };
    let none = |number: Option<u64>| number.map(|_| 0);
    let (frees, freed) = match pages.frees_matched {
        Some(_) => (pages.frees_matched, sums.pages_freed),
        None => (pages.free_events, pages.raw_pages_freed),
    };
    let rows = [
        row("allocations", Some(sums.alloc_events), sums.pages_alloc),
        row("  failed", Some(sums.alloc_failures), none(sums.alloc_failures)),
        row("frees", Some(frees), freed),
        row("  in parts", Some(pages.frees_partial), none(pages.frees_partial)),
        row("  of what was not allocated here", Some(pages.frees_unmatched), pages.pages_free_only),
        row("allocated again while live", None, sums.pages_freed_unseen),
        row("live at the end", None, sums.pages_live),
    ];
    let columns =
        [("pages", Align::Left), ("events", Align::Right), ("pages", Align::Right), ("bytes", Align::Right)];
    format!("\n{}slab objects lie in pages: the two tables are not to be added\n", table(&columns, &rows))
}
