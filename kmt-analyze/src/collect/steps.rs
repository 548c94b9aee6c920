//! Everything that adds up over time, in equal steps: the page's range selector is made of it.
//!
//! The numbers of any range of whole steps follow from these: allocations and frees are sums over the range, live objects the sum
//! of all changes until its end. A row keeps few steps or all; objects that came and went within one step are counted apart.

use std::collections::HashMap;

use super::collector::{PassFacts, StateCollector};
pub use super::step_row::Row;
use super::sums::{Sums, grown, sums};
use crate::int_hash::IntHash;
use crate::ledger::lives::End;
use crate::ledger::{Closed, ClosedFrames, FoldedLives, FoldedPages, Interests, Receiver};
use crate::stream::NameId;
use crate::trace::ages::Ages;

/// Collects flows in equal steps of time. Where so much would be kept that it fits no page, two steps become one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Steps {
    /// Time of the first step.
    pub start: u64,
    /// Length of a step in the clock's unit, not 0.
    pub step: u64,
    /// Number of steps, not 0.
    pub steps: usize,
    /// Changes that are kept at most, of all rows, before steps become longer.
    pub kept_max: usize,
}

impl Steps {
    /// The step of a time. Times before the first step belong to it: what was born then is live there.
    fn step_of(&self, time: u64) -> usize {
        (time.saturating_sub(self.start) / self.step).min(self.steps as u64) as usize
    }

    /// The steps of a birth and an end; `None`: after the last step.
    fn of_life(&self, born: u64, end: Option<u64>) -> [Option<usize>; 2] {
        let within = |time: u64| Some(self.step_of(time)).filter(|&step| step < self.steps);
        [within(born), end.and_then(within)]
    }

    /// A number of lives that are in the file as sums of an interval, shared out by time over the steps of its begin and its end.
    /// Steps are not shorter than intervals.
    fn shares(&self, (begin, end): (u64, u64), count: u64) -> [(Option<usize>, u64); 2] {
        let last = self.steps.saturating_sub(1);
        let step = self.step_of(begin).min(last);
        let border = self.start.saturating_add(self.step.saturating_mul(step as u64 + 1));
        let length = end.saturating_sub(begin).max(1);
        let within = border.saturating_sub(begin).min(length);
        let first = (u128::from(count) * u128::from(within) / u128::from(length)) as u64;
        [(Some(step), first), (Some((step + 1).min(last)), count.saturating_sub(first))]
    }
}

impl StateCollector for Steps {
    type State = StepSums;

    const INTERESTS: Interests = Interests::LIVES.union(Interests::FRAMES).union(Interests::SLAB_STACKS);

    fn begin(&self, facts: &PassFacts) -> StepSums {
        StepSums { steps: *self, ages: facts.rules.ages, ..StepSums::default() }
    }
}

/// Flows in all steps.
#[derive(Debug, Default)]
pub struct StepSums {
    pub steps: Steps,
    ages: Ages,
    /// Changes that are kept, of all rows.
    kept: usize,
    /// Slab objects by number of the site, by cache, if an event names it, and by stack, if there is one.
    pub objects: HashMap<StepObjects, Row<Flow>, IntHash>,
    /// Slab objects freed by an event, of a known age: by length of life ([`log2`]) and bytes allocated, by step of the free.
    pub lifetimes: HashMap<(u32, u64), Row<u64>, IntHash>,
    /// Slab objects by number of the call site and of the allocating origin.
    pub holders: HashMap<(u32, u32), Holder, IntHash>,
    /// Slab objects by number of the allocating origin.
    pub origins: Vec<Row<Flows>>,
    /// Pages, in pages, by number of the allocating origin.
    pub page_origins: Vec<Row<Flows>>,
    /// Pages, in pages, by number of their kind.
    pub page_kinds: Vec<Row<Flows>>,
}

/// Slab objects of which one row tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepObjects {
    /// Number of the site of the objects.
    pub site: u32,
    /// Cache of the objects, if an event names it.
    pub cache: Option<NameId>,
    /// Number of their stack.
    pub stack: Option<u32>,
}

/// Objects that one task allocated at one call site.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Holder {
    /// Bytes allocated.
    pub bytes_alloc: u64,
    /// Bytes still allocated at the end.
    pub bytes_live: u64,
}

sums!(Holder: bytes_alloc, bytes_live);

/// Number of binary digits: 0 for 0, n for 2^(n-1) up to 2^n - 1.
pub fn log2(length: u64) -> u32 {
    u64::BITS - length.leading_zeros()
}

