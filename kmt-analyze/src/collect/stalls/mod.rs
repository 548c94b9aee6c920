//! Stalls of tasks that wait for memory: reclaim, compaction, kswapd, shrinkers, traced functions; and the allocations
//! that waited.
//!
//! Side events give begins and ends (`events`), `kinds` the kinds and their figures. Intervals at least as long as a
//! threshold are kept, the longest 100,000 of them; the others are only added up. `reports/latency`, its live form and
//! the Perfetto export use the sums.

mod events;
mod kinds;

pub use kinds::{ByOrder, Compactors, Delayed, Interval, Stall, TaskStalls, Waits};

use std::collections::{BTreeMap, HashMap};

use super::collector::{Collector, PassFacts};
use super::histogram::{Amount, Histogram};
use super::page_use::PageNeeds;
use crate::int_hash::IntHash;
use crate::ledger::{Interests, PageEvent, Receiver, SideEvent};
use crate::stream::{Op, Origin};
use events::{OpenFunctions, Waiting};

/// Collects stalls, and the allocations that waited.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stalls {
    /// Smallest length of recorded intervals, in the clock's unit.
    pub threshold: Option<u64>,
    /// Tasks that compact for their own allocations.
    pub compactors: Compactors,
}

impl Collector for Stalls {
    type State = StallSums;
    type Output = StallSums;

    const INTERESTS: Interests = Interests::SLAB_ALLOCS.union(Interests::PAGES).union(Interests::STALLS);
    const IN_ORDER: bool = true;

    fn begin(&self, facts: &PassFacts) -> StallSums {
        let answered = PageNeeds::new(&facts.rules);
        let compactors = self.compactors.clone();
        StallSums { threshold: self.threshold, compactors, answered, ..StallSums::default() }
    }

    /// Counts undecided stalls.
    fn finish(mut state: StallSums) -> StallSums {
        state.answered.drain().into_iter().for_each(|answered| state.count_delayed(answered));
        state.begins_without_end = state.open.values().map(BTreeMap::len).sum::<usize>() as u64;
        state.without_allocation = state.waiting.count();
        state.cut();
        state
    }
}

/// Sums of stalls.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StallSums {
    /// Lengths by kind.
    pub kinds: BTreeMap<Stall, Histogram>,
    /// Lengths by kind and task.
    pub by_task: HashMap<(Stall, i32), Waits>,
    /// Objects freed by each shrinker.
    pub shrunk: BTreeMap<Stall, Amount>,
    /// Allocations that waited.
    pub delayed: BTreeMap<Delayed, Waits>,
    /// By task.
    pub tasks: HashMap<i32, TaskStalls, IntHash>,
    threshold: Option<u64>,
    compactors: Compactors,
    /// Intervals beyond the threshold, by time; the longest ones if there are too many.
    pub intervals: Vec<Interval>,
    /// Number of dropped intervals beyond the threshold.
    pub intervals_left_out: u64,
    /// Ends without a begin: before the trace, or lost.
    pub ends_without_begin: u64,
    /// Intervals without an end.
    pub begins_without_end: u64,
    /// Stalls without an allocation after them.
    pub without_allocation: u64,
    /// Begins of the open stalls of each task.
    open: HashMap<i32, BTreeMap<Stall, u64>, IntHash>,
    functions: OpenFunctions,
    waiting: Waiting,
    /// Stalls of a page allocation that may be for a slab object, with their lengths.
    answered: PageNeeds<Vec<(Delayed, u64)>>,
    /// Tasks that compact for their own allocation.
    compacting: HashMap<i32, u64, IntHash>,
}

/// Largest number of recorded intervals.
const INTERVALS_MAX: usize = 100_000;

impl StallSums {
    /// Sums that keep intervals of at least this length.
    pub fn over(threshold: u64) -> Self {
        Self { threshold: Some(threshold), ..Self::default() }
    }

