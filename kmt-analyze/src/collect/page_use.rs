//! Use of the page allocator: events by task, failures, pages by stack, and pages that may be for a slab object.
//!
//! Events by task are the figures of trace-pagealloc-postprocess (Mel Gorman,
//! Documentation/trace/postprocess/trace-pagealloc-postprocess.pl). They count events, not pages. The first object on a new page
//! shows the slab that needed the page.

use std::collections::HashMap;
use std::ops::Range;

use super::collector::{PassFacts, StateCollector};
use crate::int_hash::IntHash;
use crate::ledger::direct_map::DirectMap;
use crate::ledger::totals::FrameTotals;
use crate::ledger::{ClosedFrames, Interests, PageEvent, PageGroup, Receiver, Rules, SideEvent};
use crate::stream::{Op, Origin, SideEventKind};

/// Counts of one task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Use {
    /// mm_page_alloc, failures included.
    pub allocs: u64,
    /// mm_page_alloc_zone_locked: taken from the buddy lists, mostly to refill a per-CPU list.
    pub allocs_under_lock: u64,
    /// mm_page_free.
    pub frees_direct: u64,
    /// mm_page_free_batched.
    pub frees_batched: u64,
    /// mm_page_pcpu_drain.
    pub pages_drained: u64,
    /// Runs of mm_page_pcpu_drain events.
    pub drains: u64,
    /// Runs of mm_page_alloc_zone_locked.
    pub refills: u64,
    /// mm_page_alloc_extfrag: pages of another migrate type were allocated.
    pub fallbacks: u64,
    /// Fallbacks below pageblock order, which mix types in a block.
    pub causing: u64,
    /// Fallbacks below pageblock order, up to order 3.
    pub severe: u64,
    /// Fallbacks below pageblock order, of a larger order.
    pub moderate: u64,
    /// Fallbacks after which the pageblock has the requested type.
    pub changed: u64,
    /// Fallbacks without their order, or without the change of the block's type.
    pub incomplete_fallbacks: u64,
    run: PageRun,
}

/// Kind of a task's last event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum PageRun {
    #[default]
    None,
    Drain,
    Refill,
}

/// Fallbacks of this order or less are severe.
const SEVERE_ORDER_MAX: u64 = 3;

/// Collects page allocator events by task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageUse {
    /// log2 of the pages of a pageblock.
    pub pageblock_order: u64,
}

impl StateCollector for PageUse {
    type State = PageUseSums;

    const INTERESTS: Interests = Interests::PAGES.union(Interests::PAGE_SIDE_EVENTS);
    const IN_ORDER: bool = true;

    fn begin(&self, _: &PassFacts) -> PageUseSums {
        PageUseSums { tasks: HashMap::default(), pageblock_order: self.pageblock_order }
    }
}

/// Events of all tasks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PageUseSums {
    /// By thread id.
    pub tasks: HashMap<i32, Use, IntHash>,
    pageblock_order: u64,
}

impl PageUseSums {
    fn at(&mut self, pid: i32, run: PageRun) -> &mut Use {
        let task = self.tasks.entry(pid).or_default();
        // A run is counted when another event ends it.
        if task.run != run {
            task.drains += u64::from(task.run == PageRun::Drain);
            task.refills += u64::from(task.run == PageRun::Refill);
            task.run = run;
        }
        task
    }
}

impl Receiver for PageUseSums {
    fn page_alloc(&mut self, event: &PageEvent) {
        if event.counted {
            self.at(event.origin.pid, PageRun::None).allocs += 1;
        }
    }

    fn page_free(&mut self, event: &PageEvent) {
        if event.counted {
            self.at(event.origin.pid, PageRun::None).frees_direct += 1;
        }
    }

    fn side_event(&mut self, event: &SideEvent) {
        let pid = event.origin.pid;
        match event.kind {
            SideEventKind::PcpuDrain => self.at(pid, PageRun::Drain).pages_drained += 1,
            SideEventKind::ZoneLocked => self.at(pid, PageRun::Refill).allocs_under_lock += 1,
            SideEventKind::FreeBatched => self.at(pid, PageRun::None).frees_batched += 1,
            SideEventKind::Fallback => {
                let [_, _, fallback_order, _, _, change_ownership] = event.numbers;
                let severity = fallback_order.map(|order| Severity::of(order, self.pageblock_order));
                let task = self.at(pid, PageRun::None);
                task.fallbacks += 1;
                task.causing += u64::from(severity.is_some_and(|s| s != Severity::None));
                task.severe += u64::from(severity == Some(Severity::Severe));
                task.moderate += u64::from(severity == Some(Severity::Moderate));
                task.changed += u64::from(change_ownership.is_some_and(|c| c != 0));
                task.incomplete_fallbacks += u64::from(severity.is_none() || change_ownership.is_none());
            }
            _ => {}
        }
    }
}

/// Severity of a fallback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// A whole pageblock or more was allocated: types are not mixed.
    None,
    /// Part of a block, of an order above 3.
    Moderate,
    /// Part of a block, of order 3 or less.
    Severe,
}

