//! Memory at the marks of a boot: live slab bytes and pages between given times, and the fate of what was allocated before
//! user space began.
//!
//! A change at the time of a mark is behind it. Changes of pages that hold slab objects are among those of pages. A life that
//! crosses a loss is uncertain from the loss on.

use super::collector::{PassFacts, StateCollector};
use crate::ledger::{Closed, ClosedFrames, FreedPlain, Interests, PlainLife, Receiver};

/// Collects live memory at times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BootMemory {
    /// The times, sorted.
    pub times: Vec<u64>,
    /// Time at which user space begins.
    pub user_space: Option<u64>,
}

impl StateCollector for BootMemory {
    type State = BootMemorySums;

    const INTERESTS: Interests = Interests::PLAIN_LIVES.union(Interests::FRAMES);

    fn begin(&self, _: &PassFacts) -> BootMemorySums {
        let changes = || vec![0; self.times.len() + 1];
        BootMemorySums {
            of: self.clone(),
            slab: changes(),
            uncertain: changes(),
            pages: changes(),
            ..BootMemorySums::default()
        }
    }
}

/// Changes of live memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BootMemorySums {
    of: BootMemory,
    /// Slab bytes before the first time, before each next one, and behind the last.
    slab: Vec<i64>,
    /// Those of them that are uncertain.
    uncertain: Vec<i64>,
    /// Pages before the first time, before each next one, and behind the last.
    pages: Vec<i64>,
    /// Slab objects allocated before user space began, in bytes.
    pub before: Fates,
    /// Pages allocated before user space began, in pages.
    pub pages_before: Fates,
}

/// Amount allocated before a time, by its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fates {
    /// Allocated.
    pub allocated: u64,
    /// Freed before that time, implied frees included.
    pub freed_before: u64,
    /// Freed after it.
    pub freed_after: u64,
    /// Of an uncertain end: it crosses a loss, or its free is ambiguous.
    pub uncertain: u64,
}

impl Fates {
    fn add(&mut self, amount: u64, end: Option<u64>, at: u64, uncertain: u64) {
        self.allocated = self.allocated.saturating_add(amount);
        self.uncertain = self.uncertain.saturating_add(uncertain);
        match end {
            Some(end) if end < at => self.freed_before = self.freed_before.saturating_add(amount),
            Some(_) => self.freed_after = self.freed_after.saturating_add(amount),
            None => {}
        }
    }
}

impl BootMemorySums {
    fn interval(&self, time: u64) -> usize {
        self.of.times.partition_point(|&mark| mark <= time)
    }

    /// Live slab bytes at each time, and at the end.
    pub fn slab(&self) -> Vec<u64> {
        levels(&self.slab)
    }

    /// Those of them that are uncertain.
    pub fn uncertain(&self) -> Vec<u64> {
        levels(&self.uncertain)
    }

    /// Live pages at each time, and at the end.
    pub fn pages(&self) -> Vec<u64> {
        levels(&self.pages)
    }

    fn life(&mut self, life: &Span, bytes: u64) {
        let (from, to) = (self.interval(life.born), life.end.map(|end| self.interval(end)));
        change(&mut self.slab, from, to, bytes);
        if let Some(lost_at) = life.lost_at {
            let from = self.interval(lost_at);
            change(&mut self.uncertain, from, to.map(|to| to.max(from)), bytes);
        }
        if let Some(at) = self.of.user_space.filter(|&at| life.is_born && life.born < at) {
            self.before.add(bytes, life.end, at, if life.is_uncertain { bytes } else { 0 });
        }
    }
}

/// A life from its birth to its end.
struct Span {
    born: u64,
    end: Option<u64>,
    /// First time at which events may be missing.
    lost_at: Option<u64>,
    /// It crosses a loss, or its free is ambiguous.
    is_uncertain: bool,
    is_born: bool,
}

impl Span {
    fn of_plain(plain: &PlainLife, end: u64) -> Self {
        let lost_at = plain.lost_at;
        Self {
            born: plain.life.born,
            end: Some(end),
            lost_at,
            is_uncertain: lost_at.is_some(),
            is_born: true,
        }
    }
}

fn change(changes: &mut [i64], from: usize, to: Option<usize>, amount: u64) {
    let amount = i64::try_from(amount).unwrap_or(i64::MAX);
    if let Some(change) = changes.get_mut(from) {
        *change = change.saturating_add(amount);
    }
    if let Some(change) = to.and_then(|to| changes.get_mut(to)) {
        *change = change.saturating_sub(amount);
    }
}

fn levels(changes: &[i64]) -> Vec<u64> {
    let sums = changes.iter().scan(0i64, |live, change| {
        *live = live.saturating_add(*change);
        Some(u64::try_from(*live).unwrap_or(0))
    });
    sums.collect()
}

impl Receiver for BootMemorySums {
    fn closed(&mut self, closed: &Closed) {
        // What ends behind the window is live in it.
        let end = closed.end.time().filter(|_| !closed.is_live);
        let Closed { lost_at, uncertain: is_uncertain, is_born, .. } = *closed;
        let life = Span { born: closed.life.born, end, lost_at, is_uncertain, is_born };
        self.life(&life, closed.bytes_alloc);
    }

    fn freed_plain(&mut self, FreedPlain { plain, op, .. }: &FreedPlain) {
        self.life(&Span::of_plain(plain, op.time), plain.bytes_alloc);
    }

    fn implied_free_plain(&mut self, plain: &PlainLife, end: u64) {
        self.life(&Span::of_plain(plain, end), plain.bytes_alloc);
    }

    fn closed_frames(&mut self, closed: &ClosedFrames) {
        let is_live = closed.sums.frames_live > 0;
        let end = closed.end.map(|(time, _)| time).filter(|_| !is_live);
        let (from, to) = (self.interval(closed.born), end.map(|end| self.interval(end)));
        change(&mut self.pages, from, to, closed.frames);
        if let Some(at) = self.of.user_space.filter(|&at| closed.is_born && closed.born < at) {
            self.pages_before.add(closed.frames, end, at, closed.sums.frames_uncertain);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_at_a_mark_is_behind_it() {
        let of = BootMemory { times: vec![0, 10, 20], user_space: Some(10) };
        let changes = || vec![0; 4];
        let mut sums = BootMemorySums {
            of,
            slab: changes(),
            uncertain: changes(),
            pages: changes(),
            ..Default::default()
        };
        let mut add = |born, end, lost_at: Option<u64>, bytes| {
            let life = Span { born, end, lost_at, is_uncertain: lost_at.is_some(), is_born: true };
            sums.life(&life, bytes);
        };
        // Born and ended: before the first mark, at marks, between them, not at all.
        add(0, Some(10), None, 1);
        add(0, None, Some(12), 10);
        add(10, Some(20), None, 100);
        add(9, Some(9), Some(9), 1000);
        assert_eq!(sums.slab(), [0, 11, 110, 10]);
        assert_eq!(sums.uncertain(), [0, 0, 10, 10]);
        let fates = Fates { allocated: 1011, freed_before: 1000, freed_after: 1, uncertain: 1010 };
        assert_eq!(sums.before, fates);
    }
}
