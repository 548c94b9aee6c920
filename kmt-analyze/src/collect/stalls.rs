//! Stalls of tasks that wait for memory: reclaim, compaction, kswapd, shrinkers, traced functions; and the allocations
//! that waited.

use std::collections::{BTreeMap, HashMap};

use super::amount::{Amount, Split};
use super::collector::{Collector, Route, Share};
use super::histogram::Histogram;
use super::sums::{Sums, merged};
use crate::int_hash::IntHash;
use crate::ledger::direct_map::DirectMap;
use crate::ledger::{Interests, PageEvent, Receiver, SideEvent};
use crate::stream::{Op, Origin, SideEventKind};

/// Kind of a stall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stall {
    /// Direct reclaim of pages by a task whose allocation finds none.
    Direct,
    /// The same for a memory cgroup at its limit.
    Memcg,
    /// The same for a memory cgroup beyond its soft limit.
    SoftLimit,
    /// Reclaim of pages of the task's own node first (vm.zone_reclaim_mode).
    Node,
    /// Compaction of a zone by a task for its own allocation.
    DirectCompaction,
    /// kcompactd, or a compaction requested through /proc.
    Compaction,
    /// kswapd of that node is awake.
    Kswapd(Option<u64>),
    /// A shrinker: its function, and its address among shrinkers that share the function.
    Shrinker(Option<u64>, Option<u64>),
    /// A function of the function graph tracer.
    Function(u64),
}

impl Stall {
    /// True if an allocation of the task waits for it.
    pub fn delays(self) -> bool {
        matches!(self, Self::Direct | Self::Memcg | Self::SoftLimit | Self::Node | Self::DirectCompaction)
    }
}

/// A complete interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// Kind.
    pub stall: Stall,
    /// Task.
    pub pid: i32,
    /// CPU where it ended.
    pub cpu: u32,
    /// Time of its begin.
    pub begin: u64,
    /// Time of its end.
    pub end: u64,
}

/// An allocation that waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Delayed {
    /// Stall that it waited for.
    pub stall: Stall,
    /// Number of the kind of the page allocation.
    pub page_site: u32,
    /// Number of the site of the slab allocation that needed the page.
    pub slab_site: Option<u32>,
    /// True if the allocation failed.
    pub failed: bool,
}

/// Figures of one task: the columns of trace-vmscan-postprocess.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskStalls {
    /// Direct reclaims, by order.
    pub direct: ByOrder,
    /// Times that it woke kswapd, by order.
    pub wakeups: ByOrder,
    /// Pages scanned on inactive lists: of files, anonymous.
    pub scanned: Split,
    /// Pages reclaimed: of files, anonymous.
    pub reclaimed: Split,
    /// Pages written: synchronously, asynchronously.
    pub written: Split,
    /// Time in direct reclaim.
    pub direct_time: u64,
    /// Reclaims for a memory cgroup at its limit, or beyond its soft limit.
    pub memcg: u64,
    /// Time in them.
    pub memcg_time: u64,
    /// Sum of all times that allocations wait for: reclaim of any kind, direct compaction.
    pub waited_time: u64,
    /// Wakes of kswapd, by order.
    pub wakes: ByOrder,
    /// The same while it was awake.
    pub rewakes: ByOrder,
    /// Pages freed by its direct reclaims, from their end events.
    pub direct_reclaimed: Amount,
}

/// Counts by order; `None`: not in the event.
pub type ByOrder = BTreeMap<Option<u64>, u64>;

/// Stalls of an allocation with their lengths, and the frames of the allocation.
type AnsweredStalls = (Vec<(Delayed, u64)>, std::ops::Range<u64>);

/// Collects stalls, and the allocations that waited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stalls {
    /// Smallest length of recorded intervals, in the clock's unit.
    pub threshold: Option<u64>,
}

impl Collector for Stalls {
    type Part = StallSums;
    type Output = StallSums;

    fn interests(&self) -> Interests {
        Interests::SLAB_ALLOCS | Interests::PAGES | Interests::STALLS
    }

    fn route(&self) -> Route {
        Route::Task
    }

