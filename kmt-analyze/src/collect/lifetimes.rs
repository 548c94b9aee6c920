//! Lifetimes of objects: by call site with the sites of their frees, and by site, cache and origin for `--by`.
//!
//! All of them were allocated in the window: of older objects only those that lived into it are known, with lifetimes longer than
//! it. Objects allocated before the trace clock ran ([`Ages`]) are only counted. Survival includes objects whose end is not known:
//! only their age is. The report `lifetimes` estimates medians from it.

use std::collections::HashMap;

use super::collector::{PassFacts, StateCollector};
use super::groups::Group;
use super::histogram::{Histogram, RareHistogram};
use super::sorted::Sorted;
use super::sums::{grown, sums};
use crate::int_hash::IntHash;
use crate::ledger::lives::{End, Free, Life, NoLife};
use crate::ledger::{Closed, FoldedLives, FreedPlain, Interests, PlainLife, Receiver, Rules};
use crate::trace::ages::Ages;

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
    /// Objects allocated before the clock ran; they are in no other number but the bytes of the survival.
    pub unknown_age: u64,
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
        let is_known = grown(&mut self.callers, closed.caller).count(closed, &self.horizon);
        let End::Freed { free, end, .. } = closed.end else { return };
        if closed.is_freed && is_known {
            let lifetime = end.saturating_sub(closed.life.born);
            self.freed(closed.caller, &closed.life, &free, lifetime, closed.bytes_alloc);
        }
    }

    #[inline]
    fn freed_plain(&mut self, freed: &FreedPlain) {
        let (plain, free, horizon) = (&freed.plain, freed.free(), self.horizon);
        let Some(lifetime) = horizon.ages.length(plain.life.born, free.time) else {
            return self.without_age(plain);
        };
        let caller = self.freed(plain.caller, &plain.life, &free, lifetime, plain.bytes_alloc);
        caller.survival.freed(&plain.life, free.time, plain.bytes_alloc, plain.lost_at, &horizon);
        caller.uncertain += u64::from(plain.lost_at.is_some());
    }

    fn implied_free_plain(&mut self, plain: &PlainLife, end: u64) {
        if !self.horizon.ages.is_known(plain.life.born) {
            return self.without_age(plain);
        }
        let caller = grown(&mut self.callers, plain.caller);
        caller.implied_frees += 1;
        caller.uncertain += u64::from(plain.lost_at.is_some());
        caller.survival.implied(&plain.life, end, plain.bytes_alloc, plain.lost_at, &self.horizon);
    }

    fn unmatched(&mut self, _: u64, free: &Free, _: NoLife) {
        *grown(&mut self.unmatched, free.site) += 1;
    }

    fn folded(&mut self, lives: &FoldedLives) {
        let bounds = self.horizon.bounds;
        let is_temporary = self.temporary_bound.is_some_and(|bound| lives.sums.length_max <= bound);
        grown(&mut self.callers, lives.caller).folded(lives, bounds, is_temporary);
    }

    fn folded_bucket(&mut self, lives: &FoldedLives, bucket: u32, count: u64) {
        grown(&mut self.callers, lives.caller).freed.add_bucket(bucket, count);
    }
}

impl LifetimeSums {
    /// Counts a life that began before the clock ran, and has ended.
    #[cold]
    fn without_age(&mut self, plain: &PlainLife) {
        grown(&mut self.callers, plain.caller).without_age(plain.bytes_alloc, [0; 2]);
    }

    /// Adds a freed life.
    #[inline(always)]
    fn freed(
        &mut self,
        caller: u32,
        life: &Life,
        free: &Free,
        lifetime: u64,
        bytes: u64,
    ) -> &mut CallerLives {
        let caller = grown(&mut self.callers, caller);
        caller.freed(lifetime, free, bytes);
        if self.temporary_bound.is_some_and(|bound| lifetime <= bound) {
            caller.temporary += 1;
            caller.bytes_temporary += bytes;
            caller.temporary_elsewhere += u64::from(free.origin != life.origin);
        }
        caller
    }
}

impl CallerLives {
    /// True if a life ended in the window, or had not ended.
    pub fn any(&self) -> bool {
        self.freed.count() + self.censored + self.implied_frees + self.unknown_age > 0
    }

