//! Sums that are unknown because their events were not recorded: `null` in JSON, a mark in tables.

use super::basis::Basis;
use crate::collect::AreaKind;
use crate::stream::Api;

/// Sums whose events were recorded completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedSums {
    /// True for sums of allocations.
    pub allocs: bool,
    /// True for sums of frees.
    pub frees: bool,
    /// True for sums of lives: allocations and frees were recorded.
    pub lives: bool,
}

impl RecordedSums {
    /// Sums of slab objects: of one interface, or of all that were recorded.
    pub fn slab(basis: &Basis, api: Option<Api>) -> Self {
        let both = || Api::ALL.iter().map(|&api| (basis.allocs(Some(api)), basis.frees(Some(api))));
        // A sum over both interfaces is unknown if one of them lacks the events and has others.
        let lacks_allocs = api.is_none() && both().any(|(allocs, frees)| frees && !allocs);
        let lacks_frees = api.is_none() && both().any(|(allocs, frees)| allocs && !frees);
        Self {
            allocs: basis.allocs(api) && !lacks_allocs,
            frees: basis.frees(api) && !lacks_frees,
            lives: basis.ends(api) && !lacks_allocs,
        }
    }

    /// Sums of areas.
    pub fn areas(basis: &Basis, kind: AreaKind) -> Self {
        let [allocs, frees] = basis.areas(kind);
        Self { allocs, frees, lives: allocs && frees }
    }

    /// Sums of pages.
    pub fn pages(basis: &Basis) -> Self {
        Self { allocs: basis.page_allocs, frees: basis.page_frees, lives: basis.page_ends() }
    }
}