    fn partition(&self, share: &Share) -> StallSums {
        let rules = &share.rules;
        let map = rules.direct_map.map(|map| (map, rules.page_size.trailing_zeros()));
        StallSums { threshold: self.threshold, map, ..StallSums::default() }
    }

    fn merge(&self, first: StallSums, others: Vec<StallSums>) -> StallSums {
        let mut out = merged(first.finish(), others.into_iter().map(StallSums::finish).collect());
        out.cut();
        out
    }
}

/// Number, sum and maximum of waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waits {
    /// Number of waits.
    pub count: u64,
    /// Sum, in the clock's unit.
    pub total: u64,
    /// Longest.
    pub max: u64,
}

impl Waits {
    fn add(&mut self, length: u64) {
        self.absorb(Self { count: 1, total: length, max: length });
    }
}

impl Sums for Waits {
    fn absorb(&mut self, other: Self) {
        self.count += other.count;
        self.total = self.total.saturating_add(other.total);
        self.max = self.max.max(other.max);
    }
}

/// Sums of stalls.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StallSums {
    /// Lengths by kind.
    pub kinds: BTreeMap<Stall, Histogram>,
    /// The same by task.
    pub by_task: HashMap<(Stall, i32), Waits>,
    /// Objects freed by each shrinker.
    pub shrunk: BTreeMap<Stall, Amount>,
    /// Allocations that waited.
    pub delayed: BTreeMap<Delayed, Waits>,
    /// By task.
    pub tasks: HashMap<i32, TaskStalls, IntHash>,
    threshold: Option<u64>,
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
    /// Open functions of each stack, by rising depth: function, depth, time.
    graph: HashMap<i32, Vec<(u64, u64, u64)>, IntHash>,
    /// Stalls dropped beyond the limit of undecided ones.
    dropped_stalls: u64,
    /// Stalls of each task, until its allocation.
    waiting: HashMap<i32, Vec<(Stall, u64)>, IntHash>,
    /// Page allocation of each task that may be for a slab object, and its frames.
    answered: HashMap<i32, AnsweredStalls, IntHash>,
    /// Base of the direct map, and log2 of the page size.
    map: Option<(DirectMap, u32)>,
    /// Tasks that compact for their own allocation.
    compacting: HashMap<i32, u64, IntHash>,
}

/// Largest number of undecided stalls of one task: page allocations may not be recorded.
const WAITING_MAX: usize = 64;

/// Key of the function stack of an event: its task, or its CPU for the idle task.
fn stack_of(origin: Origin) -> i32 {
    if origin.pid == 0 { -1 - i32::try_from(origin.cpu).unwrap_or(0) } else { origin.pid }
}

/// Largest number of recorded intervals.
const INTERVALS_MAX: usize = 100_000;

