//! What stays: when those were born that are still there at the end, and how long the others of their kind live.

use std::collections::HashMap;

use super::collector::{Collector, Share};
use super::histogram::Histogram;
use super::sums::{Sums, grown, merged};
use crate::int_hash::IntHash;
use crate::ledger::frames::NO_STACK;
use crate::ledger::{Closed, ClosedFrames, Interests, Receiver};

/// Steps of time that a window is cut into.
pub const STEPS: usize = 32;

/// Births and survivors over a window of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growth {
    start: u64,
    step: u64,
}

impl Growth {
    /// From `first` to `last`.
    pub fn new(first: u64, last: u64) -> Self {
        Self { start: first, step: (last.saturating_sub(first) / STEPS as u64 + 1).max(1) }
    }

    fn place(&self, time: u64) -> usize {
        (time.saturating_sub(self.start) / self.step).min(STEPS as u64 - 1) as usize
    }
}

impl Collector for Growth {
    type Part = GrowthSums;
    type Output = GrowthSums;

    fn interests(&self) -> Interests {
        Interests { lives: true, frames: true, slab_frames: true, page_stacks: true, ..Interests::default() }
    }

    fn partition(&self, _: &Share) -> GrowthSums {
        GrowthSums {
            window: *self,
            callers: Vec::new(),
            pages: Vec::new(),
            slab_pages: 0,
            page_stacks: HashMap::default(),
        }
    }

    fn merge(&self, first: GrowthSums, others: Vec<GrowthSums>) -> GrowthSums {
        merged(first, others)
    }
}

/// Births and survivors by what they have in common.
#[derive(Debug, PartialEq, Eq)]
pub struct GrowthSums {
    window: Growth,
    /// Slab objects by number of the call site and interface.
    pub callers: Vec<Survival>,
    /// Pages by number of their kind.
    pub pages: Vec<Survival>,
    /// Pages that are live and hold slab objects: they are in no other number.
    pub slab_pages: u64,
    /// Pages by number of their stack, where they have one.
    pub page_stacks: HashMap<u32, Survival, IntHash>,
}

/// A number for each step.
pub type Numbers = [u64; STEPS];

/// The same, kept of the steps that have one: most call sites and tasks have few.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Steps(Vec<(u8, u64)>);

impl Steps {
    /// Adds to the number of a step.
    #[inline]
    pub fn add(&mut self, step: usize, number: u64) {
        if number == 0 {
            return;
        }
        let at = match self.0.get(step) {
            // With all steps there, each stands at its own number.
            Some((known, _)) if usize::from(*known) == step => step,
            _ => self.0.binary_search_by_key(&step, |(known, _)| usize::from(*known)).unwrap_or_else(|at| {
                // Many have one alone.
                if self.0.is_empty() {
                    self.0.reserve_exact(1);
                }
                self.0.insert(at, (step as u8, 0));
                at
            }),
        };
        if let Some((_, known)) = self.0.get_mut(at) {
            *known = known.saturating_add(number);
        }
    }

    /// Adds those of another.
    pub fn add_all(&mut self, other: &Self) {
        other.0.iter().for_each(|&(step, number)| self.add(step.into(), number));
    }

    /// The number of every step.
    pub fn all(&self) -> Numbers {
        let mut out = [0; STEPS];
        for &(step, number) in &self.0 {
            if let Some(slot) = out.get_mut(usize::from(step)) {
                *slot = number;
            }
        }
        out
    }

    /// All together.
    pub fn sum(&self) -> u64 {
        self.0.iter().fold(0, |sum, (_, number)| sum.saturating_add(*number))
    }
}

impl From<&Numbers> for Steps {
    fn from(numbers: &Numbers) -> Self {
        let mut out = Self::default();
        numbers.iter().enumerate().for_each(|(step, &number)| out.add(step, number));
        out
    }
}

