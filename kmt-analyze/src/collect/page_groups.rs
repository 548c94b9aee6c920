//! Sums of pages by kind, allocating origin and stack: sums by any property of a page allocation are made of them.

use std::collections::HashMap;

use super::collector::StateCollector;
use crate::int_hash::IntHash;
pub use crate::ledger::PageGroup;
use crate::ledger::page_totals::FrameTotals;
use crate::ledger::{ClosedFrames, Interests, Receiver};

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
}
