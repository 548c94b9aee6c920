//! Number of live objects of each site at given times.

use super::collector::{PassFacts, StateCollector};
use super::sorted::Sorted;
use super::sums::{grown, sums};
use crate::ledger::lives::End;
use crate::ledger::{Closed, Interests, Receiver};

/// Changes from the previous time up to and including a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MomentChanges {
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

impl StateCollector for Moments {
    type State = MomentSums;

    const INTERESTS: Interests = Interests::LIVES;

    fn begin(&self, facts: &PassFacts) -> MomentSums {
        MomentSums { times: self.times.clone(), sites: Vec::new(), deferred_max: facts.rules.deferred_max }
    }
}

/// Changes of lives between times.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MomentSums {
    /// Sorted.
    times: Vec<u64>,
    /// By number of the site: the times at which something changed, by number, and all later ones as one more.
    sites: Vec<Sorted<MomentChanges>>,
    deferred_max: u64,
}

sums!(MomentChanges: born, freed, gone, deferred, released);

impl MomentSums {
    fn step_of(&self, time: u64) -> u32 {
        u32::try_from(self.times.partition_point(|&t| t < time)).unwrap_or(u32::MAX)
    }

    /// Changes of a site up to a time, since the one before, with the number of the time; times without changes are left
    /// out.
    pub fn of_site(&self, site: u32) -> impl Iterator<Item = (usize, &MomentChanges)> {
        let row = self.sites.get(site as usize).into_iter();
        let all = row.flat_map(Sorted::iter).map(|(time, between)| (time as usize, between));
        all.take_while(|(time, _)| *time < self.times.len())
    }
}

impl Receiver for MomentSums {
    fn closed(&mut self, closed: &Closed) {
        let born = self.step_of(closed.life.born);
        let ended = closed.end.time().map(|time| self.step_of(time));
        let released = closed.deferred_at().map(|time| self.step_of(time.saturating_add(self.deferred_max)));
        let row = grown(&mut self.sites, closed.life.site);
        row.of(born).born += 1;
        if let Some(ended) = ended {
            let between = row.of(ended);
            match closed.end {
                End::Freed { free, .. } if free.is_deferred => between.deferred += 1,
                End::Freed { .. } => between.freed += 1,
                End::ImpliedFree { .. } => between.gone += 1,
                End::Live => {}
            }
        }
        if let Some(released) = released {
            row.of(released).released += 1;
        }
    }
}
