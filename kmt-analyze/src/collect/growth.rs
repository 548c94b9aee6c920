//! Survivors: the births of objects that are live at the end, and the lifetimes of others of their kind.
//!
//! All of them were allocated in the window. What is older is known where the window is a part of a trace, and would make
//! lifetimes longer than the window, and the verdict another one than that of a trace of this part.

use std::collections::HashMap;

use super::collector::{PassFacts, StateCollector};
use super::histogram::{Histogram, RareHistogram};
use super::sorted::Sorted;
use super::sums::{Sums, grown, sums};
use crate::int_hash::IntHash;
use crate::ledger::frames::NO_STACK;
use crate::ledger::{
    Closed, ClosedFrames, FoldedLives, FoldedPages, FreedPlain, Interests, PlainLife, Receiver,
};
use crate::trace::ages::Ages;

/// Number of time steps of a window.
pub const STEPS: usize = 32;

/// Collects births and survivors over a window of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Growth {
    start: u64,
    /// Time from which nothing counts, if before the end of the selection: what is freed later survives.
    until: Option<u64>,
    step: u64,
    /// Tasks of the recorder, whose own memory is no growth; sorted.
    recorder: Vec<i32>,
}

impl Growth {
    /// For the window from `first` to `last`, or to `until`.
    pub fn new(first: u64, last: u64, until: Option<u64>) -> Self {
        let end = until.unwrap_or(last);
        let step = (end.saturating_sub(first) / STEPS as u64 + 1).max(1);
        Self { start: first, until, step, recorder: Vec::new() }
    }

    /// Leaves out what these tasks allocate.
    pub fn without(self, mut recorder: Vec<i32>) -> Self {
        recorder.sort_unstable();
        Self { recorder, ..self }
    }

    /// True if a time is after the end.
    fn is_late(&self, time: u64) -> bool {
        self.until.is_some_and(|until| time >= until)
    }

    fn step_of(&self, time: u64) -> usize {
        (time.saturating_sub(self.start) / self.step).min(STEPS as u64 - 1) as usize
    }
}

impl StateCollector for Growth {
    type State = GrowthSums;

    const INTERESTS: Interests = Interests::PLAIN_LIVES
        .union(Interests::FRAMES)
        .union(Interests::SLAB_FRAMES)
        .union(Interests::PAGE_STACKS);

    fn begin(&self, facts: &PassFacts) -> GrowthSums {
        GrowthSums { window: self.clone(), ages: facts.rules.ages, ..GrowthSums::default() }
    }
}

/// Births and survivors by call site, kind of pages and stack.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct GrowthSums {
    window: Growth,
    ages: Ages,
    /// Live slab objects that were allocated before the clock ran: they are at least as old as the window.
    pub unknown_age: u64,
    /// Slab objects by number of the call site and interface.
    pub callers: Vec<SurvivorSums>,
    /// Pages by number of their kind.
    pub pages: Vec<SurvivorSums>,
    /// Live pages that hold slab objects; they are in no other number.
    pub slab_pages: u64,
    /// Pages by number of their stack.
    pub page_stacks: HashMap<u32, SurvivorSums, IntHash>,
}

/// A number for each step.
pub type Numbers = [u64; STEPS];

/// A number for each step, with only non-zero steps stored: most call sites and tasks have few.
pub type StepCounts = Sorted<u64>;

impl StepCounts {
    /// Adds to the number of a step.
    #[inline]
    pub fn add(&mut self, step: usize, number: u64) {
        if number > 0 {
            self.of(step as u32).absorb(number);
        }
    }

    /// The numbers of all steps.
    pub fn all(&self) -> Numbers {
        let mut out = [0; STEPS];
        for (step, &number) in self.iter() {
            if let Some(slot) = out.get_mut(step as usize) {
                *slot = number;
            }
        }
        out
    }

    /// The sum of all steps.
    pub fn sum(&self) -> u64 {
        self.iter().fold(0, |sum, (_, number)| sum.saturating_add(*number))
    }
}