/// Bits of reclaim_flags (include/trace/events/vmscan.h, 4.4 to 7.2).
const RECLAIM_WB_FILE: u64 = 0x2;
const RECLAIM_WB_SYNC: u64 = 0x4;

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
            stalls.into_iter().enumerate().map(move |(place, stall)| (stall, (place + 1, of)))
        });
        numbered.collect()
    }

    /// Number of stalls of the task that have not ended.
    pub fn open_stalls(&self, pid: i32) -> usize {
        self.open.get(&pid).map_or(0, BTreeMap::len)
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
            let waiting = self.waiting.entry(origin.pid).or_default();
            if waiting.len() < WAITING_MAX { waiting.push((stall, length)) } else { self.dropped_stalls += 1 }
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

    /// Adds a side event.
    fn event(&mut self, event: &SideEvent) {
        let n = event.numbers;
        let pid = event.origin.pid;
        match event.kind {
            SideEventKind::NewTask | SideEventKind::TaskExit => {}
            SideEventKind::DirectBegin => {
                *self.tasks.entry(pid).or_default().direct.entry(n[0]).or_default() += 1;
                self.begin(Stall::Direct, event);
            }
            SideEventKind::DirectEnd => {
                let length = self.end(Stall::Direct, event);
                let task = self.tasks.entry(pid).or_default();
                task.direct_time = task.direct_time.saturating_add(length.unwrap_or(0));
                task.direct_reclaimed.add(n[0]);
            }
            SideEventKind::MemcgBegin => self.begin(Stall::Memcg, event),
            SideEventKind::MemcgEnd => drop(self.end(Stall::Memcg, event)),
            SideEventKind::SoftLimitBegin => self.begin(Stall::SoftLimit, event),
            SideEventKind::SoftLimitEnd => drop(self.end(Stall::SoftLimit, event)),
            SideEventKind::NodeBegin => self.begin(Stall::Node, event),
            SideEventKind::NodeEnd => drop(self.end(Stall::Node, event)),
            SideEventKind::KswapdWake => {
                let is_awake = self.open.get(&pid).is_some_and(|o| o.contains_key(&Stall::Kswapd(n[0])));
                let task = self.tasks.entry(pid).or_default();
                let wakes = if is_awake { &mut task.rewakes } else { &mut task.wakes };
                *wakes.entry(n[1]).or_default() += 1;
                if !is_awake {
                    self.begin(Stall::Kswapd(n[0]), event);
                }
            }
            SideEventKind::KswapdSleep => drop(self.end(Stall::Kswapd(n[0]), event)),
            SideEventKind::WakeupKswapd => {
                *self.tasks.entry(pid).or_default().wakeups.entry(n[0]).or_default() += 1;
            }
            SideEventKind::ShrinkBegin => self.begin(Stall::Shrinker(n[1], n[0]), event),
            SideEventKind::ShrinkEnd => {
                let stall = Stall::Shrinker(n[1], n[0]);
                self.end(stall, event);
                // A shrinker may return SHRINK_STOP, ~0UL.
                let objects = n[2].map(|objects| u64::try_from(objects as i64).unwrap_or(0));
                self.shrunk.entry(stall).or_default().add(objects);
            }
            SideEventKind::LruIsolate => self.isolate(pid, &n),
            SideEventKind::ShrinkInactive => {
                let is_anon = n[1].map(|flags| flags & RECLAIM_WB_FILE == 0);
                self.tasks.entry(pid).or_default().reclaimed.add(is_anon, n[0]);
            }
            SideEventKind::WritePage => {
                let is_async = n[0].map(|flags| flags & RECLAIM_WB_SYNC == 0);
                self.tasks.entry(pid).or_default().written.add(is_async, Some(1));
            }
            SideEventKind::TryCompact => drop(self.compacting.insert(pid, event.time)),
            SideEventKind::CompactBegin => self.begin(self.compaction(pid), event),
            SideEventKind::CompactEnd => drop(self.end(self.compaction(pid), event)),
            SideEventKind::GraphEntry => {
                let (Some(func), Some(depth)) = (n[0], n[1]) else { return };
                let open = self.graph.entry(stack_of(event.origin)).or_default();
                // Functions at this depth or deeper have ended, and their exits were lost.
                while open.last().is_some_and(|(_, other, _)| *other >= depth) {
                    open.pop();
                }
                open.push((func, depth, event.time));
            }
            SideEventKind::GraphExit => self.graph_exit(event),
            SideEventKind::Fallback
            | SideEventKind::PcpuDrain
            | SideEventKind::ZoneLocked
            | SideEventKind::FreeBatched => {}
        }
    }

    /// Scanned pages of inactive lists only, as vmstat counts; active ones are rotated.
    fn isolate(&mut self, pid: i32, n: &crate::stream::SideNumbers) {
        let [scanned, isolate_mode, lru, file, ..] = *n;
        let (is_inactive, is_anon) = match lru {
            // enum lru_list: inactive and active anonymous, inactive and active file.
            Some(lru) => (Some(lru == 0 || lru == 2), Some(lru < 2)),
            // ISOLATE_ACTIVE alone was 2.
            None => (isolate_mode.map(|mode| mode != 2), file.map(|file| file == 0)),
        };
        match is_inactive {
            Some(true) => self.tasks.entry(pid).or_default().scanned.add(is_anon, scanned),
            Some(false) => {}
            None => self.tasks.entry(pid).or_default().scanned.add(None, None),
        }
    }

    /// Kind of a compaction: direct if the task announced it, which kcompactd does not do.
    fn compaction(&self, pid: i32) -> Stall {
        if self.compacting.contains_key(&pid) { Stall::DirectCompaction } else { Stall::Compaction }
    }

    /// Adds the exit of a function, which has both of its times.
    fn graph_exit(&mut self, event: &SideEvent) {
        let [func, depth, call, ret, ..] = event.numbers;
        let (Some(func), Some(depth)) = (func, depth) else {
            self.ends_without_begin += 1;
            return;
        };
        let times = call.zip(ret).filter(|&(call, ret)| call != 0 && ret >= call);
        let open = self.graph.entry(stack_of(event.origin)).or_default();
        let entered = open.binary_search_by_key(&depth, |e| e.1).ok();
        let entered = entered.filter(|&at| open.get(at).is_some_and(|e| e.0 == func));
        let entered = entered.and_then(|at| open.drain(at..).next());
        let Some((begin, end)) = times.or(entered.map(|(.., time)| (time, event.time))) else {
            self.ends_without_begin += 1;
            return;
        };
        self.add(Stall::Function(func), event.origin, begin, end);
    }

    /// Adds a page allocation, or its failure: the task may have waited for it.
    fn delayed_pages(&mut self, event: &PageEvent<'_>) {
        let pid = event.origin.pid;
        self.compacting.remove(&pid);
        self.settle(pid);
        let Some(waiting) = self.waiting.get_mut(&pid).filter(|w| !w.is_empty()) else { return };
        let (page_site, failed) = (event.op.code.number(), event.failed);
        let answered = waiting
            .drain(..)
            .map(|(stall, length)| (Delayed { stall, page_site, slab_site: None, failed }, length))
            .collect();
        let pfn = event.op.value;
        let frames = pfn..pfn.saturating_add(1 << event.site.order.min(32));
        self.answered.insert(pid, (answered, frames));
        if failed || event.site.is_movable() {
            self.settle(pid);
        }
    }

    /// Adds a slab allocation: the first object on a page is what the page was for.
    fn delayed_slab(&mut self, op: &Op, origin: Origin) {
        if self.answered.is_empty() {
            return;
        }
        let map = self.map;
        if let Some((answered, frames)) = self.answered.get_mut(&origin.pid) {
            if map.is_none_or(|(map, shift)| frames.contains(&map.frame(op.value, shift))) {
                answered.iter_mut().for_each(|(d, _)| d.slab_site = Some(op.code.number()));
            }
            self.settle(origin.pid);
        }
    }

    fn settle(&mut self, pid: i32) {
        for (delayed, length) in self.answered.remove(&pid).unwrap_or_default().0 {
            self.delayed.entry(delayed).or_default().add(length);
        }
    }

    /// Counts undecided stalls.
    fn finish(mut self) -> Self {
        let pids: Vec<i32> = self.answered.keys().copied().collect();
        pids.into_iter().for_each(|pid| self.settle(pid));
        self.begins_without_end =
            std::mem::take(&mut self.open).values().map(BTreeMap::len).sum::<usize>() as u64;
        let waiting = std::mem::take(&mut self.waiting).values().map(Vec::len).sum::<usize>() as u64;
        self.without_allocation = waiting + self.dropped_stalls;
        Self { graph: HashMap::default(), compacting: HashMap::default(), ..self }
    }
}

impl Receiver for StallSums {
    fn side_event(&mut self, event: &SideEvent) {
        self.event(event);
    }

    fn page_alloc(&mut self, event: &PageEvent<'_>) {
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

impl Sums for StallSums {
    fn absorb(&mut self, other: Self) {
        self.kinds.absorb(other.kinds);
        self.by_task.absorb(other.by_task);
        self.shrunk.absorb(other.shrunk);
        self.delayed.absorb(other.delayed);
        // Each task is in one part.
        self.tasks.extend(other.tasks);
        self.intervals.extend(other.intervals);
        self.intervals_left_out.absorb(other.intervals_left_out);
        self.ends_without_begin.absorb(other.ends_without_begin);
        self.dropped_stalls.absorb(other.dropped_stalls);
        self.begins_without_end.absorb(other.begins_without_end);
        self.without_allocation.absorb(other.without_allocation);
    }
}
