//! Numbers that are unknown because the events that would tell were not recorded: `null` in JSON, a mark in tables.

use super::basis::Basis;
use crate::stream::Api;

/// Which numbers of a part are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Those of allocations.
    pub allocs: bool,
    /// Those of frees.
    pub frees: bool,
    /// Those of lives: both were recorded.
    pub lives: bool,
}

impl Known {
    /// Numbers of slab objects: of one interface, or of all that were recorded.
    pub fn slab(basis: &Basis, api: Option<Api>) -> Self {
        let both = || Api::ALL.iter().map(|&api| (basis.allocs(Some(api)), basis.frees(Some(api))));
        // A sum over both interfaces is unknown where it leaves one out of which the other event was recorded.
        let lacks_allocs = api.is_none() && both().any(|(allocs, frees)| frees && !allocs);
        let lacks_frees = api.is_none() && both().any(|(allocs, frees)| allocs && !frees);
        Self {
            allocs: basis.allocs(api) && !lacks_allocs,
            frees: basis.frees(api) && !lacks_frees,
            lives: basis.ends(api) && !lacks_allocs,
        }
    }

    /// Numbers of pages.
    pub fn pages(basis: &Basis) -> Self {
        Self { allocs: basis.page_allocs, frees: basis.page_frees, lives: basis.page_ends() }
    }

    /// Whether all of them are.
    pub fn all(self) -> bool {
        self.allocs && self.frees && self.lives
    }
}

/// A cell, or a mark that its events were not recorded.
pub fn cell(is_recorded: bool, text: String) -> String {
    if is_recorded { text } else { NOT_RECORDED.to_owned() }
}

/// What stands for a number whose events were not recorded.
pub const NOT_RECORDED: &str = "?";

/// The line under a table that has such marks.
pub fn legend(is_known: bool) -> &'static str {
    if is_known { "" } else { "?: the events that would tell were not recorded\n" }
}