impl From<&Numbers> for StepCounts {
    fn from(numbers: &Numbers) -> Self {
        let mut out = Self::default();
        numbers.iter().enumerate().for_each(|(step, &number)| out.add(step, number));
        out
    }
}

/// Births and survivors of one kind of allocation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SurvivorSums {
    /// Allocations by step.
    pub births: StepCounts,
    /// Allocations still live at the end.
    pub survivors: StepCounts,
    /// Bytes, or pages, of those.
    pub survivor_amount: StepCounts,
    /// Lifetimes of those that ended by a free in the window.
    pub lifetimes: Histogram,
    /// Those that ended by a free, and were allocated before the clock ran: their lifetimes are unknown.
    pub freed_unknown_age: u64,
    /// Those that ended by an implied free in the window.
    pub implied_frees: u64,
    /// Ages at the implied frees.
    pub implied_free_ages: RareHistogram,
    /// Survivors by allocating task, its pid without a sign, and step.
    pub holders: Sorted<StepCounts>,
    /// Surviving pages by number of the CPU and task that allocated them, and step.
    pub page_holders: Sorted<StepCounts>,
    /// Survivors that are uncertain.
    pub uncertain: u64,
    /// Survivors of slab objects by number of their site.
    pub sites: Sorted<u64>,
}

impl GrowthSums {
    /// Length of a step in the clock's unit.
    pub fn step(&self) -> u64 {
        self.window.step
    }

    /// Adds a life that began in the window.
    #[inline]
    fn add(&mut self, life: &PlainLife, uncertain: bool, fate: Fate) {
        let window = &self.window;
        if window.is_late(life.life.born) || window.recorder.binary_search(&life.pid).is_ok() {
            return;
        }
        let born = window.step_of(life.life.born);
        let fate = match fate {
            Fate::Freed(end) | Fate::ImpliedFree(end) if window.is_late(end) => Fate::Live,
            fate => fate,
        };
        let survival = grown(&mut self.callers, life.caller);
        survival.births.add(born, 1);
        match fate {
            Fate::Freed(end) => match self.ages.length(life.life.born, end) {
                Some(lifetime) => survival.lifetimes.add(lifetime),
                None => survival.freed_unknown_age += 1,
            },
            Fate::ImpliedFree(end) => {
                survival.implied_frees += 1;
                let age = self.ages.length(life.life.born, end);
                age.into_iter().for_each(|age| survival.implied_free_ages.add(age));
            }
            Fate::Live => {
                self.unknown_age += u64::from(!self.ages.is_known(life.life.born));
                *survival.sites.of(life.life.site) += 1;
                survival.of_task(life.pid).add(born, 1);
                survival.survivors.add(born, 1);
                survival.survivor_amount.add(born, life.bytes_alloc);
                survival.uncertain += u64::from(uncertain);
            }
            // A free in it that is logged behind it.
            Fate::Unknown => {}
        }
    }
}

/// End of a life in the window, if it has one there.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Freed(u64),
    ImpliedFree(u64),
    Live,
    Unknown,
}

