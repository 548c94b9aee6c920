//! Sums by the numbered properties of an allocation: of slab objects, of areas, of pages.
//!
//! The keys are site, cache, stack and origin, as the ledger has them. Sums by any property of `--by` are made of these behind
//! the pass.

pub use crate::ledger::PageGroup;

use std::collections::HashMap;

use super::collector::{PassFacts, StateCollector};
use super::sums::{Sums, grown, sums};
use crate::int_hash::IntHash;
use crate::ledger::frames::NO_STACK;
use crate::ledger::lives::Life;
use crate::ledger::totals::{FrameTotals, Totals};
use crate::ledger::{
    AreaKind, Closed, ClosedArea, ClosedFrames, FoldedLives, FoldedPages, FreedPlain, Interests, PlainLife,
    Receiver,
};
use crate::stream::NameId;

/// Number in place of an origin, of lives that are in the file as sums: their tasks and CPUs are unknown.
pub const NO_ORIGIN: u32 = u32::MAX;

/// Collects sums by site, cache and origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Groups;

impl StateCollector for Groups {
    type State = GroupSums;

    const INTERESTS: Interests = Interests::PLAIN_LIVES;
}

/// Common properties of some allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    /// Number of the site.
    pub site: u32,
    /// Cache, if an event names it.
    pub cache: Option<NameId>,
    /// Number of the CPU and task that allocated, or [`NO_ORIGIN`].
    pub origin: u32,
}

impl Group {
    #[inline]
    fn of(life: &Life, cache: Option<NameId>) -> Self {
        Self { site: life.site, cache, origin: life.origin }
    }
}

/// Sums of all groups.
#[derive(Debug, Default)]
pub struct GroupSums {
    totals: Vec<Totals>,
    numbers: HashMap<Group, u32, IntHash>,
    /// By site, the group that was last added to, and its number: often the next one too.
    last: Vec<Option<(Group, u32)>>,
}

impl GroupSums {
    /// Groups with their sums.
    pub fn iter(&self) -> impl Iterator<Item = (&Group, &Totals)> {
        self.numbers.iter().filter_map(|(group, number)| Some((group, self.totals.get(*number as usize)?)))
    }

    #[inline]
    fn of(&mut self, group: Group) -> &mut Totals {
        let last = grown(&mut self.last, group.site);
        let number = match last {
            Some((same, number)) if *same == group => *number,
            _ => {
                let next = self.totals.len() as u32;
                let number = *self.numbers.entry(group).or_insert(next);
                *last = Some((group, number));
                number
            }
        };
        grown(&mut self.totals, number)
    }
}

impl Receiver for GroupSums {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        *self.of(Group::of(&closed.life, closed.cache)) += &closed.totals();
    }

    #[inline]
    fn freed_plain(&mut self, FreedPlain { plain, .. }: &FreedPlain) {
        plain.add_freed(self.of(Group::of(&plain.life, plain.cache)));
    }

    fn implied_free_plain(&mut self, plain: &PlainLife, _: u64) {
        plain.add_implied(self.of(Group::of(&plain.life, plain.cache)));
    }

    fn folded(&mut self, lives: &FoldedLives) {
        *self.of(Group { site: lives.site, cache: lives.cache, origin: NO_ORIGIN }) += &lives.totals();
    }
}

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

/// Collects sums of pages by kind, origin and stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageGroups;

impl StateCollector for PageGroups {
    type State = PageGroupSums;

    const INTERESTS: Interests = Interests::FRAMES.union(Interests::PAGE_STACKS);
}

/// Sums of all groups.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PageGroupSums(pub HashMap<PageGroup, FrameTotals, IntHash>);

impl Receiver for PageGroupSums {
    fn closed_frames(&mut self, closed: &ClosedFrames) {
        let group = PageGroup { site: closed.site, origin: closed.origin, stack: closed.stack };
        let sums = self.0.entry(group).or_default();
        *sums += &closed.sums;
        if closed.is_born {
            sums.frames_alloc = sums.frames_alloc.saturating_add(closed.frames);
            sums.alloc_events += u64::from(closed.is_last);
        }
    }

    fn page_failed(&mut self, group: PageGroup) {
        self.0.entry(group).or_default().alloc_failures += 1;
    }

    fn folded_pages(&mut self, pages: &FoldedPages) {
        let group = PageGroup { site: pages.site, origin: NO_ORIGIN, stack: NO_STACK };
        *self.0.entry(group).or_default() += &pages.totals();
    }
}
