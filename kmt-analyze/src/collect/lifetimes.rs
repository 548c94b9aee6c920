//! Lifetimes of objects by call site, with the sites of their frees.
//!
//! All of them were allocated in the window: of older objects only those that lived into it are known, with lifetimes longer
//! than it.

use super::collector::{PassFacts, StateCollector};
use super::histogram::Histogram;
use super::sorted::Sorted;
use super::sums::{grown, sums};
use super::survival::{Horizon, Survival};
use crate::ledger::lives::{End, Free, Life, NoLife};
use crate::ledger::{Closed, Interests, PlainLife, Receiver};

/// Collects lifetimes by call site.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lifetimes {
    /// Longest lifetime of a temporary object, in the clock's unit; `None`: no object is temporary.
    pub temporary_bound: Option<u64>,
    /// Lifetimes with which those of the objects are compared, in the clock's unit.
    pub outlive: Option<[u64; 2]>,
}

impl StateCollector for Lifetimes {
    type State = LifetimeSums;

    const INTERESTS: Interests = Interests::PLAIN_LIVES.union(Interests::UNMATCHED);

    fn begin(&self, facts: &PassFacts) -> LifetimeSums {
        let horizon = Horizon::new(self.outlive, &facts.rules);
        LifetimeSums { temporary_bound: self.temporary_bound, horizon, ..LifetimeSums::default() }
    }
}

/// Lifetimes of all call sites.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LifetimeSums {
    /// By number of the call site and interface.
    pub callers: Vec<CallerLives>,
    /// Frees without a life in the trace, by number of the freeing site.
    pub unmatched: Vec<u64>,
    temporary_bound: Option<u64>,
    horizon: Horizon,
}

/// Lives of the objects of one call site.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallerLives {
    /// Lifetimes of objects allocated and freed in the window, in the clock's unit.
    pub freed: Histogram,
    /// Objects still allocated at its end: censored, their lifetimes are at least their ages.
    pub censored: u64,
    /// Implied frees, at an unknown time.
    pub implied_frees: u64,
    /// Those that cross a loss, or whose free is ambiguous.
    pub uncertain: u64,
    /// Bytes of the freed objects.
    pub bytes_freed: u64,
    /// Temporary objects.
    pub temporary: u64,
    /// Bytes of temporary objects.
    pub bytes_temporary: u64,
    /// Temporary objects freed on another CPU, by another task or on another interrupt level.
    pub temporary_elsewhere: u64,
    /// Sum of bytes x lifetime of the freed objects, in bytes x the clock's unit.
    pub byte_time: u128,
    /// By number of the freeing site: frees, sum of lifetimes.
    pub freed_by: Sorted<(u64, u128)>,
    /// Survival of the objects allocated in the window.
    pub survival: Survival,
}

impl Receiver for LifetimeSums {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        if !closed.is_born {
            return;
        }
        grown(&mut self.callers, closed.caller).count(closed, &self.horizon);
        let End::Freed { free, end, .. } = closed.end else { return };
        if closed.is_freed {
            self.freed(closed.caller, &closed.life, &free, end, closed.bytes_alloc);
        }
    }

    #[inline]
    fn freed_plain(&mut self, caller: u32, life: &Life, free: &Free, plain: PlainLife) {
        self.freed(caller, life, free, free.time, plain.bytes_alloc);
        let caller = grown(&mut self.callers, caller);
        caller.survival.freed(life, free.time, plain.bytes_alloc, plain.lost_at, &self.horizon);
        caller.uncertain += u64::from(plain.lost_at.is_some());
    }

    fn implied_free_plain(&mut self, caller: u32, life: &Life, end: u64, plain: PlainLife) {
        let caller = grown(&mut self.callers, caller);
        caller.implied_frees += 1;
        caller.uncertain += u64::from(plain.lost_at.is_some());
        caller.survival.implied(life, end, plain.bytes_alloc, plain.lost_at, &self.horizon);
    }

    fn unmatched(&mut self, free: &Free, _: NoLife) {
        *grown(&mut self.unmatched, free.site) += 1;
    }
}

impl LifetimeSums {
    /// Adds a freed life that ended at `end`.
    #[inline]
    fn freed(&mut self, caller: u32, life: &Life, free: &Free, end: u64, bytes: u64) {
        let lifetime = end.saturating_sub(life.born);
        let caller = grown(&mut self.callers, caller);
        caller.freed(lifetime, free, bytes);
        if self.temporary_bound.is_some_and(|bound| lifetime <= bound) {
            caller.temporary += 1;
            caller.bytes_temporary += bytes;
            caller.temporary_elsewhere += u64::from(free.origin != life.origin);
        }
    }
}

impl CallerLives {
    /// True if a life ended in the window, or had not ended.
    pub fn any(&self) -> bool {
        self.freed.count() + self.censored + self.implied_frees > 0
    }

    /// Adds a life; it is not counted as temporary.
    #[inline]
    pub(super) fn add(&mut self, closed: &Closed, horizon: &Horizon) {
        self.count(closed, horizon);
        if let End::Freed { free, end, .. } = closed.end {
            if closed.is_freed {
                self.freed(end.saturating_sub(closed.life.born), &free, closed.bytes_alloc);
            }
        }
    }

    #[inline]
    fn count(&mut self, closed: &Closed, horizon: &Horizon) {
        self.survival.add(closed, horizon);
        self.uncertain += u64::from(closed.uncertain);
        self.censored += u64::from(closed.is_live);
        self.implied_frees += u64::from(closed.is_implied_free);
    }

    #[inline]
    fn freed(&mut self, lifetime: u64, free: &Free, bytes: u64) {
        self.freed.add(lifetime);
        self.bytes_freed += bytes;
        self.byte_time += u128::from(bytes) * u128::from(lifetime);
        let (frees, time) = self.freed_by.of(free.site);
        *frees += 1;
        *time += u128::from(lifetime);
    }
}

sums!(
    CallerLives:
    freed, censored, implied_frees, uncertain, bytes_freed, temporary, bytes_temporary,
    temporary_elsewhere, byte_time, freed_by, survival
);
