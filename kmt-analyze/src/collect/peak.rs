//! When most bytes were live, and whose they were then.

use std::collections::VecDeque;

use super::collector::{Collector, Share};
use super::sums::grown;
use crate::ledger::{Change, Interests, Receiver};

/// The highest live bytes in a window of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peak {
    /// First and last time.
    pub window: (u64, u64),
}

impl Collector for Peak {
    type Part = PeakPart;
    type Output = LiveBytes;

    fn interests(&self) -> Interests {
        Interests { changes: true, ..Interests::default() }
    }

    fn partition(&self, share: &Share) -> PeakPart {
        let live = LiveBytes::new(self.window, share.rules.deferred_max);
        PeakPart { live, changes: (share.of > 1).then(Vec::new) }
    }

    fn merge(&self, first: PeakPart, others: Vec<PeakPart>) -> LiveBytes {
        let PeakPart { mut live, changes } = first;
        let mut changes = changes.unwrap_or_default();
        others.into_iter().for_each(|other| changes.extend(other.changes.unwrap_or_default()));
        // Changes of one event are of one part, or all of them ends: their order does not matter then.
        changes.sort_by_key(|change| change.order);
        changes.iter().for_each(|change| live.apply(change));
        live
    }
}

/// Follows the live bytes, or where there are other parts keeps what happened.
#[derive(Debug)]
pub struct PeakPart {
    live: LiveBytes,
    changes: Option<Vec<LiveChange>>,
}

impl Receiver for PeakPart {
    #[inline]
    fn changed(&mut self, change: &Change<'_>) {
        if !change.selected {
            return;
        }
        let bytes = change.site.bytes_alloc as i64;
        let change = LiveChange {
            order: change.order,
            time: change.time,
            site: change.life.site,
            bytes: if change.is_birth { bytes } else { bytes.wrapping_neg() },
            is_deferred: change.is_deferred,
        };
        match &mut self.changes {
            Some(changes) => changes.push(change),
            None => self.live.apply(&change),
        }
    }
}

/// The live bytes of a site change.
#[derive(Debug, Clone, Copy)]
struct LiveChange {
    order: u64,
    time: u64,
    site: u32,
    bytes: i64,
    is_deferred: bool,
}

/// Follows the live bytes.
///
/// The bytes of each site at the peak are known without a copy of all at every new peak: a site remembers what it
/// had when it first changes after one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LiveBytes {
    window: (u64, u64),
    live: i64,
    /// Highest live bytes and their time; `None` before the window.
    pub highest: Option<(i64, u64)>,
    peaks: u64,
    sites: Vec<SiteLive>,
    /// Whether the window has begun, so that what was live at its start is taken for a first peak.
    began: bool,
    last_time: u64,
    deferred_max: u64,
    /// What waits for a grace period: since when, and bytes and objects of it.
    waiting: VecDeque<(u64, i64)>,
    waiting_sum: (i64, i64),
    /// Whether objects of a site ever waited so.
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

impl LiveBytes {
    fn new(window: (u64, u64), deferred_max: u64) -> Self {
        Self { window, deferred_max, ..Self::default() }
    }

    fn apply(&mut self, change: &LiveChange) {
        self.change(change.time, change.site, change.bytes);
        if change.is_deferred {
            self.waits(change.time, change.site, change.bytes.wrapping_neg());
        }
    }

    /// Bytes of an object that its owner gave up wait for a grace period.
    fn waits(&mut self, time: u64, site: u32, bytes: i64) {
        self.release(time);
        *grown(&mut self.has_waiting, site) = true;
        self.waiting.push_back((time, bytes));
        self.waiting_sum = (self.waiting_sum.0 + bytes, self.waiting_sum.1 + 1);
    }

    /// What waited too long is free.
    fn release(&mut self, now: u64) {
        while let Some(&(_, bytes)) =
            self.waiting.front().filter(|(time, _)| time.saturating_add(self.deferred_max) < now)
        {
            self.waiting.pop_front();
            self.waiting_sum = (self.waiting_sum.0 - bytes, self.waiting_sum.1 - 1);
        }
    }

    /// The live bytes of a site change.
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

    /// Whether objects of that site ever waited for a grace period.
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
