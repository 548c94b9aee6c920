//! How long objects live, by the call site that allocated them, and where they are freed.

use super::collector::{Collector, Share};
use super::histogram::Histogram;
use super::sums::{Sums, grown, merge_counts, merged};
use crate::ledger::lives::{End, Free, Life, NoLife};
use crate::ledger::{Closed, Interests, Receiver};

/// Lifetimes by call site.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lifetimes {
    /// Lives that end this soon after their birth count as temporary; in the clock's unit. `None`: none does.
    pub temporary_bound: Option<u64>,
}

impl Collector for Lifetimes {
    type Part = LifetimeSums;
    type Output = LifetimeSums;

    fn interests(&self) -> Interests {
        Interests { plain_lives: true, unmatched: true, ..Interests::default() }
    }

    fn partition(&self, _: &Share) -> LifetimeSums {
        LifetimeSums { temporary_bound: self.temporary_bound, ..LifetimeSums::default() }
    }

    fn merge(&self, first: LifetimeSums, others: Vec<LifetimeSums>) -> LifetimeSums {
        let mut out = merged(first, others);
        out.callers.iter_mut().for_each(|caller| caller.merge_freed_by(Vec::new()));
        out
    }
}

/// Lifetimes, added up.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LifetimeSums {
    /// By number of the call site and interface.
    pub callers: Vec<CallerLives>,
    /// Frees that ended no life of the trace, by number of the free's site.
    pub unmatched: Vec<u64>,
    temporary_bound: Option<u64>,
}

/// Lives that began at one call site.
#[derive(Debug, Default, PartialEq, Eq)]
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
    /// Number of the free's site, frees, sum of lifetimes.
    pub freed_by: Vec<(u32, (u64, u128))>,
}

impl Sums for LifetimeSums {
    fn absorb(&mut self, other: Self) {
        self.callers.absorb(other.callers);
        self.unmatched.absorb(other.unmatched);
    }
}

impl Receiver for LifetimeSums {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
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

    #[inline]
    fn freed_plainly(&mut self, caller: u32, life: &Life, free: &Free, bytes_alloc: u64, uncertain: bool) {
        self.freed(caller, life, free, free.time, bytes_alloc);
        if uncertain {
            grown(&mut self.callers, caller).uncertain += 1;
        }
    }

    fn gone_plainly(&mut self, caller: u32, uncertain: bool) {
        let caller = grown(&mut self.callers, caller);
        caller.unseen += 1;
        caller.uncertain += u64::from(uncertain);
    }

    fn unmatched(&mut self, free: &Free, _: NoLife) {
        *grown(&mut self.unmatched, free.site) += 1;
    }
}

impl LifetimeSums {
    /// A life was freed, and ended at `end`.
    #[inline]
    fn freed(&mut self, caller: u32, life: &Life, free: &Free, end: u64, bytes: u64) {
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
}

impl CallerLives {
    #[inline]
    fn freed_at(&mut self, site: u32, lifetime: u64) {
        match self.freed_by.first_mut() {
            Some(first) if first.0 == site => {
                let (_, (frees, time)) = first;
                *frees += 1;
                *time += u128::from(lifetime);
            }
            _ => self.freed_elsewhere(site, lifetime),
        }
    }

    fn freed_elsewhere(&mut self, site: u32, lifetime: u64) {
        let found = self.freed_by.iter().position(|f| f.0 == site).unwrap_or_else(|| {
            self.freed_by.push((site, (0, 0)));
            self.freed_by.len() - 1
        });
        if let Some((_, (frees, time))) = self.freed_by.get_mut(found) {
            *frees += 1;
            *time += u128::from(lifetime);
        }
        // Sites that are often looked for move forward.
        if found > 0 {
            self.freed_by.swap(found, found - 1);
        }
    }
}

impl CallerLives {
    /// Adds frees by their sites, and puts them in the order of the sites.
    fn merge_freed_by(&mut self, other: Vec<(u32, (u64, u128))>) {
        merge_counts(&mut self.freed_by, other, |own, other| own.absorb(other));
    }
}

impl Sums for CallerLives {
    fn absorb(&mut self, other: Self) {
        Sums::absorb(&mut self.freed, other.freed);
        self.censored.absorb(other.censored);
        self.unseen.absorb(other.unseen);
        self.uncertain.absorb(other.uncertain);
        self.bytes_freed.absorb(other.bytes_freed);
        self.temporary.absorb(other.temporary);
        self.bytes_temporary.absorb(other.bytes_temporary);
        self.temporary_elsewhere.absorb(other.temporary_elsewhere);
        self.byte_time.absorb(other.byte_time);
        self.merge_freed_by(other.freed_by);
    }
}
