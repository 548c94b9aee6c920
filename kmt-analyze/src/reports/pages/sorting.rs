//! Order of the rows of pages.

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
    /// Number of these sums; the larger one is the first. `None`: the name.
    pub fn number(self, sums: &FrameTotals) -> Option<u128> {
        let number = match self {
            Self::Pages => sums.frames_alloc,
            Self::Allocs => sums.alloc_events,
            Self::Failed => sums.alloc_failures,
            Self::Freed => sums.frames_freed,
            Self::Implied => sums.frames_freed_implied,
            Self::Live => sums.frames_live,
            Self::Uncertain => sums.frames_uncertain,
            Self::Name => return None,
        };
        Some(number.into())
    }
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
