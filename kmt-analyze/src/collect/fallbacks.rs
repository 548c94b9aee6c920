//! Page allocations from pageblocks of another migrate type, and the slab allocations that caused them.

use std::collections::HashMap;
use std::ops::Range;

use super::collector::{Collector, Route, Share};
use super::sums::merged;
use crate::int_hash::IntHash;
use crate::ledger::direct_map::DirectMap;
use crate::ledger::{Interests, PageEvent, Receiver, SideEvent};
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
    type Part = FallbackSums;
    type Output = HashMap<Fallback, u64>;

    fn interests(&self) -> Interests {
        Interests::SLAB_ALLOCS | Interests::PAGES | Interests::PAGE_SIDE_EVENTS
    }

    fn route(&self) -> Route {
        Route::Task
    }

    fn partition(&self, share: &Share) -> FallbackSums {
        let rules = &share.rules;
        let map = rules.direct_map.map(|map| (map, rules.page_size.trailing_zeros()));
        FallbackSums { map, ..FallbackSums::default() }
    }

    fn merge(&self, first: FallbackSums, others: Vec<FallbackSums>) -> HashMap<Fallback, u64> {
        let others = others.into_iter().map(FallbackSums::finish).collect();
        merged(first.finish(), others)
    }
}

/// Counts of fallbacks.
#[derive(Debug, Default)]
pub struct FallbackSums {
    /// By properties.
    counts: HashMap<Fallback, u64>,
    /// Last fallback of each task, until its page allocation and slab allocation are known; and the frames of the page
    /// allocation.
    open: HashMap<i32, (Fallback, Range<u64>), IntHash>,
    /// Base of the direct map, and log2 of the page size.
    map: Option<(DirectMap, u32)>,
}

impl FallbackSums {
    fn settle(&mut self, pid: i32) {
        if let Some((fallback, _)) = self.open.remove(&pid) {
            *self.counts.entry(fallback).or_default() += 1;
        }
    }

    /// Counts undecided fallbacks.
    fn finish(mut self) -> HashMap<Fallback, u64> {
        let open: Vec<i32> = self.open.keys().copied().collect();
        open.into_iter().for_each(|pid| self.settle(pid));
        self.counts
    }
}

impl Receiver for FallbackSums {
    fn side_event(&mut self, event: &SideEvent) {
        if event.kind != SideEventKind::Fallback {
            return;
        }
        let pid = event.origin.pid;
        self.settle(pid);
        let [pfn, alloc_order, fallback_order, alloc_type, fallback_type, change_ownership] = event.numbers;
        let order = |order: Option<u64>| order.and_then(|o| u32::try_from(o).ok());
        let pfn = pfn.unwrap_or(0);
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
        self.open.insert(pid, (fallback, pfn..pfn));
    }

    /// Matches the page allocation of a fallback by its migrate type. Its page may be another one, since fallbacks fill
    /// per-CPU lists.
    fn page_alloc(&mut self, event: &PageEvent<'_>) {
        let pid = event.origin.pid;
        let Some((fallback, frames)) = self.open.get_mut(&pid) else { return };
        if fallback.page_site.is_some() || fallback.alloc_migratetype != Some(event.site.migratetype) {
            return self.settle(pid);
        }
        fallback.page_site = Some(event.op.code.number());
        let pfn = event.op.value;
        *frames = pfn..pfn.saturating_add(1 << event.site.order.min(32));
        if event.failed || event.site.is_movable() {
            self.settle(pid);
        }
    }

    /// Matches the slab allocation: the first object on a new slab page is what the page was for.
    fn slab_alloc(&mut self, op: &Op, origin: Origin, _: bool) {
        if self.open.is_empty() {
            return;
        }
        let map = self.map;
        if let Some((fallback, frames)) = self.open.get_mut(&origin.pid) {
            if map.is_none_or(|(map, shift)| frames.contains(&map.frame(op.value, shift))) {
                fallback.slab_site = fallback.page_site.map(|_| op.code.number());
            }
            self.settle(origin.pid);
        }
    }
}
