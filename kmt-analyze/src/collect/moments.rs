//! How many objects of each site live at given times.

use super::grown;
use crate::ledger::Closed;
use crate::ledger::Rules;
use crate::ledger::lives::End;

/// What happened between a time and the one before it, that time included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Between {
    /// Lives that began.
    pub born: u64,
    /// Lives that ended with an event.
    pub freed: u64,
    /// Lives that were found to be over.
    pub gone: u64,
    /// Objects that were handed to kfree_rcu.
    pub deferred: u64,
    /// Objects that were handed to kfree_rcu so long ago that they are free.
    pub released: u64,
}

/// Counts lives between times.
#[derive(Debug, Default)]
pub struct Moments {
    /// Sorted.
    times: Vec<u64>,
    /// By number of the site; one more than there are times, or none.
    sites: Vec<Vec<Between>>,
    deferred_max: u64,
}

impl Moments {
    /// At times that are sorted.
    pub fn new(times: Vec<u64>) -> Self {
        Self { times, sites: Vec::new(), deferred_max: 0 }
    }

    /// Takes over what the rules depend on.
    pub fn learn(&mut self, rules: &Rules) {
        self.deferred_max = rules.deferred_max;
    }

    fn place(&self, time: u64) -> usize {
        self.times.partition_point(|&t| t < time)
    }

    /// A life is added up.
    pub fn closed(&mut self, closed: &Closed) {
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
            (Some(between), End::Unseen { .. }) => between.gone += 1,
            _ => {}
        }
        if let Some(between) = released.and_then(|place| row.get_mut(place)) {
            between.released += 1;
        }
    }

    /// What happened until each time since the one before, of a site; empty: nothing.
    pub fn of_site(&self, site: u32) -> &[Between] {
        let row = self.sites.get(site as usize).map_or(&[][..], Vec::as_slice);
        row.get(..self.times.len()).unwrap_or_default()
    }
}
