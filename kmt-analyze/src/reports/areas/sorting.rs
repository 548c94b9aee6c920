//! Order of the rows of areas.

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
    /// Number of these sums; the larger one is the first. `None`: the name.
    pub fn number(self, sums: &AreaTotals) -> Option<u128> {
        let with = |first: u64, second: u64| Some(u128::from(first) << 64 | u128::from(second));
        match self {
            Self::Allocs => with(sums.alloc_events, 0),
            Self::Failed => with(sums.alloc_failures, 0),
            Self::Requested => with(sums.bytes_req, 0),
            Self::Allocated => with(sums.bytes_alloc, sums.bytes_req),
            Self::Freed => with(sums.bytes_freed, sums.freed),
            Self::LiveAreas => with(sums.live, 0),
            Self::Live => with(sums.bytes_live, sums.bytes_req_live),
            Self::Uncertain => with(sums.uncertain, 0),
            Self::Name => None,
        }
    }
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
