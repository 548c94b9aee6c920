//! Live bytes of each site at the peak, and live objects of each site at given times.
//!
//! A site stores its bytes at its first change after a peak, so that a new peak needs no copy of all sites. `peak` and `slabinfo`
//! use these.

use std::collections::VecDeque;

use super::collector::{PassFacts, StateCollector};
use super::sorted::Sorted;
use super::sums::{grown, sums};
use crate::ledger::lives::End;
use crate::ledger::{Change, Closed, FreedPlain, Interests, PlainLife, Receiver};

/// Collects the highest live bytes in a window of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peak {
    /// First and last time.
    pub window: (u64, u64),
}

impl StateCollector for Peak {
    type State = LiveBytes;

    const INTERESTS: Interests = Interests::CHANGES;

    fn begin(&self, facts: &PassFacts) -> LiveBytes {
        LiveBytes::new(self.window, facts.rules.deferred_max)
    }
}

/// Tracks live bytes.
///
/// The bytes of each site at the peak need no copy of all sites at each new peak: a site stores its bytes at its first
/// change after a peak.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LiveBytes {
    window: (u64, u64),
    live: i64,
    /// Highest live bytes and their time; `None` before the window.
    pub highest: Option<(i64, u64)>,
    peaks: u64,
    sites: Vec<SiteLive>,
    /// True if the window has begun: bytes live at its start are the first peak.
    began: bool,
    last_time: u64,
    deferred_max: u64,
    /// Objects that wait for a grace period: begin of the wait, bytes.
    waiting: VecDeque<(u64, i64)>,
    waiting_sum: (i64, i64),
    /// True for sites with objects that waited, by number.
    has_waiting: Vec<bool>,
    /// Bytes and objects that may have waited for a grace period at the peak.
    pub waiting_at_peak: (i64, i64),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct SiteLive {
    now: (i64, i64),
    at_peak: (i64, i64),
    peaks: u64,
}

impl Receiver for LiveBytes {
    #[inline]
    fn changed(&mut self, change: &Change) {
        if !change.selected {
            return;
        }
        let (time, site, bytes) = (change.time, change.life.site, change.site.bytes_alloc as i64);
        self.change(time, site, if change.is_birth { bytes } else { bytes.wrapping_neg() });
        if change.is_deferred {
            self.waits(time, site, bytes);
        }
    }
}

impl LiveBytes {
    fn new(window: (u64, u64), deferred_max: u64) -> Self {
        Self { window, deferred_max, ..Self::default() }
    }

    /// Adds an object that waits for a grace period.
    fn waits(&mut self, time: u64, site: u32, bytes: i64) {
        self.release(time);
        *grown(&mut self.has_waiting, site) = true;
        self.waiting.push_back((time, bytes));
        self.waiting_sum = (self.waiting_sum.0 + bytes, self.waiting_sum.1 + 1);
    }

    /// Removes objects whose longest wait is over.
    fn release(&mut self, now: u64) {
        while let Some(&(_, bytes)) =
            self.waiting.front().filter(|(time, _)| time.saturating_add(self.deferred_max) < now)
        {
            self.waiting.pop_front();
            self.waiting_sum = (self.waiting_sum.0 - bytes, self.waiting_sum.1 - 1);
        }
    }

    /// Applies a change of the live bytes of a site.
    #[inline]
    fn change(&mut self, time: u64, site: u32, bytes: i64) {
        if time > self.window.1 {
            return;
        }
        if !self.began && time >= self.window.0 {
            self.began = true;
            if self.live > 0 {
                self.new_peak(self.window.0);
            }
        }
        self.last_time = time;
        let peaks = self.peaks;
        let entry = grown(&mut self.sites, site);
        if entry.peaks != peaks {
            entry.at_peak = entry.now;
            entry.peaks = peaks;
        }
        entry.now.0 += bytes;
        entry.now.1 += bytes.signum();
        self.live += bytes;
        if bytes > 0 && self.began && self.highest.is_none_or(|(highest, _)| self.live > highest) {
            self.new_peak(time);
        }
    }

    fn new_peak(&mut self, time: u64) {
        self.release(time);
        self.waiting_at_peak = self.waiting_sum;
        self.highest = Some((self.live, time));
        self.peaks += 1;
    }

