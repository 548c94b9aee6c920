//! Page allocations from pageblocks of another migrate type, and the slab allocations that caused them.

use std::collections::HashMap;

use super::collector::{Collector, PassFacts};
use super::page_needs::PageNeeds;
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
