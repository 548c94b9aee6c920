//! Survival of objects: how long they live, with those whose end is not known.

use super::histogram::{Histogram, RareHistogram};
use super::sums::sums;
use crate::ledger::lives::{End, Life};
use crate::ledger::{Closed, Rules};

/// Limits of a pass: lifetimes to compare with, and the end of the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Horizon {
    /// Lifetimes, in the clock's unit.
    pub bounds: [u64; 2],
    /// Last counted time.
    pub end: u64,
}

impl Horizon {
    /// Lifetimes to compare with, until the end of the window or of the trace.
    pub fn new(bounds: Option<[u64; 2]>, rules: &Rules) -> Self {
        Self { bounds: bounds.unwrap_or([u64::MAX; 2]), end: rules.window.1.min(rules.last) }
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
    /// Objects that were certainly alive at their birth only.
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
    #[inline]
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