    /// True if objects of that site waited for a grace period.
    pub fn has_waiting(&self, site: u32) -> bool {
        self.has_waiting.get(site as usize) == Some(&true)
    }

    /// Bytes and objects of each site at the peak.
    pub fn sites(&self) -> impl Iterator<Item = (u32, u64, u64)> + '_ {
        self.sites.iter().enumerate().map(|(number, site)| {
            let (bytes, objects) = if site.peaks == self.peaks { site.at_peak } else { site.now };
            (number as u32, bytes.max(0) as u64, objects.max(0) as u64)
        })
    }
}

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

    const INTERESTS: Interests = Interests::PLAIN_LIVES;

    fn begin(&self, facts: &PassFacts) -> MomentSums {
        MomentSums { times: self.times.clone(), sites: Vec::new(), deferred_max: facts.rules.deferred_max }
    }
}

/// Changes of lives between times.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MomentSums {
    /// Sorted.
    times: Vec<u64>,
    /// By number of the site: changes up to each time, by its number. Those after the last time are left out.
    sites: Vec<Sorted<MomentChanges>>,
    deferred_max: u64,
}

sums!(MomentChanges: born, freed, gone, deferred, released);

impl MomentSums {
    /// Adds a change of a site at a time.
    #[inline]
    fn add(&mut self, site: u32, time: u64, change: impl FnOnce(&mut MomentChanges)) {
        let step = self.times.partition_point(|&t| t < time);
        if step < self.times.len() {
            change(grown(&mut self.sites, site).of(step as u32));
        }
    }

    /// Changes of a site up to a time, since the one before, with the number of the time; times without changes are left
    /// out.
    pub fn of_site(&self, site: u32) -> impl Iterator<Item = (usize, &MomentChanges)> {
        let row = self.sites.get(site as usize).into_iter();
        row.flat_map(Sorted::iter).map(|(time, between)| (time as usize, between))
    }
}

impl Receiver for MomentSums {
    fn closed(&mut self, closed: &Closed) {
        let site = closed.life.site;
        self.add(site, closed.life.born, |at| at.born += 1);
        if let Some(end) = closed.end.time() {
            self.add(site, end, |at| match closed.end {
                End::Freed { free, .. } if free.is_deferred => at.deferred += 1,
                End::Freed { .. } => at.freed += 1,
                End::ImpliedFree { .. } => at.gone += 1,
                End::Live => {}
            });
        }
        if let Some(time) = closed.deferred_at() {
            self.add(site, time.saturating_add(self.deferred_max), |at| at.released += 1);
        }
    }

    #[inline]
    fn freed_plain(&mut self, FreedPlain { plain, op, .. }: &FreedPlain) {
        self.add(plain.life.site, plain.life.born, |at| at.born += 1);
        self.add(plain.life.site, op.time, |at| at.freed += 1);
    }

    fn implied_free_plain(&mut self, plain: &PlainLife, end: u64) {
        self.add(plain.life.site, plain.life.born, |at| at.born += 1);
        self.add(plain.life.site, end, |at| at.gone += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sites_are_those_of_the_peak() {
        let mut peak = LiveBytes::new((0, 100), 0);
        for (time, site, bytes) in
            [(1, 0, 100), (2, 1, 50), (3, 0, -100), (4, 2, 120), (5, 1, -50), (6, 3, 10), (200, 0, 999)]
        {
            peak.change(time, site, bytes);
        }
        assert_eq!(peak.highest, Some((170, 4)));
        let sites: Vec<_> = peak.sites().filter(|s| s.1 > 0).collect();
        assert_eq!(sites, [(1, 50, 1), (2, 120, 1)]);
    }

    #[test]
    fn what_was_live_before_the_window_counts_in_it() {
        let mut peak = LiveBytes::new((10, 20), 0);
        for (time, bytes) in [(1, 100), (5, 60), (12, -60), (13, 10)] {
            peak.change(time, 0, bytes);
        }
        assert_eq!(peak.highest, Some((160, 10)), "at its very start");
    }

    #[test]
    fn what_waited_long_enough_is_dropped_without_a_new_peak() {
        let mut peak = LiveBytes::new((0, u64::MAX), 15);
        peak.change(0, 0, 1_000_000);
        (1..1_000).for_each(|time| peak.waits(time, 0, 8));
        assert_eq!((peak.waiting.len(), peak.waiting_sum), (16, (128, 16)));
    }
}