/// Births and survivors of one kind of allocation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survival {
    /// Allocations by step.
    pub births: Steps,
    /// Those of them that are live at the end.
    pub survivors: Steps,
    /// Bytes, or pages, of those.
    pub survivor_amount: Steps,
    /// Lives that ended by a free within the window, also of what was allocated before.
    pub lifetimes: Histogram,
    /// Lives that ended unseen.
    pub unseen: u64,
    /// How old they were when they were found to be over.
    pub unseen_ages: Histogram,
    /// Survivors by the task that allocated them, and by step.
    pub holders: HashMap<i32, Steps, IntHash>,
    /// Survivors that are uncertain.
    pub uncertain: u64,
    /// Of the sites that share the call site the first one with survivors, or else the first one: whether it has none,
    /// and its number. Of pages the kind itself.
    pub site: Option<(bool, u32)>,
}

impl GrowthSums {
    /// Length of a step in the clock's unit.
    pub fn step(&self) -> u64 {
        self.window.step
    }
}

impl Receiver for GrowthSums {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        let born = self.window.place(closed.life.born);
        let course = grown(&mut self.callers, closed.caller);
        course.add_site((!closed.is_live, closed.life.site));
        course.births.add(born, u64::from(closed.is_born));
        if closed.is_unseen {
            course.unseen += 1;
            course.unseen_ages.add(closed.end.time().unwrap_or(0).saturating_sub(closed.life.born));
        }
        if closed.is_live {
            course.holders.entry(closed.born_at.pid).or_default().add(born, 1);
            course.survivors.add(born, 1);
            course.survivor_amount.add(born, closed.bytes_alloc);
            course.uncertain += u64::from(closed.uncertain);
        } else if let Some(end) = closed.end.time().filter(|_| closed.is_freed) {
            course.lifetimes.add(end.saturating_sub(closed.life.born));
        }
    }

    /// Frames are added up; those of slabs are what their objects are.
    fn closed_frames(&mut self, closed: &ClosedFrames) {
        if closed.is_slab {
            self.slab_pages += closed.sums.frames_live;
            return;
        }
        let born = self.window.place(closed.born);
        let course = grown(&mut self.pages, closed.site);
        course.add_site((false, closed.site));
        course.add_frames(closed, born);
        if closed.stack != NO_STACK {
            self.page_stacks.entry(closed.stack).or_default().add_frames(closed, born);
        }
    }
}

impl Survival {
    #[inline]
    fn add_site(&mut self, site: (bool, u32)) {
        self.site = Some(self.site.map_or(site, |first| first.min(site)));
    }

    /// Number of the first of its sites that has survivors, or else of the first one.
    pub fn site(&self) -> Option<u32> {
        self.site.map(|(_, number)| number)
    }

    /// Frames that were born in that step.
    fn add_frames(&mut self, closed: &ClosedFrames, born: usize) {
        let (course, live) = (self, closed.sums.frames_live);
        course.births.add(born, if closed.is_born { closed.frames } else { 0 });
        course.unseen = course.unseen.saturating_add(closed.sums.frames_freed_unseen);
        course.survivors.add(born, live);
        course.survivor_amount.add(born, live);
        course.uncertain = course.uncertain.saturating_add(closed.sums.frames_live_uncertain);
        if let Some((end, _)) = closed.end.filter(|_| closed.sums.frames_freed > 0) {
            course.lifetimes.add(end.saturating_sub(closed.born));
        }
    }
}

impl std::ops::AddAssign<&Survival> for Survival {
    fn add_assign(&mut self, other: &Survival) {
        self.births.add_all(&other.births);
        self.survivors.add_all(&other.survivors);
        self.survivor_amount.add_all(&other.survivor_amount);
        self.lifetimes.merge(&other.lifetimes);
        self.unseen = self.unseen.saturating_add(other.unseen);
        self.unseen_ages.merge(&other.unseen_ages);
        for (pid, steps) in &other.holders {
            self.holders.entry(*pid).or_default().add_all(steps);
        }
        self.uncertain = self.uncertain.saturating_add(other.uncertain);
        other.site.into_iter().for_each(|site| self.add_site(site));
    }
}

impl Sums for GrowthSums {
    fn absorb(&mut self, other: Self) {
        self.callers.absorb(other.callers);
        self.pages.absorb(other.pages);
        self.slab_pages.absorb(other.slab_pages);
        self.page_stacks.absorb(other.page_stacks);
    }
}

impl Sums for Survival {
    fn absorb(&mut self, other: Self) {
        *self += &other;
    }
}
