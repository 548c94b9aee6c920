//! Lives by call site, before the rows are sorted and limited.

use std::cmp::Ordering;

use crate::collect::histogram::Histogram;
use crate::collect::lifetimes::{CallerLives, LifetimeSums};
use crate::collect::sums::Sums;
use crate::pass::Analysis;
use crate::reports::common::labels::Labels;
use crate::reports::common::symbol::Symbol;
use crate::stream::Api;

/// Lives of the objects of one call site and interface.
pub struct AllocSite<'r> {
    pub address: u64,
    /// Interface.
    pub api: Api,
    /// Function and offset, or the address.
    pub symbol: Symbol,
    /// Sums of the lives.
    pub lives: &'r CallerLives,
}

impl AllocSite<'_> {
    /// Order by name.
    pub fn by_name(&self, other: &Self) -> Ordering {
        self.symbol.cmp(&other.symbol)
    }
}

/// The call sites that have lives.
pub fn with_lives<'r>(
    analysis: &Analysis,
    sums: &'r LifetimeSums,
    labels: &Labels<'_, '_>,
) -> Vec<AllocSite<'r>> {
    let callers = analysis.balance.callers.iter().zip(&sums.callers);
    callers
        .filter(|(_, lives)| lives.any())
        .map(|(&(api, address), lives)| AllocSite { address, api, symbol: labels.located(address), lives })
        .collect()
}

/// Lifetimes and survival of the objects of all call sites, without the sites of their frees.
pub fn all_survival(sites: &[AllocSite<'_>]) -> CallerLives {
    let mut all = CallerLives { freed: all_freed(sites), ..CallerLives::default() };
    sites.iter().for_each(|site| all.survival.absorb(site.lives.survival.clone()));
    all
}

/// Lifetimes of the freed objects of all call sites.
pub fn all_freed(sites: &[AllocSite<'_>]) -> Histogram {
    let mut all = Histogram::default();
    sites.iter().for_each(|site| all.merge(&site.lives.freed));
    all
}