/// Binary digits of the lengths of a bucket: all of them have one number of digits.
fn bucket_log2(bucket: u32) -> u32 {
    if bucket < 1 << BUCKETS_LOG2 { log2(bucket.into()) } else { (bucket >> BUCKETS_LOG2) + BUCKETS_LOG2 }
}

/// log2 of the buckets of each power of two.
const BUCKETS_LOG2: u32 = 5;

impl StepSums {
    /// Makes each two steps one, until few enough changes are kept.
    fn limit(&mut self) {
        while self.kept > self.steps.kept_max && self.steps.steps > 1 {
            self.halve();
        }
    }

    fn halve(&mut self) {
        self.steps.step = self.steps.step.saturating_mul(2);
        self.steps.steps = self.steps.steps.div_ceil(2);
        self.objects.values_mut().for_each(Row::halve);
        self.lifetimes.values_mut().for_each(Row::halve);
        for rows in [&mut self.origins, &mut self.page_origins, &mut self.page_kinds] {
            rows.iter_mut().for_each(Row::halve);
        }
        self.count();
    }

    /// Counts the changes that are kept.
    fn count(&mut self) {
        let objects: usize = self.objects.values().map(Row::kept).sum();
        let lifetimes: usize = self.lifetimes.values().map(Row::kept).sum();
        let others = self.origins.iter().chain(&self.page_origins).chain(&self.page_kinds);
        self.kept = objects + lifetimes + others.map(Row::kept).sum::<usize>();
    }
}

/// Adds changes at their steps; returns the number of changes that are kept besides those before.
fn add<S: Sums + Copy + Default>(
    row: &mut Row<S>,
    changes: impl IntoIterator<Item = (Option<usize>, S)>,
    width: usize,
) -> usize {
    let before = row.kept();
    for (step, change) in changes {
        if let Some(own) = step.and_then(|step| row.at(step, width)) {
            own.absorb(change);
        }
    }
    row.kept() - before
}

impl Receiver for StepSums {
    fn closed(&mut self, closed: &Closed) {
        let (steps, end) = (self.steps, closed.end.time());
        let [born, ended] = steps.of_life(closed.life.born, end);
        let freed = match closed.end {
            // A late free is logged after the end of the life.
            End::Freed { free, .. } if closed.is_freed => steps.of_life(0, Some(free.time))[1],
            _ => None,
        };
        let unseen = u32::from(closed.is_implied_free);
        let changes = [
            (born, Flow { allocs: u32::from(closed.is_born), live_change: 1, ..Flow::default() }),
            (freed, Flow { frees: 1, ..Flow::default() }),
            (ended, Flow { unseen, live_change: -1, ..Flow::default() }),
        ];
        let (requested, allocated) = (closed.bytes_req, closed.bytes_alloc);
        let objects = StepObjects { site: closed.life.site, cache: closed.cache, stack: closed.stack };
        self.kept += add(self.objects.entry(objects).or_default(), changes, steps.steps);
        let flows = changes.map(|(step, flow)| (step, Flows::of(&flow, requested, allocated)));
        self.kept += add(grown(&mut self.origins, closed.life.origin), flows, steps.steps);
        let length = end.and_then(|end| self.ages.length(closed.life.born, end)).filter(|_| freed.is_some());
        if let Some(length) = length.map(log2) {
            let row = self.lifetimes.entry((length, allocated)).or_default();
            self.kept += add(row, [(freed, 1)], steps.steps);
        }
        self.holders.entry((closed.caller, closed.life.origin)).or_default().absorb(Holder {
            bytes_alloc: if closed.is_born { allocated } else { 0 },
            bytes_live: if closed.is_live { allocated } else { 0 },
        });
        self.limit();
    }

    fn closed_frames(&mut self, closed: &ClosedFrames) {
        let [born, ended] = self.steps.of_life(closed.born, closed.end.map(|(time, _)| time));
        let count = |frames: u64| i64::try_from(frames).unwrap_or(i64::MAX);
        let frames = count(closed.frames);
        let allocated = if closed.is_born { frames } else { 0 };
        let at_birth = Flows {
            allocs: i64::from(closed.is_born && closed.is_last),
            bytes_req: allocated,
            bytes_alloc: allocated,
            bytes_live_change: frames,
            bytes_req_live_change: frames,
            ..Flows::default()
        };
        let at_end = Flows {
            bytes_freed: count(closed.sums.frames_freed),
            bytes_unseen: count(closed.sums.frames_freed_implied),
            bytes_live_change: -frames,
            bytes_req_live_change: -frames,
            ..Flows::default()
        };
        for row in [grown(&mut self.page_origins, closed.origin), grown(&mut self.page_kinds, closed.site)] {
            self.kept += add(row, [(born, at_birth), (ended, at_end)], self.steps.steps);
        }
        self.limit();
    }

