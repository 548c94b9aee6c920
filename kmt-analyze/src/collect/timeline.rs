//! Live bytes and rates over time, by site or by origin; reports choose the key.
//!
//! Each life changes live bytes in the step of its birth and in that of its end, and counts as allocation and free; the
//! key of a row is its site or its origin. Lives that a file has only as sums are added by the intervals of the sums.
//! `reports/timeline`, charts and the Perfetto export make lines of it, `diff` its profiles.

use super::collector::{PassFacts, StateCollector};
use super::steps::Row;
use super::sums::{grown, sums};
use crate::ledger::lives::Life;
use crate::ledger::{
    Closed, ClosedFrames, FoldedLives, FoldedPages, FreedPlain, Interests, PlainLife, Receiver,
};

/// Collects changes in equal time steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Time of the first step.
    pub start: u64,
    /// Length of a step in the clock's unit.
    pub step: u64,
    /// Number of steps.
    pub steps: usize,
    /// Last time that counts; the last step may reach beyond it.
    pub last: u64,
    /// True: by origin; false: by site.
    pub by_origin: bool,
    /// True if lives born before the first step have a slot after the last step.
    pub keeps_before: bool,
}

impl StateCollector for Timeline {
    type State = TimelineSums;

    const INTERESTS: Interests = Interests::PLAIN_LIVES.union(Interests::FRAMES);

    fn begin(&self, facts: &PassFacts) -> TimelineSums {
        let deferred_max = facts.rules.deferred_max;
        TimelineSums { steps: *self, deferred_max, ..TimelineSums::default() }
    }
}

/// Changes in all steps.
#[derive(Debug, Default)]
pub struct TimelineSums {
    pub steps: Timeline,
    /// Slab, by number of the site or origin.
    pub slab: Vec<Row<Step>>,
    /// Pages, by number of the kind or origin.
    pub pages: Vec<Row<Step>>,
    deferred_max: u64,
}

/// Changes in a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    /// Live bytes at its end minus those at its start.
    pub live_change: i64,
    /// Allocations.
    pub allocs: u64,
    /// Bytes allocated.
    pub bytes_alloc: u64,
    /// Free events.
    pub frees: u64,
    /// Bytes freed.
    pub bytes_freed: u64,
    /// Largest number of bytes waiting for a grace period at its end, minus that at its start.
    pub waiting_change: i64,
}

sums!(Step: live_change, allocs, bytes_alloc, frees, bytes_freed, waiting_change);

impl Timeline {
    /// A timeline of `steps` steps from `first` to `last`.
    pub fn new(first: u64, last: u64, steps: usize, by_origin: bool) -> Self {
        let steps = steps.max(1);
        let step = (last.saturating_sub(first) / steps as u64 + 1).max(1);
        Self { start: first, step, steps, last, by_origin, keeps_before: false }
    }

    /// A timeline with steps of whole intervals of `interval` that begin at its multiples, where lives are sums of intervals.
    pub fn of_intervals(first: u64, last: u64, steps: usize, by_origin: bool, interval: u64) -> Self {
        let interval = interval.max(1);
        let start = first - first % interval;
        let intervals = last.saturating_sub(start) / interval + 1;
        let step = interval.saturating_mul(intervals.div_ceil(steps.max(1) as u64));
        let steps = last.saturating_sub(start) / step.max(1) + 1;
        Self { start, step: step.max(1), steps: steps as usize, last, by_origin, keeps_before: false }
    }

    /// The step of a time; earlier times belong to the first step.
    fn step_of(&self, time: u64) -> usize {
        (time.saturating_sub(self.start) / self.step).min(self.steps as u64) as usize
    }

    /// The slot of a birth; `None`: after the last step.
    fn birth(&self, time: u64) -> Option<usize> {
        if self.keeps_before && time < self.start { Some(self.steps) } else { self.end(time) }
    }

    /// Slots of a row.
    pub fn width(&self) -> usize {
        self.steps + usize::from(self.keeps_before)
    }

    /// The step of an end; `None`: after the last time that counts. A pass may read on behind it.
    fn end(&self, time: u64) -> Option<usize> {
        Some(self.step_of(time)).filter(|&step| time <= self.last && step < self.steps)
    }
}

impl TimelineSums {
    /// Number of the row of a life.
    #[inline]
    fn row_of(&self, life: &Life) -> u32 {
        if self.steps.by_origin { life.origin } else { life.site }
    }

