//! Order of the rows of areas.

use std::cmp::Reverse;

use crate::collect::area_groups::AreaTotals;

/// Key of the order of rows, named as the heading of its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum AreaKey {
    /// Allocations; perf kmem calls them `hits`
    #[value(name = "allocs", aliases = ["hits", "hit", "alloc_events", "count"])]
    Allocs,
    /// Failed allocations
    #[value(name = "failed", alias = "alloc_failures")]
    Failed,
    /// Bytes requested
    #[value(name = "requested", aliases = ["req", "bytes_req"])]
    Requested,
    /// Bytes allocated
    #[value(name = "allocated", aliases = ["alloc", "bytes", "bytes_alloc"])]
    Allocated,
    /// Bytes freed
    #[value(name = "freed", alias = "bytes_freed")]
    Freed,
    /// Areas live at the end
    #[value(name = "live_areas", alias = "live_count")]
    LiveAreas,
    /// Bytes live at the end
    #[value(name = "live", aliases = ["live_bytes", "bytes_live"])]
    Live,
    /// Areas that cross a loss
    #[value(name = "uncertain")]
    Uncertain,
    /// Name
    #[value(name = "name", aliases = ["call_site", "symbol"])]
    Name,
}

impl AreaKey {
    fn number(self, sums: &AreaTotals) -> (u64, u64) {
        match self {
            Self::Allocs => (sums.alloc_events, 0),
            Self::Failed => (sums.alloc_failures, 0),
            Self::Requested => (sums.bytes_req, 0),
            Self::Allocated => (sums.bytes_alloc, sums.bytes_req),
            Self::Freed => (sums.bytes_freed, sums.freed),
            Self::LiveAreas => (sums.live, 0),
            Self::Live => (sums.bytes_live, sums.bytes_req_live),
            Self::Uncertain => (sums.uncertain, 0),
            Self::Name => (0, 0),
        }
    }
}

/// Sorts rows by these keys, the largest numbers first, then by name.
pub fn sort<R, N: Ord>(rows: &mut [R], keys: &[AreaKey], of: impl Fn(&R) -> (AreaTotals, N)) {
    rows.sort_by_cached_key(|row| {
        let (sums, name) = of(row);
        let keys = keys.iter().take_while(|key| **key != AreaKey::Name);
        (keys.map(|key| Reverse(key.number(&sums))).collect::<Vec<_>>(), name)
    });
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_column_sorts_by_its_heading() {
        let headings = super::super::text::SUMS.iter().map(|column| column.heading).chain(["uncertain"]);
        for heading in headings {
            assert!(AreaKey::from_str(&heading.replace(' ', "_"), false).is_ok(), "{heading}");
        }
    }
}
