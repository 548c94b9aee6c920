//! Live bytes and rates over time, by site or by origin; what a key is made of them is the report's business.

use super::{Closed, ClosedFrames, grown};
use crate::analysis::ledger::Rules;

/// Changes in equal steps of time.
#[derive(Debug)]
pub struct Timeline {
    /// Time of the first step.
    pub start: u64,
    /// Length of a step in the clock's unit.
    pub step: u64,
    /// Number of steps.
    pub steps: usize,
    /// Whether lives are kept by origin, instead of by site.
    pub by_origin: bool,
    /// Slab, by number of the site or origin.
    pub slab: Vec<Vec<Step>>,
    /// Pages, by number of the kind or origin.
    pub pages: Vec<Vec<Step>>,
    /// What was born before the first step has one of its own, behind the last.
    pub keeps_before: bool,
    deferred_max: u64,
}

/// What happened in a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    /// Live bytes at its end, less those at its start.
    pub live_change: i64,
    /// Allocations.
    pub allocs: u64,
    /// Bytes of them.
    pub bytes_alloc: u64,
    /// Frees, seen ones.
    pub frees: u64,
    /// Bytes of them.
    pub bytes_freed: u64,
    /// Bytes that wait for a grace period at its end, at most, less those at its start.
    pub waiting_change: i64,
}

impl Step {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.live_change += other.live_change;
        self.allocs += other.allocs;
        self.bytes_alloc += other.bytes_alloc;
        self.frees += other.frees;
        self.bytes_freed += other.bytes_freed;
        self.waiting_change += other.waiting_change;
    }
}

impl Timeline {
    /// For `steps` steps from `first` to `last`.
    pub fn new(first: u64, last: u64, steps: usize, by_origin: bool) -> Self {
        let steps = steps.max(1);
        let step = (last.saturating_sub(first) / steps as u64 + 1).max(1);
        Self {
            start: first,
            step,
            steps,
            by_origin,
            slab: Vec::new(),
            pages: Vec::new(),
            keeps_before: false,
            deferred_max: 0,
        }
    }

    /// Takes over what the rules depend on.
    pub fn learn(&mut self, rules: &Rules) {
        self.deferred_max = rules.deferred_max;
    }

    /// The step of a time; what was before the first one belongs to it.
    fn place(&self, time: u64) -> usize {
        (time.saturating_sub(self.start) / self.step).min(self.steps as u64) as usize
    }

    /// The step of a birth.
    fn birth(&self, time: u64) -> usize {
        if self.keeps_before && time < self.start { self.steps } else { self.place(time) }
    }

    /// Slots of a row.
    fn width(&self) -> usize {
        self.steps + usize::from(self.keeps_before)
    }

    /// The step of an end, unless it is behind the last.
    fn end(&self, time: u64) -> Option<usize> {
        Some(self.place(time)).filter(|&place| place < self.steps)
    }

    /// A life is added up.
    pub fn closed(&mut self, closed: &Closed) {
        let number = if self.by_origin { closed.life.origin } else { closed.life.site };
        let (born, ended) = (self.birth(closed.life.born), closed.end.time().and_then(|t| self.end(t)));
        let width = self.width();
        let steps = row(&mut self.slab, number, width);
        let bytes = closed.bytes_alloc;
        if let Some(step) = steps.get_mut(born) {
            step.live_change += bytes as i64;
            step.allocs += u64::from(closed.is_born);
            step.bytes_alloc += if closed.is_born { bytes } else { 0 };
        }
        if let Some(step) = ended.and_then(|e| steps.get_mut(e)) {
            step.live_change -= bytes as i64;
            step.frees += u64::from(closed.is_freed);
            step.bytes_freed += if closed.is_freed { bytes } else { 0 };
        }
        if let Some(time) = closed.deferred_at() {
            self.waits(number, bytes as i64, time);
        }
    }

    /// Bytes wait for a grace period from that time on.
    fn waits(&mut self, number: u32, bytes: i64, time: u64) {
        let until = self.end(time.saturating_add(self.deferred_max));
        let (from, width) = (self.end(time), self.width());
        let steps = row(&mut self.slab, number, width);
        if let Some(step) = from.and_then(|from| steps.get_mut(from)) {
            step.waiting_change += bytes;
        }
        if let Some(step) = until.and_then(|until| steps.get_mut(until)) {
            step.waiting_change -= bytes;
        }
    }

    /// Frames are added up; their unit is the page here.
    pub fn closed_frames(&mut self, closed: &ClosedFrames) {
        let number = if self.by_origin { closed.origin } else { closed.site };
        let (born, ended) = (self.birth(closed.born), closed.end.and_then(|(t, _)| self.end(t)));
        let width = self.width();
        let steps = row(&mut self.pages, number, width);
        if let Some(step) = steps.get_mut(born) {
            step.live_change += closed.frames as i64;
            step.bytes_alloc += if closed.is_born { closed.frames } else { 0 };
        }
        if let Some(step) = ended.and_then(|e| steps.get_mut(e)) {
            step.live_change -= closed.frames as i64;
            step.bytes_freed += closed.sums.frames_freed;
        }
    }
}

fn row(rows: &mut Vec<Vec<Step>>, number: u32, steps: usize) -> &mut Vec<Step> {
    let row = grown(rows, number);
    if row.is_empty() {
        row.resize(steps, Step::default());
    }
    row
}
