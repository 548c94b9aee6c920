//! How long objects live, by the call site that allocated them, and where they are freed.

use super::grown;
use super::histogram::Histogram;
use crate::ledger::Closed;
use crate::ledger::lives::{End, Free, Life};

/// Lifetimes by call site.
#[derive(Debug, Default)]
pub struct Lifetimes {
    /// By number of the call site and interface.
    pub callers: Vec<CallerLives>,
    /// Frees that ended no life of the trace, by number of the free's site.
    pub unmatched: Vec<u64>,
    /// Lives that end this soon after their birth count as temporary; in the clock's unit. `None`: nobody asks.
    pub temporary_bound: Option<u64>,
}

/// Lives that began at one call site.
#[derive(Debug, Default)]
pub struct CallerLives {
    /// Lifetimes of those that were freed in the window, in the clock's unit.
    pub freed: Histogram,
    /// Those that go on at its end: censored, their lifetimes are at least their ages.
    pub censored: u64,
    /// Those that were found gone: freed unseen, at an unknown time.
    pub unseen: u64,
    /// Those of all these that cross a loss, or whose free is ambiguous.
    pub uncertain: u64,
    /// Bytes of those that were freed.
    pub bytes_freed: u64,
    /// Freed at once.
    pub temporary: u64,
    /// Bytes of those.
    pub bytes_temporary: u64,
    /// Freed at once, and on another CPU than allocated.
    pub temporary_elsewhere: u64,
    /// Bytes times the clock's unit that the freed ones were held.
    pub byte_time: u128,
    /// Number of the free's site, frees, sum of lifetimes; most wanted first, roughly.
    pub freed_by: Vec<(u32, u64, u128)>,
}

impl Lifetimes {
    /// Nothing yet.
    pub fn new(temporary_bound: Option<u64>) -> Self {
        Self { temporary_bound, ..Self::default() }
    }

    /// A life is added up.
    #[inline]
    pub fn closed(&mut self, closed: &Closed) {
        let caller = grown(&mut self.callers, closed.caller);
        caller.uncertain += u64::from(closed.uncertain);
        caller.censored += u64::from(closed.is_live);
        caller.unseen += u64::from(closed.is_unseen);
        let End::Freed { free, end, .. } = closed.end else { return };
        if !closed.is_freed {
            return;
        }
        self.freed(closed.caller, &closed.life, &free, end, closed.bytes_alloc);
    }

    /// A life that was added up crosses a loss, or does not.
    #[inline]
    pub fn uncertain(&mut self, caller: u32, uncertain: bool) {
        if uncertain {
            grown(&mut self.callers, caller).uncertain += 1;
        }
    }

    /// A life was found gone.
    pub fn unseen(&mut self, caller: u32) {
        grown(&mut self.callers, caller).unseen += 1;
    }

    /// A life was freed, and ended at `end`.
    #[inline]
    pub fn freed(&mut self, caller: u32, life: &Life, free: &Free, end: u64, bytes: u64) {
        let lifetime = end.saturating_sub(life.born);
        let caller = grown(&mut self.callers, caller);
        caller.freed.add(lifetime);
        caller.bytes_freed += bytes;
        caller.byte_time += u128::from(bytes) * u128::from(lifetime);
        if self.temporary_bound.is_some_and(|bound| lifetime <= bound) {
            caller.temporary += 1;
            caller.bytes_temporary += bytes;
            caller.temporary_elsewhere += u64::from(free.origin != life.origin);
        }
        caller.freed_at(free.site, lifetime);
    }

    /// A free that ended no life.
    pub fn unmatched(&mut self, free: &Free) {
        *grown(&mut self.unmatched, free.site) += 1;
    }
}

impl CallerLives {
    #[inline]
    fn freed_at(&mut self, site: u32, lifetime: u64) {
        match self.freed_by.first_mut() {
            Some(first) if first.0 == site => {
                first.1 += 1;
                first.2 += u128::from(lifetime);
            }
            _ => self.freed_elsewhere(site, lifetime),
        }
    }

    fn freed_elsewhere(&mut self, site: u32, lifetime: u64) {
        let found = self.freed_by.iter().position(|f| f.0 == site).unwrap_or_else(|| {
            self.freed_by.push((site, 0, 0));
            self.freed_by.len() - 1
        });
        if let Some(by) = self.freed_by.get_mut(found) {
            by.1 += 1;
            by.2 += u128::from(lifetime);
        }
        // What is often looked for moves forward.
        if found > 0 {
            self.freed_by.swap(found, found - 1);
        }
    }
}
