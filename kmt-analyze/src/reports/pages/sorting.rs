//! Order of the rows of pages.

use std::cmp::Reverse;

use crate::ledger::page_totals::FrameTotals;

/// Key of the order of rows, named as the heading of its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PageKey {
    /// Pages allocated; `bytes` gives the same order
    #[value(name = "pages", aliases = ["bytes", "alloc", "allocated", "pages_alloc", "bytes_alloc"])]
    Pages,
    /// Allocations; perf kmem calls them `hits`
    #[value(name = "allocs", aliases = ["hits", "hit", "alloc_events", "count"])]
    Allocs,
    /// Failed allocations
    #[value(name = "failed", alias = "alloc_failures")]
    Failed,
    /// Pages freed
    #[value(name = "freed_pages", aliases = ["freed", "pages_freed", "bytes_freed"])]
    Freed,
    /// Implied frees, in pages
    #[value(name = "implied_frees", aliases = ["unseen", "pages_freed_unseen", "bytes_freed_unseen"])]
    Implied,
    /// Pages live at the end
    #[value(name = "live_pages", aliases = ["live", "live_bytes", "pages_live", "bytes_live"])]
    Live,
    /// Pages of allocations that cross a loss
    #[value(name = "uncertain", alias = "pages_uncertain")]
    Uncertain,
    /// Name
    #[value(name = "name", aliases = ["call_site", "symbol"])]
    Name,
}

impl PageKey {
    fn number(self, sums: &FrameTotals) -> u64 {
        match self {
            Self::Pages => sums.frames_alloc,
            Self::Allocs => sums.alloc_events,
            Self::Failed => sums.alloc_failures,
            Self::Freed => sums.frames_freed,
            Self::Implied => sums.frames_freed_implied,
            Self::Live => sums.frames_live,
            Self::Uncertain => sums.frames_uncertain,
            Self::Name => 0,
        }
    }
}

/// Sorts rows by these keys, the largest numbers first, then by name.
pub fn sort<R, N: Ord>(rows: &mut [R], keys: &[PageKey], of: impl Fn(&R) -> (FrameTotals, N)) {
    rows.sort_by_cached_key(|row| {
        let (sums, name) = of(row);
        let keys = keys.iter().take_while(|key| **key != PageKey::Name);
        (keys.map(|key| Reverse(key.number(&sums))).collect::<Vec<_>>(), name)
    });
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_column_sorts_by_its_heading() {
        let own = ["allocs", "failed", "uncertain"];
        let headings = super::super::text::PAGES.iter().map(|column| column.heading).chain(own);
        for heading in headings.filter(|heading| *heading != "share") {
            assert!(PageKey::from_str(&heading.replace(' ', "_"), false).is_ok(), "{heading}");
        }
    }
}