    /// Adds a life; it is not counted as temporary.
    #[inline]
    pub(super) fn add(&mut self, closed: &Closed, horizon: &Horizon) {
        let is_known = self.count(closed, horizon);
        if let End::Freed { free, end, .. } = closed.end {
            if closed.is_freed && is_known {
                self.freed(end.saturating_sub(closed.life.born), &free, closed.bytes_alloc);
            }
        }
    }

    /// Counts a life; false if its age is unknown.
    #[inline]
    fn count(&mut self, closed: &Closed, horizon: &Horizon) -> bool {
        if !horizon.ages.is_known(closed.life.born) {
            let live = if closed.is_live { closed.bytes_alloc } else { 0 };
            let certain = if closed.lost_at.is_none() { live } else { 0 };
            self.without_age(closed.bytes_alloc, [certain, live]);
            return false;
        }
        self.survival.add(closed, horizon);
        self.uncertain += u64::from(closed.uncertain);
        self.censored += u64::from(closed.is_live);
        self.implied_frees += u64::from(closed.is_implied_free);
        true
    }

    /// Counts a life that began before the clock ran: it may have lasted for any time.
    #[cold]
    fn without_age(&mut self, bytes: u64, live: [u64; 2]) {
        self.unknown_age += 1;
        self.survival.without_age(bytes, live);
    }

    /// Adds folded lives, but for their buckets.
    #[cold]
    fn folded(&mut self, lives: &FoldedLives, bounds: [u64; 2], is_temporary: bool) {
        let (sums, bytes) = (&lives.sums, lives.bytes_alloc.saturating_mul(lives.sums.count));
        self.freed.add_sum(sums.length_sum, sums.length_max);
        self.bytes_freed = self.bytes_freed.saturating_add(bytes);
        self.byte_time += u128::from(lives.bytes_alloc) * u128::from(sums.length_sum);
        let (frees, time) = self.freed_by.of(lives.free_site);
        *frees = frees.saturating_add(sums.count);
        *time += u128::from(sums.length_sum);
        if is_temporary {
            self.temporary = self.temporary.saturating_add(sums.count);
            self.bytes_temporary = self.bytes_temporary.saturating_add(bytes);
            self.temporary_elsewhere = self.temporary_elsewhere.saturating_add(sums.elsewhere);
        }
        self.survival.bytes = self.survival.bytes.saturating_add(bytes);
        // The bounds of survival are a millisecond and a second, where there are any.
        for ((outlive, bound), longer) in
            self.survival.outlive.iter_mut().zip(bounds).zip([sums.over_ms, sums.over_s])
        {
            let longer = if bound == u64::MAX { 0 } else { longer.saturating_mul(lives.bytes_alloc) };
            outlive.iter_mut().for_each(|sum| *sum = sum.saturating_add(longer));
        }
    }

    #[inline(always)]
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
    freed, censored, implied_frees, uncertain, unknown_age, bytes_freed, temporary, bytes_temporary,
    temporary_elsewhere, byte_time, freed_by, survival
);

/// Limits of a pass: lifetimes to compare with, the end of the window, and the start of the clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Horizon {
    /// Lifetimes, in the clock's unit.
    pub bounds: [u64; 2],
    /// Last counted time.
    pub end: u64,
    /// Lengths of lives.
    pub ages: Ages,
}

impl Horizon {
    /// Lifetimes to compare with, until the end of the window or of the trace.
    pub fn new(bounds: Option<[u64; 2]>, rules: &Rules) -> Self {
        Self {
            bounds: bounds.unwrap_or([u64::MAX; 2]),
            end: rules.window.1.min(rules.last),
            ages: rules.ages,
        }
    }
}

/// Survival of the objects that were allocated in the window.
///
/// An object is certainly alive until its free event, until the end of the window, or until the first time in its life
/// at which events may be missing. An implied free has no such time: the object is certainly alive at its birth only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survival {
    /// Bytes of all of them.
    pub bytes: u64,
    /// Bytes of those that live longer than the first bound, the second bound, and the window: at least, at most.
    pub outlive: [[u64; 2]; 3],
    /// Lifetimes of freed objects that are not exact.
    pub inexact: RareHistogram,
    /// Ages at which objects with an unknown end were certainly alive.
    pub censored: Histogram,
    /// Objects that were certainly alive at their birth only, or whose age is unknown.
    pub left_out: u64,
}

