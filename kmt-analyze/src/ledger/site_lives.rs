//! Counts of lives by site.
//!
//! Most sites have one cache, and all objects of a site have one size, so that a few counts are enough for each life;
//! bytes are computed at the end. The plain path adds to it for almost every free. `close` makes the totals of it for
//! the `Balance`.

use std::collections::HashMap;

use super::tables::SiteInfo;
use crate::int_hash::IntHash;
use crate::ledger::totals::Totals;
use crate::stream::op::OpCode;
use crate::stream::{Api, NameId};

/// Largest number of caches of a site for a linear search.
const FEW: usize = 8;

/// Sums of one site, by the cache that a free named for its objects.
pub type SiteTotals = Vec<(Option<NameId>, Totals)>;

/// Counts of lives of one site and cache; bytes follow, since all lives of a site have one size.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lives {
    /// Born in the window.
    pub born: u64,
    /// Freed in the window.
    pub freed: u64,
    /// Implied frees in the window.
    pub implied_frees: u64,
    /// Live at its end.
    pub live: u64,
    /// Passed to kfree_rcu at its end, not freed yet.
    pub waiting: u64,
    /// Uncertain ones of all of these.
    pub uncertain: u64,
    /// Uncertain ones of the live ones.
    pub uncertain_live: u64,
    /// Uncertain ones of the implied frees.
    pub implied_frees_uncertain: u64,
}

/// Lives of one site, by the cache that a free named.
#[derive(Debug, Clone)]
pub struct SiteLives {
    /// Freed lives of the first cache without pending decisions, by the interface that freed them.
    pub plain: [u64; 2],
    /// Those of them that crossed a loss.
    pub plain_uncertain: u64,
    /// Code of the last free that ended a life of the first cache.
    last_free: OpCode,
    /// Interface.
    pub api: Api,
    /// True if all lives have one cache: the allocation names it, or there is none.
    pub is_one_cache: bool,
    /// True if `first` has a cache.
    is_used: bool,
    /// The first cache: most sites have one.
    pub cache: Option<NameId>,
    first: Lives,
    others: Vec<(Option<NameId>, Lives)>,
    /// Index in `others` of a cache, if there are many.
    indices: HashMap<Option<NameId>, usize, IntHash>,
    /// Failed allocations.
    pub failures: u64,
}

impl SiteLives {
    /// A site without lives.
    pub fn new(site: &SiteInfo) -> Self {
        Self {
            plain: [0; 2],
            plain_uncertain: 0,
            last_free: OpCode::UNKNOWN,
            api: site.api,
            is_one_cache: site.cache.is_some() || site.api == Api::Kmalloc,
            is_used: site.cache.is_some() || site.api == Api::Kmalloc,
            cache: site.cache,
            first: Lives::default(),
            others: Vec::new(),
            indices: HashMap::default(),
            failures: 0,
        }
    }

    /// True if a free with this code and cache ends a life of the first cache. Most frees have the code of the one before.
    #[inline]
    pub fn frees_first(&mut self, code: OpCode, cache: impl FnOnce() -> Option<NameId>) -> bool {
        let is_first = code == self.last_free || self.is_one_cache || self.is_used && self.cache == cache();
        if is_first {
            self.last_free = code;
        }
        is_first
    }

    /// Freed lives in `plain` that the other interface freed.
    pub fn plain_mixed(&self) -> u64 {
        self.plain[1 - self.api as usize]
    }

    /// Lives with that cache.
    pub fn of(&mut self, cache: Option<NameId>) -> &mut Lives {
        if !self.is_used {
            (self.cache, self.is_used) = (cache, true);
        }
        if self.cache == cache || self.is_one_cache {
            return &mut self.first;
        }
        let found = match self.others.len() {
            0..=FEW => self.others.iter().position(|(c, _)| *c == cache),
            _ => self.indices.get(&cache).copied(),
        };
        let index = found.unwrap_or_else(|| self.add(cache));
        match self.others.get_mut(index) {
            Some((_, lives)) => lives,
            None => &mut self.first,
        }
    }

    #[cold]
    fn add(&mut self, cache: Option<NameId>) -> usize {
        self.others.push((cache, Lives::default()));
        if self.others.len() > FEW {
            let indexed = self.indices.len();
            let new = self.others.iter().enumerate().skip(indexed);
            self.indices.extend(new.map(|(index, (cache, _))| (*cache, index)));
        }
        self.others.len() - 1
    }

    /// Sums by cache; caches without lives are left out.
    pub fn totals(&self, site: &SiteInfo) -> SiteTotals {
        let mut first = self.first;
        let plain: u64 = self.plain.iter().sum();
        first.born += plain;
        first.freed += plain;
        first.uncertain += self.plain_uncertain;
        let parts = [(self.cache, first)].into_iter().chain(self.others.iter().copied());
        let parts = parts.map(|(cache, lives)| (cache, totals(&lives, site.bytes_req, site.bytes_alloc)));
        let mut totals: SiteTotals = parts.filter(|(_, totals)| *totals != Totals::default()).collect();
        // Most sites have one cache, and a list grows to four elements at once.
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
        implied_frees: lives.implied_frees,
        bytes_freed_implied: times(lives.implied_frees, bytes_alloc),
        live: lives.live,
        bytes_live: times(lives.live, bytes_alloc),
        bytes_req_live: times(lives.live, bytes_req),
        waiting: lives.waiting,
        bytes_waiting: times(lives.waiting, bytes_alloc),
        uncertain: lives.uncertain,
        live_uncertain: lives.uncertain_live,
        bytes_live_uncertain: times(lives.uncertain_live, bytes_alloc),
        implied_frees_uncertain: lives.implied_frees_uncertain,
    }
}