impl Severity {
    /// Severity by the rules of trace-pagealloc-postprocess.
    pub fn of(fallback_order: u64, pageblock_order: u64) -> Self {
        match fallback_order {
            order if order >= pageblock_order => Self::None,
            0..=SEVERE_ORDER_MAX => Self::Severe,
            _ => Self::Moderate,
        }
    }

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Moderate => "moderate",
            Self::Severe => "severe",
        }
    }
}

/// Collects failed allocations of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFailures;

impl StateCollector for PageFailures {
    type State = PageFailureSums;

    const INTERESTS: Interests = Interests::FRAMES;
}

/// Failures by the numbers of their kind and of their origin.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PageFailureSums(pub HashMap<(u32, u32), u64, IntHash>);

impl Receiver for PageFailureSums {
    fn page_failed(&mut self, group: PageGroup) {
        *self.0.entry((group.site, group.origin)).or_default() += 1;
    }
}

/// Collects pages by stack; empty if the trace has no stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageStacks;

impl StateCollector for PageStacks {
    type State = PageStackSums;

    const INTERESTS: Interests = Interests::FRAMES.union(Interests::PAGE_STACKS);

    fn begin(&self, facts: &PassFacts) -> PageStackSums {
        PageStackSums { has_stacks: facts.has_stacks, stacks: HashMap::default() }
    }
}

/// Sums of all stacks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PageStackSums {
    has_stacks: bool,
    /// By number of the stack; pages without one are under `NO_STACK`.
    pub stacks: HashMap<u32, FrameTotals, IntHash>,
}

impl Receiver for PageStackSums {
    fn closed_frames(&mut self, closed: &ClosedFrames) {
        if self.has_stacks {
            let sums = self.stacks.entry(closed.stack).or_default();
            *sums += &closed.sums;
            sums.frames_alloc += if closed.is_born { closed.frames } else { 0 };
        }
    }

    fn page_failed(&mut self, group: PageGroup) {
        if self.has_stacks {
            self.stacks.entry(group.stack).or_default().alloc_failures += 1;
        }
    }
}

/// The last page allocation of each task, until its slab allocation is known.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PageNeeds<T> {
    /// By task, with its frames.
    open: HashMap<i32, (T, Range<u64>), IntHash>,
    /// Base of the direct map, and log2 of the page size.
    map: Option<(DirectMap, u32)>,
}

impl<T> PageNeeds<T> {
    /// None yet.
    pub fn new(rules: &Rules) -> Self {
        let map = rules.direct_map.map(|map| (map, rules.page_size.trailing_zeros()));
        Self { open: HashMap::default(), map }
    }

    /// Adds something of a task, with the page allocation that it is about, if that is known.
    pub fn insert(&mut self, pid: i32, item: T, allocation: Option<&PageEvent>) {
        let frames = allocation.map_or(0..0, |event| {
            let pfn = event.op.value;
            pfn..pfn.saturating_add(1 << event.site.order.min(32))
        });
        self.open.insert(pid, (item, frames));
    }

    /// Removes that of a task.
    pub fn remove(&mut self, pid: i32) -> Option<T> {
        self.open.remove(&pid).map(|(item, _)| item)
    }

    /// Removes that of the task of a slab allocation; true if the object is on its page, or may be.
    pub fn remove_for(&mut self, op: &Op, origin: Origin) -> Option<(T, bool)> {
        if self.open.is_empty() {
            return None;
        }
        let (item, frames) = self.open.remove(&origin.pid)?;
        Some((item, self.map.is_none_or(|(map, shift)| frames.contains(&map.frame(op.value, shift)))))
    }

    /// Removes all.
    pub fn drain(&mut self) -> Vec<T> {
        self.open.drain().map(|(_, (item, _))| item).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Origin;

    #[test]
    fn runs_count_when_something_else_ends_them() {
        let mut sink = PageUseSums { pageblock_order: 9, ..PageUseSums::default() };
        let mut event = |kind, pid, numbers| {
            let origin = Origin { cpu: 0, pid, ..Origin::default() };
            sink.side_event(&SideEvent { kind, numbers, time: 0, origin });
        };
        for _ in 0..3 {
            event(SideEventKind::ZoneLocked, 1, [None; 6]);
            event(SideEventKind::PcpuDrain, 2, [None; 6]);
        }
        event(SideEventKind::PcpuDrain, 1, [None; 6]);
        event(SideEventKind::Fallback, 1, [0, 0, 3, 0, 1, 1].map(Some));
        event(SideEventKind::Fallback, 1, [0, 0, 4, 0, 1, 0].map(Some));
        event(SideEventKind::Fallback, 1, [0, 0, 9, 0, 1, 1].map(Some));
        let one = sink.tasks[&1];
        assert_eq!((one.allocs_under_lock, one.refills, one.pages_drained, one.drains), (3, 1, 1, 1));
        assert_eq!((one.fallbacks, one.causing, one.severe, one.moderate, one.changed), (3, 2, 1, 1, 2));
        assert_eq!((sink.tasks[&2].pages_drained, sink.tasks[&2].drains), (3, 0), "goes on");
    }
}