sums!(Survival: bytes, outlive, inexact, censored, left_out);

impl Survival {
    /// Adds a life that began in the window.
    pub fn add(&mut self, closed: &Closed, horizon: &Horizon) {
        let (born, bytes) = (closed.life.born, closed.bytes_alloc);
        let ended = closed.end.time().filter(|&end| closed.is_freed || end <= horizon.end);
        match (closed.end, ended) {
            (End::Freed { .. }, Some(end)) if closed.is_freed => {
                self.freed(&closed.life, end, bytes, closed.lost_at, horizon);
            }
            (_, Some(end)) => self.implied(&closed.life, end, bytes, closed.lost_at, horizon),
            (_, None) => {
                let until = closed.lost_at.unwrap_or(u64::MAX).min(horizon.end);
                let age = until.saturating_sub(born);
                self.censored.add(age);
                self.count(bytes, age, u64::MAX, horizon);
                // An end after the window, also an implied one, changes nothing: a pass need not read as far.
                self.outlive[2][0] += if until == horizon.end { bytes } else { 0 };
                self.outlive[2][1] += bytes;
            }
        }
    }

    /// Adds an object allocated in the window, with its free event.
    #[inline(always)]
    pub fn freed(&mut self, life: &Life, end: u64, bytes: u64, lost_at: Option<u64>, horizon: &Horizon) {
        let lifetime = end.saturating_sub(life.born);
        let Some(lost_at) = lost_at else { return self.count(bytes, lifetime, lifetime, horizon) };
        let age = lost_at.saturating_sub(life.born).min(lifetime);
        self.inexact.add(lifetime);
        self.censored.add(age);
        self.count(bytes, age, lifetime, horizon);
    }

    /// Adds an object allocated in the window, with an implied free.
    pub fn implied(&mut self, life: &Life, end: u64, bytes: u64, lost_at: Option<u64>, horizon: &Horizon) {
        let lifetime = end.saturating_sub(life.born);
        let age = lost_at.map_or(0, |lost_at| lost_at.saturating_sub(life.born)).min(lifetime);
        match lost_at {
            Some(_) => self.censored.add(age),
            None => self.left_out += 1,
        }
        self.count(bytes, age, lifetime, horizon);
    }

    /// Adds an object allocated before the clock ran; `live` are its bytes at the end, at least and at most.
    fn without_age(&mut self, bytes: u64, live: [u64; 2]) {
        self.left_out += 1;
        self.bytes += bytes;
        let [ms, second, window] = &mut self.outlive;
        [ms, second].into_iter().for_each(|[_, at_most]| *at_most += bytes);
        window.iter_mut().zip(live).for_each(|(sum, live)| *sum += live);
    }

    /// Counts the bytes of an object whose lifetime is between two numbers.
    #[inline]
    fn count(&mut self, bytes: u64, at_least: u64, at_most: u64, horizon: &Horizon) {
        self.bytes += bytes;
        for (outlive, &bound) in self.outlive.iter_mut().zip(&horizon.bounds) {
            outlive[0] += if at_least > bound { bytes } else { 0 };
            outlive[1] += if at_most > bound { bytes } else { 0 };
        }
    }
}

/// Collects lifetimes by site, cache and origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LifeGroups {
    /// Lifetimes with which those of the objects are compared, in the clock's unit.
    pub outlive: Option<[u64; 2]>,
}

impl StateCollector for LifeGroups {
    type State = LifeGroupSums;

    const INTERESTS: Interests = Interests::LIVES;

    fn begin(&self, facts: &PassFacts) -> LifeGroupSums {
        LifeGroupSums { horizon: Horizon::new(self.outlive, &facts.rules), ..LifeGroupSums::default() }
    }
}

/// Lives of all groups.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LifeGroupSums {
    /// By site, cache and origin.
    pub groups: HashMap<Group, CallerLives, IntHash>,
    horizon: Horizon,
}

impl Receiver for LifeGroupSums {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        if !closed.is_born {
            return;
        }
        let group = Group { site: closed.life.site, cache: closed.cache, origin: closed.life.origin };
        self.groups.entry(group).or_default().add(closed, &self.horizon);
    }
}