    /// These lives have no stack and no task.
    fn folded(&mut self, lives: &FoldedLives) {
        let changes = self.steps.shares(lives.interval, lives.sums.count).map(|(step, count)| {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            (step, Flow { allocs: count, frees: count, ..Flow::default() })
        });
        let objects = StepObjects { site: lives.site, cache: lives.cache, stack: None };
        self.kept += add(self.objects.entry(objects).or_default(), changes, self.steps.steps);
        self.limit();
    }

    fn folded_bucket(&mut self, lives: &FoldedLives, bucket: u32, count: u64) {
        let row = self.lifetimes.entry((bucket_log2(bucket), lives.bytes_alloc)).or_default();
        self.kept += add(row, self.steps.shares(lives.interval, count), self.steps.steps);
        self.limit();
    }

    fn folded_pages(&mut self, pages: &FoldedPages) {
        let frames = 1 << pages.kind.order;
        let changes = self.steps.shares(pages.interval, pages.sums.count).map(|(step, count)| {
            let allocs = i64::try_from(count).unwrap_or(i64::MAX);
            let all = allocs.saturating_mul(frames);
            (step, Flows { allocs, bytes_req: all, bytes_alloc: all, bytes_freed: all, ..Flows::default() })
        });
        self.kept += add(grown(&mut self.page_kinds, pages.site), changes, self.steps.steps);
        self.limit();
    }
}

/// Flows of one kind of objects, all of one size, in one step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow {
    /// Allocations.
    pub allocs: u32,
    /// Ends with a free event.
    pub frees: u32,
    /// Implied frees.
    pub unseen: u32,
    /// Live objects at the end of the step minus those at its start.
    pub live_change: i32,
}

/// Flows of objects of several sizes in one step: slab objects, or pages as bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flows {
    /// Allocations.
    pub allocs: i64,
    /// Bytes requested by them.
    pub bytes_req: i64,
    /// Bytes allocated by them.
    pub bytes_alloc: i64,
    /// Ends with a free event.
    pub frees: i64,
    /// Bytes freed by these events.
    pub bytes_freed: i64,
    /// Implied frees.
    pub unseen: i64,
    /// Bytes of implied frees.
    pub bytes_unseen: i64,
    /// Live objects at the end of the step minus those at its start.
    pub live_change: i64,
    /// Bytes allocated of live objects at the end of the step minus those at its start.
    pub bytes_live_change: i64,
    /// Bytes requested of live objects at the end of the step minus those at its start.
    pub bytes_req_live_change: i64,
}

impl Flows {
    /// Of objects of one size.
    pub fn of(flow: &Flow, bytes_req: u64, bytes_alloc: u64) -> Self {
        let size = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let (requested, allocated) = (size(bytes_req), size(bytes_alloc));
        let [allocs, frees, unseen] = [flow.allocs, flow.frees, flow.unseen].map(i64::from);
        let live_change = i64::from(flow.live_change);
        Self {
            allocs,
            bytes_req: allocs.saturating_mul(requested),
            bytes_alloc: allocs.saturating_mul(allocated),
            frees,
            bytes_freed: frees.saturating_mul(allocated),
            unseen,
            bytes_unseen: unseen.saturating_mul(allocated),
            live_change,
            bytes_live_change: live_change.saturating_mul(allocated),
            bytes_req_live_change: live_change.saturating_mul(requested),
        }
    }

    /// All numbers, in the order of the fields.
    pub fn columns(&self) -> [i64; 10] {
        [
            self.allocs,
            self.bytes_req,
            self.bytes_alloc,
            self.frees,
            self.bytes_freed,
            self.unseen,
            self.bytes_unseen,
            self.live_change,
            self.bytes_live_change,
            self.bytes_req_live_change,
        ]
    }
}

sums!(Flow: allocs, frees, unseen, live_change);

sums!(
    Flows:
    allocs, bytes_req, bytes_alloc, frees, bytes_freed, unseen, bytes_unseen, live_change,
    bytes_live_change, bytes_req_live_change
);
