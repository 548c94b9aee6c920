//! Order of the rows of pages.

use crate::ledger::page_totals::FrameTotals;
use crate::reports::common::sorting::SortKey;

/// Names that sort pages. Bytes of pages have the order of the pages.
pub const PAGE_SUMS: &[SortKey] = &[
    SortKey::Pages,
    SortKey::Alloc,
    SortKey::Count,
    SortKey::Failed,
    SortKey::FreedPages,
    SortKey::Freed,
    SortKey::ImpliedFrees,
    SortKey::LivePages,
    SortKey::Live,
    SortKey::Uncertain,
    SortKey::Name,
];

/// Number of these sums; the larger one is the first. `None`: the name.
pub fn number(key: SortKey, sums: &FrameTotals) -> Option<u128> {
    let number = match key {
        SortKey::Pages | SortKey::Alloc => sums.frames_alloc,
        SortKey::Count => sums.alloc_events,
        SortKey::Failed => sums.alloc_failures,
        SortKey::FreedPages | SortKey::Freed => sums.frames_freed,
        SortKey::ImpliedFrees => sums.frames_freed_implied,
        SortKey::LivePages | SortKey::Live => sums.frames_live,
        SortKey::Uncertain => sums.frames_uncertain,
        _ => return None,
    };
    Some(number.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_sorts_by_its_heading() {
        let own = ["allocs", "failed", "uncertain"];
        let headings = super::super::text::PAGES.iter().map(|column| column.heading).chain(own);
        for heading in headings.filter(|heading| *heading != "share") {
            let key = SortKey::named(&heading.replace(' ', "_"));
            assert!(key.is_some_and(|key| PAGE_SUMS.contains(&key)), "{heading}");
        }
        for key in PAGE_SUMS {
            assert_eq!(number(*key, &FrameTotals::default()).is_some(), *key != SortKey::Name, "{key:?}");
        }
    }
}
