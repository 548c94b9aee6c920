//! Page allocations from pageblocks of another migrate type, and the live pages of each pageblock by type.
//!
//! The slab allocation that caused a page allocation is kept with it. `fragmentation` and the map of pageblocks use both.

use std::collections::HashMap;

use super::collector::{Collector, PassFacts};
use super::page_use::PageNeeds;
use crate::int_hash::IntHash;
use crate::ledger::{ClosedFrames, Interests, PageEvent, Receiver, SideEvent};
use crate::stream::{Op, Origin, SideEventKind};

/// Properties of a fallback; `None`: not in the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fallback {
    /// Requested migrate type.
    pub alloc_migratetype: Option<i32>,
    /// Type of the allocated pages.
    pub fallback_migratetype: Option<i32>,
    /// Requested order.
    pub alloc_order: Option<u32>,
    /// Order of the allocated pages.
    pub fallback_order: Option<u32>,
    /// True if the pageblock then has the requested type.
    pub change_ownership: Option<bool>,
    /// Task.
    pub pid: i32,
    /// Number of the kind of the page allocation that followed.
    pub page_site: Option<u32>,
    /// Number of the site of the slab allocation that needed the page.
    pub slab_site: Option<u32>,
}

/// Collects fallbacks with the allocations that caused them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallbacks;

impl Collector for Fallbacks {
    type State = FallbackSums;
    type Output = HashMap<Fallback, u64>;

    const INTERESTS: Interests =
        Interests::SLAB_ALLOCS.union(Interests::PAGES).union(Interests::PAGE_SIDE_EVENTS);
    const IN_ORDER: bool = true;

    fn begin(&self, PassFacts { rules, .. }: &PassFacts) -> FallbackSums {
        FallbackSums { last: rules.last_read(), counts: HashMap::default(), open: PageNeeds::new(rules) }
    }

    fn finish(mut state: FallbackSums) -> HashMap<Fallback, u64> {
        // Those that are still undecided.
        state.open.drain().into_iter().for_each(|fallback| state.count(fallback));
        state.counts
    }
}

/// Counts of fallbacks.
#[derive(Debug)]
pub struct FallbackSums {
    /// Allocations after this time are not those of a fallback in the window: others may want them.
    last: u64,
    /// By properties.
    counts: HashMap<Fallback, u64>,
    /// Last fallback of each task, until its page allocation and slab allocation are known.
    open: PageNeeds<Fallback>,
}

impl FallbackSums {
    fn count(&mut self, fallback: Fallback) {
        *self.counts.entry(fallback).or_default() += 1;
    }
}

impl Receiver for FallbackSums {
    fn side_event(&mut self, event: &SideEvent) {
        if event.kind != SideEventKind::Fallback {
            return;
        }
        let pid = event.origin.pid;
        if let Some(before) = self.open.remove(pid) {
            self.count(before);
        }
        let [_, alloc_order, fallback_order, alloc_type, fallback_type, change_ownership] = event.numbers;
        let order = |order: Option<u64>| order.and_then(|o| u32::try_from(o).ok());
        let fallback = Fallback {
            alloc_migratetype: alloc_type.map(|t| t as i32),
            fallback_migratetype: fallback_type.map(|t| t as i32),
            alloc_order: order(alloc_order),
            fallback_order: order(fallback_order),
            change_ownership: change_ownership.map(|c| c != 0),
            pid,
            page_site: None,
            slab_site: None,
        };
        self.open.insert(pid, fallback, None);
    }

    /// Matches the page allocation of a fallback by its migrate type. Its page may be another one, since fallbacks fill
    /// per-CPU lists.
    fn page_alloc(&mut self, event: &PageEvent) {
        let pid = event.origin.pid;
        let fallback = if event.op.time <= self.last { self.open.remove(pid) } else { None };
        let Some(mut fallback) = fallback else { return };
        if fallback.page_site.is_some() || fallback.alloc_migratetype != Some(event.site.migratetype) {
            return self.count(fallback);
        }
        fallback.page_site = Some(event.op.code.number());
        if event.failed || event.site.is_movable() {
            return self.count(fallback);
        }
        self.open.insert(pid, fallback, Some(event));
    }

    /// Matches the slab allocation.
    fn slab_alloc(&mut self, op: &Op, origin: Origin, _: bool) {
        if op.time > self.last {
            return;
        }
        if let Some((mut fallback, is_its)) = self.open.remove_for(op, origin) {
            fallback.slab_site = fallback.page_site.filter(|_| is_its).map(|_| op.code.number());
            self.count(fallback);
        }
    }
}