impl Receiver for GrowthSums {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        if !closed.is_born {
            return;
        }
        let fate = match closed.end.time() {
            _ if closed.is_live => Fate::Live,
            Some(end) if closed.is_freed => Fate::Freed(end),
            Some(end) if closed.is_implied_free => Fate::ImpliedFree(end),
            _ => Fate::Unknown,
        };
        self.add(&PlainLife::of(closed), closed.uncertain, fate);
    }

    #[inline]
    fn freed_plain(&mut self, FreedPlain { plain, op, .. }: &FreedPlain) {
        self.add(plain, plain.lost_at.is_some(), Fate::Freed(op.time));
    }

    fn implied_free_plain(&mut self, plain: &PlainLife, end: u64) {
        self.add(plain, plain.lost_at.is_some(), Fate::ImpliedFree(end));
    }

    fn folded(&mut self, lives: &FoldedLives) {
        let born = self.window.step_of(lives.interval.0);
        let survival = grown(&mut self.callers, lives.caller);
        survival.births.add(born, lives.sums.count);
        survival.lifetimes.add_sum(lives.sums.length_sum, lives.sums.length_max);
    }

    fn folded_bucket(&mut self, lives: &FoldedLives, bucket: u32, count: u64) {
        grown(&mut self.callers, lives.caller).lifetimes.add_bucket(bucket, count);
    }

    fn folded_pages(&mut self, pages: &FoldedPages) {
        let born = self.window.step_of(pages.interval.0);
        let survival = grown(&mut self.pages, pages.site);
        survival.births.add(born, pages.sums.count.saturating_mul(1 << pages.kind.order));
        survival.lifetimes.add_sum(pages.sums.length_sum, pages.sums.length_max);
    }

    fn folded_pages_bucket(&mut self, pages: &FoldedPages, bucket: u32, count: u64) {
        grown(&mut self.pages, pages.site).lifetimes.add_bucket(bucket, count);
    }

    /// Slab pages are only summed up: their objects have their own survival.
    fn closed_frames(&mut self, closed: &ClosedFrames) {
        if closed.is_slab {
            self.slab_pages += closed.sums.frames_live;
            return;
        }
        if !closed.is_born || self.window.is_late(closed.born) {
            return;
        }
        let mut closed = *closed;
        let sums = &mut closed.sums;
        let ended_late = match closed.end {
            Some((end, _)) if self.window.is_late(end) => {
                let ended = sums.frames_freed.saturating_add(sums.frames_freed_implied);
                (sums.frames_freed, sums.frames_freed_implied) = (0, 0);
                ended
            }
            _ => 0,
        };
        let born = self.window.step_of(closed.born);
        // Whether freed pages had slab objects is unknown: by kind they would seem to be pages of another use.
        let survival = grown(&mut self.pages, closed.site);
        survival.add_frames(&closed, born, self.ages);
        if closed.stack != NO_STACK {
            closed.sums.frames_live = closed.sums.frames_live.saturating_add(ended_late);
            self.page_stacks.entry(closed.stack).or_default().add_frames(&closed, born, self.ages);
        }
    }
}

impl SurvivorSums {
    /// Number of those that ended by a free in the window.
    pub fn freed(&self) -> u64 {
        self.lifetimes.count().saturating_add(self.freed_unknown_age)
    }

    /// Survivors by allocating task and step.
    pub fn tasks(&self) -> impl Iterator<Item = (i32, &StepCounts)> {
        self.holders.iter().map(|(pid, steps)| (pid as i32, steps))
    }

    /// Survivors that a task allocated, by step.
    pub fn task(&self, pid: i32) -> Option<&StepCounts> {
        self.holders.get(pid as u32)
    }

    /// Survivors that a task allocated, by step, to add to.
    pub fn of_task(&mut self, pid: i32) -> &mut StepCounts {
        self.holders.of(pid as u32)
    }

    /// Adds frames allocated in step `born`.
    fn add_frames(&mut self, closed: &ClosedFrames, born: usize, ages: Ages) {
        let live = closed.sums.frames_live;
        let survival = self;
        survival.births.add(born, closed.frames);
        survival.implied_frees = survival.implied_frees.saturating_add(closed.sums.frames_freed_implied);
        survival.survivors.add(born, live);
        survival.survivor_amount.add(born, live);
        if live > 0 {
            survival.page_holders.of(closed.origin).add(born, live);
        }
        survival.uncertain = survival.uncertain.saturating_add(closed.sums.frames_live_uncertain);
        if let Some((end, _)) = closed.end.filter(|_| closed.sums.frames_freed > 0) {
            match ages.length(closed.born, end) {
                Some(lifetime) => survival.lifetimes.add(lifetime),
                None => survival.freed_unknown_age += 1,
            }
        }
    }
}

sums!(
    SurvivorSums:
    births, survivors, survivor_amount, lifetimes, freed_unknown_age, implied_frees, implied_free_ages, holders,
    page_holders, uncertain, sites
);