    /// Adds an event; returns the intervals that it ended, in the order of their begins.
    pub fn ended_by(&mut self, event: &SideEvent) -> Vec<Interval> {
        self.event(event);
        let mut ended = std::mem::take(&mut self.intervals);
        ended.sort_by_key(|i| (i.begin, std::cmp::Reverse(i.end)));
        ended
    }

    /// Number of each shrinker of a known function among those that share the function, in the order of their addresses,
    /// from 1; and how many share it: super blocks share super_cache_scan.
    pub fn shrinker_numbers(&self) -> HashMap<Stall, (usize, usize)> {
        let mut alike: HashMap<u64, Vec<Stall>> = HashMap::new();
        for stall in self.kinds.keys() {
            if let Stall::Shrinker(Some(function), _) = stall {
                alike.entry(*function).or_default().push(*stall);
            }
        }
        let numbered = alike.into_values().flat_map(|stalls| {
            let of = stalls.len();
            stalls.into_iter().enumerate().map(move |(number, stall)| (stall, (number + 1, of)))
        });
        numbered.collect()
    }

    /// Number of stalls and functions of the task that have not ended, after the event that ended one.
    pub fn stalls_around(&self, event: &SideEvent) -> usize {
        let open = self.open.get(&event.origin.pid).map_or(0, BTreeMap::len);
        open + self.functions.around(event)
    }

    fn begin(&mut self, stall: Stall, event: &SideEvent) {
        // A stall cannot begin twice: the end of an open one was lost.
        self.open.entry(event.origin.pid).or_default().insert(stall, event.time);
    }

    fn end(&mut self, stall: Stall, event: &SideEvent) -> Option<u64> {
        let Some(begin) = self.open.entry(event.origin.pid).or_default().remove(&stall) else {
            self.ends_without_begin += 1;
            return None;
        };
        self.add(stall, event.origin, begin, event.time);
        Some(event.time.saturating_sub(begin))
    }

    fn add(&mut self, stall: Stall, origin: Origin, begin: u64, end: u64) {
        let length = end.saturating_sub(begin);
        self.kinds.entry(stall).or_default().add(length);
        self.by_task.entry((stall, origin.pid)).or_default().add(length);
        if stall.delays() {
            let task = self.tasks.entry(origin.pid).or_default();
            task.waited_time = task.waited_time.saturating_add(length);
            if matches!(stall, Stall::Memcg | Stall::SoftLimit) {
                task.memcg += 1;
                task.memcg_time = task.memcg_time.saturating_add(length);
            }
            self.waiting.add(origin.pid, stall, length);
        }
        if self.threshold.is_some_and(|t| length >= t) {
            self.keep(Interval { stall, pid: origin.pid, cpu: origin.cpu, begin, end });
        }
    }

    fn keep(&mut self, interval: Interval) {
        self.intervals.push(interval);
        if self.intervals.len() >= 2 * INTERVALS_MAX {
            self.cut();
        }
    }

    /// Drops the shortest intervals beyond the limit, and sorts the rest.
    fn cut(&mut self) {
        self.intervals
            .sort_by_key(|i| (std::cmp::Reverse(i.end.saturating_sub(i.begin)), i.begin, i.pid, i.stall));
        self.intervals_left_out =
            self.intervals_left_out.saturating_add(self.intervals.len().saturating_sub(INTERVALS_MAX) as u64);
        self.intervals.truncate(INTERVALS_MAX);
        self.intervals.sort_by_key(|i| (i.begin, std::cmp::Reverse(i.end), i.pid, i.stall));
    }
}

impl Receiver for StallSums {
    fn side_event(&mut self, event: &SideEvent) {
        self.event(event);
    }

    fn page_alloc(&mut self, event: &PageEvent) {
        if event.counted {
            self.delayed_pages(event);
        }
    }

    fn slab_alloc(&mut self, op: &Op, origin: Origin, counted: bool) {
        if counted {
            self.delayed_slab(op, origin);
        }
    }
}
