//! Migrate types of the live pages of each pageblock.

use std::collections::HashMap;

use super::collector::{Collector, PassFacts};
use crate::int_hash::IntHash;
use crate::ledger::{ClosedFrames, Interests, PageEvent, Receiver, SideEvent};
use crate::stream::SideEventKind;

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
    /// Frame of the last fallback of each CPU: the next allocation there is no vote for the type of its block.
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

    /// Records a fallback: the next allocation is no vote, unless the block changes its type.
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
