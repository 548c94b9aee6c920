//! Lives counted by site.

use std::collections::HashMap;

use super::tables::SiteInfo;
use crate::int_hash::IntHash;
use crate::ledger::totals::Totals;
use crate::stream::{Api, NameId};

/// Caches of one site that are searched one by one.
const FEW: usize = 8;

/// Sums of one site, apart for each cache that a free has shown its objects to belong to.
pub type SiteTotals = Vec<(Option<NameId>, Totals)>;

/// Counts of lives of one site and cache; bytes follow from them, since all lives of a site are of one size.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lives {
    /// Born in the window.
    pub born: u64,
    /// Freed in it.
    pub freed: u64,
    /// Found gone in it.
    pub unseen: u64,
    /// Alive at its end.
    pub live: u64,
    /// Handed over shortly before its end, to be freed after a grace period.
    pub waiting: u64,
    /// Of all of these, uncertain.
    pub uncertain: u64,
    /// Of those alive.
    pub uncertain_live: u64,
    /// Of those found gone.
    pub uncertain_unseen: u64,
}

/// The lives of one site, apart by the cache that a free has shown.
#[derive(Debug, Clone)]
pub struct SiteLives {
    /// Lives that began and were freed with nothing more to say of them.
    pub plain: u64,
    /// Those of them that crossed a loss.
    pub plain_uncertain: u64,
    /// Interface.
    pub api: Api,
    /// All lives are of one cache: the allocation tells it, or there is none.
    pub is_one_cache: bool,
    /// Number of the call site and interface.
    pub caller: u32,
    /// Whether `first` has a cache yet.
    is_used: bool,
    /// Most sites have one cache.
    pub cache: Option<NameId>,
    first: Lives,
    others: Vec<(Option<NameId>, Lives)>,
    /// Where in `others` a cache is, once they are many.
    places: HashMap<Option<NameId>, usize, IntHash>,
    /// Allocations that failed.
    pub failures: u64,
}

impl SiteLives {
    /// None yet.
    pub fn new(site: &SiteInfo) -> Self {
        Self {
            plain: 0,
            plain_uncertain: 0,
            api: site.api,
            is_one_cache: site.cache.is_some() || site.api == Api::Kmalloc,
            caller: site.caller,
            is_used: site.cache.is_some() || site.api == Api::Kmalloc,
            cache: site.cache,
            first: Lives::default(),
            others: Vec::new(),
            places: HashMap::default(),
            failures: 0,
        }
    }

    /// The lives of that cache.
    #[inline]
    pub fn of(&mut self, cache: Option<NameId>) -> &mut Lives {
        if !self.is_used {
            (self.cache, self.is_used) = (cache, true);
        }
        if self.cache == cache || self.is_one_cache {
            return &mut self.first;
        }
        let known = match self.others.len() {
            0..=FEW => self.others.iter().position(|(c, _)| *c == cache),
            _ => self.places.get(&cache).copied(),
        };
        let place = known.unwrap_or_else(|| self.add(cache));
        match self.others.get_mut(place) {
            Some((_, lives)) => lives,
            None => &mut self.first,
        }
    }

    #[cold]
    fn add(&mut self, cache: Option<NameId>) -> usize {
        self.others.push((cache, Lives::default()));
        if self.others.len() > FEW {
            let known = self.places.len();
            let new = self.others.iter().enumerate().skip(known);
            self.places.extend(new.map(|(place, (cache, _))| (*cache, place)));
        }
        self.others.len() - 1
    }

    /// The sums, by cache; those of no life are left out.
    pub fn totals(&self, site: &SiteInfo) -> SiteTotals {
        let mut first = self.first;
        first.born += self.plain;
        first.freed += self.plain;
        first.uncertain += self.plain_uncertain;
        let parts = [(self.cache, first)].into_iter().chain(self.others.iter().copied());
        let parts = parts.map(|(cache, lives)| (cache, totals(&lives, site.bytes_req, site.bytes_alloc)));
        let mut totals: SiteTotals = parts.filter(|(_, totals)| *totals != Totals::default()).collect();
        // Most sites have one cache, and a list grows to four at once.
        totals.shrink_to_fit();
        totals
    }
}

fn totals(lives: &Lives, bytes_req: u64, bytes_alloc: u64) -> Totals {
    let times = |count: u64, bytes: u64| count.saturating_mul(bytes);
    Totals {
        alloc_events: lives.born,
        bytes_req: times(lives.born, bytes_req),
        bytes_alloc: times(lives.born, bytes_alloc),
        frees_matched: lives.freed,
        bytes_freed: times(lives.freed, bytes_alloc),
        freed_unseen: lives.unseen,
        bytes_freed_unseen: times(lives.unseen, bytes_alloc),
        live: lives.live,
        bytes_live: times(lives.live, bytes_alloc),
        bytes_req_live: times(lives.live, bytes_req),
        waiting: lives.waiting,
        bytes_waiting: times(lives.waiting, bytes_alloc),
        uncertain: lives.uncertain,
        live_uncertain: lives.uncertain_live,
        bytes_live_uncertain: times(lives.uncertain_live, bytes_alloc),
        freed_unseen_uncertain: lives.uncertain_unseen,
    }
}
