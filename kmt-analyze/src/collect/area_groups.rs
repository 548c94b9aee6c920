//! Sums of vmalloc areas or percpu allocations by call site, stack and origin: sums by any property are made of them.

use std::collections::HashMap;

use super::collector::{PassFacts, StateCollector};
use super::sums::{Sums, sums};
use crate::int_hash::IntHash;
use crate::ledger::frames::NO_STACK;
use crate::ledger::{AreaKind, ClosedArea, Interests, Receiver};

/// Collects sums of the areas of one allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AreaGroups(pub AreaKind);

impl StateCollector for AreaGroups {
    type State = AreaGroupSums;

    const INTERESTS: Interests = Interests::AREAS.union(Interests::AREA_STACKS);

    fn begin(&self, _: &PassFacts) -> AreaGroupSums {
        AreaGroupSums { kind: Some(self.0), ..AreaGroupSums::default() }
    }
}

/// Common properties of some areas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AreaGroup {
    /// Call site; 0: not in the events.
    pub call_site: u64,
    /// Number of the stack, or [`NO_STACK`]: always for failed allocations.
    pub stack: u32,
    /// Number of the CPU and task that allocated.
    pub origin: u32,
}

/// Sums of all groups of one allocator.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AreaGroupSums {
    kind: Option<AreaKind>,
    /// By group.
    pub groups: HashMap<AreaGroup, AreaTotals, IntHash>,
    /// Frees of areas without an allocation in the trace.
    pub frees_unmatched: u64,
}

/// Sums over areas.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AreaTotals {
    /// Successful allocations.
    pub alloc_events: u64,
    /// Allocations that failed.
    pub alloc_failures: u64,
    /// Bytes requested.
    pub bytes_req: u64,
    /// Bytes allocated.
    pub bytes_alloc: u64,
    /// Areas that were freed.
    pub freed: u64,
    /// Bytes of areas that were freed.
    pub bytes_freed: u64,
    /// Implied frees: the address was allocated again, and no free was recorded.
    pub implied_frees: u64,
    /// Areas still allocated at the end of the window.
    pub live: u64,
    /// Bytes of areas still allocated at the end of the window.
    pub bytes_live: u64,
    /// Bytes requested for areas still allocated at the end of the window.
    pub bytes_req_live: u64,
    /// Areas that cross a loss.
    pub uncertain: u64,
    /// Areas whose events do not have the number of bytes allocated.
    pub unsized_events: u64,
}

sums!(
    AreaTotals: alloc_events, alloc_failures, bytes_req, bytes_alloc, freed, bytes_freed, implied_frees, live, bytes_live,
    bytes_req_live, uncertain, unsized_events
);

impl AreaTotals {
    fn of(closed: &ClosedArea) -> Self {
        let if_so = |is: bool, number: u64| if is { number } else { 0 };
        let (bytes_req, bytes) = (closed.area.bytes_req, closed.area.bytes_alloc.unwrap_or(0));
        Self {
            alloc_events: closed.is_born.into(),
            alloc_failures: 0,
            bytes_req: if_so(closed.is_born, bytes_req),
            bytes_alloc: if_so(closed.is_born, bytes),
            freed: closed.is_freed.into(),
            bytes_freed: if_so(closed.is_freed, bytes),
            implied_frees: closed.is_implied_free.into(),
            live: closed.is_live.into(),
            bytes_live: if_so(closed.is_live, bytes),
            bytes_req_live: if_so(closed.is_live, bytes_req),
            uncertain: closed.uncertain.into(),
            unsized_events: closed.area.bytes_alloc.is_none().into(),
        }
    }
}

impl Receiver for AreaGroupSums {
    fn closed_area(&mut self, closed: &ClosedArea) {
        let counts = closed.is_born || closed.is_freed || closed.is_implied_free || closed.is_live;
        if self.kind != Some(closed.area.kind) || !counts {
            return;
        }
        let area = &closed.area;
        let group = AreaGroup { call_site: area.call_site, stack: area.stack, origin: area.origin };
        self.groups.entry(group).or_default().absorb(AreaTotals::of(closed));
    }

    fn area_failed(&mut self, kind: AreaKind, origin: u32) {
        if self.kind == Some(kind) {
            let group = AreaGroup { call_site: 0, stack: NO_STACK, origin };
            self.groups.entry(group).or_default().alloc_failures += 1;
        }
    }

    fn area_freed_unknown(&mut self, kind: AreaKind, _: u32) {
        self.frees_unmatched += u64::from(self.kind == Some(kind));
    }
}
