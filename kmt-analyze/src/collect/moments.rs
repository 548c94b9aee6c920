//! Number of live objects of each site at given times.

use super::collector::{Collector, Share};
use super::sums::{Sums, grown, merged};
use crate::ledger::lives::End;
use crate::ledger::{Closed, Interests, Receiver};

/// Changes from the previous time up to and including a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Between {
    /// Births.
    pub born: u64,
    /// Ends with a free event.
    pub freed: u64,
    /// Implied frees.
    pub gone: u64,
    /// Objects passed to kfree_rcu.
    pub deferred: u64,
    /// Objects passed to kfree_rcu that are freed by now: the longest wait is over.
    pub released: u64,
}

/// Collects live objects at given times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moments {
    /// Sorted.
    pub times: Vec<u64>,
}

impl Collector for Moments {
    type Part = MomentSums;
    type Output = MomentSums;

    fn interests(&self) -> Interests {
        Interests { lives: true, ..Interests::default() }
    }

    fn partition(&self, share: &Share) -> MomentSums {
        MomentSums { times: self.times.clone(), sites: Vec::new(), deferred_max: share.rules.deferred_max }
    }

    fn merge(&self, first: MomentSums, others: Vec<MomentSums>) -> MomentSums {
        merged(first, others)
    }
}

/// Changes of lives between times.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MomentSums {
    /// Sorted.
    times: Vec<u64>,
    /// By number of the site: one element more than times, or empty.
    sites: Vec<Vec<Between>>,
    deferred_max: u64,
}

impl Sums for MomentSums {
    fn absorb(&mut self, other: Self) {
        self.sites.absorb(other.sites);
    }
}

impl Sums for Between {
    fn absorb(&mut self, other: Self) {
        self.born.absorb(other.born);
        self.freed.absorb(other.freed);
        self.gone.absorb(other.gone);
        self.deferred.absorb(other.deferred);
        self.released.absorb(other.released);
    }
}

impl MomentSums {
    fn place(&self, time: u64) -> usize {
        self.times.partition_point(|&t| t < time)
    }

    /// Changes of a site up to each time, since the one before; empty: no changes.
    pub fn of_site(&self, site: u32) -> &[Between] {
        let row = self.sites.get(site as usize).map_or(&[][..], Vec::as_slice);
        row.get(..self.times.len()).unwrap_or_default()
    }
}

impl Receiver for MomentSums {
    fn closed(&mut self, closed: &Closed) {
        let born = self.place(closed.life.born);
        let ended = closed.end.time().map(|time| self.place(time));
        let released = closed.deferred_at().map(|time| self.place(time.saturating_add(self.deferred_max)));
        let width = self.times.len() + 1;
        let row = grown(&mut self.sites, closed.life.site);
        if row.is_empty() {
            row.reserve_exact(width);
        }
        row.resize(width, Between::default());
        if let Some(between) = row.get_mut(born) {
            between.born += 1;
        }
        match (ended.and_then(|place| row.get_mut(place)), closed.end) {
            (Some(between), End::Freed { free, .. }) if free.is_deferred => between.deferred += 1,
            (Some(between), End::Freed { .. }) => between.freed += 1,
            (Some(between), End::ImpliedFree { .. }) => between.gone += 1,
            _ => {}
        }
        if let Some(between) = released.and_then(|place| row.get_mut(place)) {
            between.released += 1;
        }
    }
}