/// Number of migrate types, the most of kernels 4.4 to 7.2.
pub const TYPES: usize = 8;

/// Collects pages by pageblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mixing {
    /// log2 of the pages of a pageblock.
    pub pageblock_order: u32,
}

impl Collector for Mixing {
    type State = MixingState;
    type Output = MixingSums;

    const INTERESTS: Interests = Interests::PAGES.union(Interests::FRAMES).union(Interests::PAGE_SIDE_EVENTS);

    /// A fallback precedes its allocation on the same CPU.
    const IN_ORDER: bool = true;

    fn begin(&self, facts: &PassFacts) -> MixingState {
        let sums = MixingSums { pageblock_order: self.pageblock_order, ..MixingSums::default() };
        MixingState { last: facts.rules.window.1, sums, fallback: HashMap::default() }
    }

    fn finish(MixingState { mut sums, .. }: MixingState) -> MixingSums {
        sums.live.sort_unstable();
        sums
    }
}

/// Sums, and fallbacks without their allocations.
#[derive(Debug, Clone)]
pub struct MixingState {
    /// Last counted time.
    last: u64,
    sums: MixingSums,
    /// Frame of the last fallback of each CPU: the next allocation there does not vote for the type of its block.
    fallback: HashMap<u32, u64, IntHash>,
}

/// Votes and live pages of all blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MixingSums {
    /// log2 of the pages of a pageblock.
    pub pageblock_order: u32,
    /// Allocations without fallback until the end of the window, by block and type. The most frequent type is the block's.
    votes: HashMap<u64, [u32; TYPES], IntHash>,
    /// Allocations with live pages: block, kind, CPU and task, pages.
    pub live: Vec<LivePages>,
}

/// Live pages of one allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LivePages {
    /// Number of the pageblock.
    pub block: u64,
    /// Number of the allocation's kind.
    pub site: u32,
    /// Number of the CPU and task that allocated them.
    pub origin: u32,
    /// Pages.
    pub frames: u64,
}

impl Receiver for MixingState {
    fn page_alloc(&mut self, event: &PageEvent) {
        let is_late = event.op.time > self.last;
        if event.failed || is_late || u32::from(event.site.order) >= self.sums.pageblock_order {
            return;
        }
        let pfn = event.op.value;
        if self.fallback.get(&event.origin.cpu) == Some(&pfn) {
            self.fallback.remove(&event.origin.cpu);
            return;
        }
        let block = pfn >> self.sums.pageblock_order;
        let votes = self.sums.votes.entry(block).or_default();
        let slot = usize::try_from(event.site.migratetype).ok().and_then(|t| votes.get_mut(t));
        if let Some(slot) = slot {
            *slot = slot.saturating_add(1);
        }
    }

    /// Records a fallback: the next allocation does not vote, unless the block changes its type.
    fn side_event(&mut self, event: &SideEvent) {
        if event.kind != SideEventKind::Fallback {
            return;
        }
        let [pfn, _, _, alloc_type, _, change_ownership] = event.numbers;
        let Some(pfn) = pfn else { return };
        let new_type = alloc_type.filter(|_| change_ownership.is_some_and(|c| c != 0));
        let Some(new_type) = new_type else {
            self.fallback.insert(event.origin.cpu, pfn);
            return;
        };
        let mut votes = [0; TYPES];
        if let Some(slot) = usize::try_from(new_type).ok().and_then(|t| votes.get_mut(t)) {
            *slot = 1;
        }
        self.sums.votes.insert(pfn >> self.sums.pageblock_order, votes);
    }

    fn closed_frames(&mut self, closed: &ClosedFrames) {
        let block = closed.pfn >> self.sums.pageblock_order;
        let frames = closed.sums.frames_live;
        if frames > 0 {
            self.sums.live.push(LivePages { block, site: closed.site, origin: closed.origin, frames });
        }
    }
}

impl MixingSums {
    /// Type of most allocations from a block; `None`: no allocation, or a tie.
    pub fn block_type(&self, block: u64) -> Option<usize> {
        let votes = self.votes.get(&block)?;
        let most = *votes.iter().max()?;
        let mut best = votes.iter().enumerate().filter(|(_, v)| **v == most);
        match (best.next(), best.next()) {
            (Some((winner, _)), None) if most > 0 => Some(winner),
            _ => None,
        }
    }
}