    /// Adds a life; its birth and its free event count if they are in the window.
    #[inline]
    fn life(&mut self, life: &Life, end: Option<u64>, bytes: u64, (is_born, is_freed): (bool, bool)) {
        let (born, ended) = (self.steps.birth(life.born), end.and_then(|time| self.steps.end(time)));
        let (number, width) = (self.row_of(life), self.steps.width());
        let row = grown(&mut self.slab, number);
        if let Some(step) = born.and_then(|born| row.at(born, width)) {
            step.live_change = step.live_change.saturating_add(bytes as i64);
            step.allocs += u64::from(is_born);
            step.bytes_alloc = step.bytes_alloc.saturating_add(if is_born { bytes } else { 0 });
        }
        if let Some(step) = ended.and_then(|ended| row.at(ended, width)) {
            step.live_change = step.live_change.saturating_sub(bytes as i64);
            step.frees += u64::from(is_freed);
            step.bytes_freed = step.bytes_freed.saturating_add(if is_freed { bytes } else { 0 });
        }
    }

    /// Adds what is born and ends in an interval of sums: at its borders live bytes are those of the events. Where steps are not
    /// of whole intervals, it is shared out by time.
    fn folded(row: &mut Row<Step>, of: &Timeline, (begin, end): (u64, u64), [count, bytes]: [u64; 2]) {
        let length = end.saturating_sub(begin).max(1);
        let until = |sum: u64, time: u64| {
            let passed = time.clamp(begin, end.max(begin)) - begin;
            (u128::from(sum) * u128::from(passed) / u128::from(length)) as u64
        };
        let last = of.step_of(end.saturating_sub(1).max(begin)).min(of.steps.saturating_sub(1));
        for number in of.step_of(begin)..=last {
            let from = of.start.saturating_add(of.step.saturating_mul(number as u64));
            let to = if number == last && end > begin { end } else { from.saturating_add(of.step) };
            let from = if number == 0 { begin } else { from };
            let part = |sum: u64| until(sum, to).saturating_sub(until(sum, from));
            let Some(step) = row.at(number, of.width()) else { continue };
            step.allocs = step.allocs.saturating_add(part(count));
            step.bytes_alloc = step.bytes_alloc.saturating_add(part(bytes));
            step.frees = step.frees.saturating_add(part(count));
            step.bytes_freed = step.bytes_freed.saturating_add(part(bytes));
        }
    }

    /// Adds bytes that wait for a grace period from `time` on.
    fn waits(&mut self, number: u32, bytes: i64, time: u64) {
        let until = self.steps.end(time.saturating_add(self.deferred_max));
        let (from, width) = (self.steps.end(time), self.steps.width());
        let row = grown(&mut self.slab, number);
        if let Some(step) = from.and_then(|from| row.at(from, width)) {
            step.waiting_change = step.waiting_change.saturating_add(bytes);
        }
        if let Some(step) = until.and_then(|until| row.at(until, width)) {
            step.waiting_change = step.waiting_change.saturating_sub(bytes);
        }
    }
}

impl Receiver for TimelineSums {
    fn closed(&mut self, closed: &Closed) {
        let counts = (closed.is_born, closed.is_freed);
        self.life(&closed.life, closed.end.time(), closed.bytes_alloc, counts);
        if let Some(time) = closed.deferred_at() {
            self.waits(self.row_of(&closed.life), closed.bytes_alloc as i64, time);
        }
    }

    #[inline]
    fn freed_plain(&mut self, FreedPlain { plain, op, .. }: &FreedPlain) {
        self.life(&plain.life, Some(op.time), plain.bytes_alloc, (true, true));
    }

    fn implied_free_plain(&mut self, plain: &PlainLife, end: u64) {
        self.life(&plain.life, Some(end), plain.bytes_alloc, (true, false));
    }

    fn folded(&mut self, lives: &FoldedLives) {
        let count = lives.sums.count;
        let sums = [count, count.saturating_mul(lives.bytes_alloc)];
        Self::folded(grown(&mut self.slab, lives.site), &self.steps, lives.interval, sums);
    }

    fn folded_pages(&mut self, pages: &FoldedPages) {
        let frames = pages.sums.count.saturating_mul(1 << pages.kind.order);
        Self::folded(grown(&mut self.pages, pages.site), &self.steps, pages.interval, [0, frames]);
    }

    /// Frames are counted in pages here.
    fn closed_frames(&mut self, closed: &ClosedFrames) {
        let number = if self.steps.by_origin { closed.origin } else { closed.site };
        let (born, ended) = (self.steps.birth(closed.born), closed.end.and_then(|(t, _)| self.steps.end(t)));
        let width = self.steps.width();
        let row = grown(&mut self.pages, number);
        if let Some(step) = born.and_then(|born| row.at(born, width)) {
            step.live_change = step.live_change.saturating_add(closed.frames as i64);
            step.bytes_alloc =
                step.bytes_alloc.saturating_add(if closed.is_born { closed.frames } else { 0 });
        }
        if let Some(step) = ended.and_then(|e| row.at(e, width)) {
            step.live_change = step.live_change.saturating_sub(closed.frames as i64);
            step.bytes_freed = step.bytes_freed.saturating_add(closed.sums.frames_freed);
        }
    }
}
