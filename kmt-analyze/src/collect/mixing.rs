//! Which pageblocks hold live pages of which migrate types.

use std::collections::HashMap;

use crate::int_hash::IntHash;
use crate::ledger::{ClosedFrames, Noted, PageEvent};
use crate::stream::NoteKind;

/// Migrate types that are told apart: all that kernels of 4.4 to 7.2 have.
pub const TYPES: usize = 8;

/// Pages by pageblock.
#[derive(Debug)]
pub struct Mixing {
    /// log2 of the pages of a pageblock.
    pub pageblock_order: u32,
    /// By block: allocations that were served from it without falling back, by type. The type of most is the block's.
    votes: HashMap<u64, [u32; TYPES], IntHash>,
    /// Frame of the last fallback, by CPU: the allocation that follows tells nothing of its block's type.
    fallback: HashMap<u32, u64, IntHash>,
    /// Allocations of which pages are live: block, kind, CPU and task, pages.
    pub live: Vec<LivePages>,
}

/// Live pages of one allocation.
#[derive(Debug, Clone, Copy)]
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

impl Mixing {
    /// For pageblocks of that order.
    pub fn new(pageblock_order: u32) -> Self {
        Self { pageblock_order, votes: HashMap::default(), fallback: HashMap::default(), live: Vec::new() }
    }

    /// Pages were allocated.
    pub fn page_alloc(&mut self, event: &PageEvent<'_>) {
        if event.failed || u32::from(event.site.order) >= self.pageblock_order {
            return;
        }
        let pfn = event.op.value;
        if self.fallback.get(&event.place.cpu) == Some(&pfn) {
            self.fallback.remove(&event.place.cpu);
            return;
        }
        let votes = self.votes.entry(pfn >> self.pageblock_order).or_default();
        let slot = usize::try_from(event.site.migratetype).ok().and_then(|t| votes.get_mut(t));
        if let Some(slot) = slot {
            *slot = slot.saturating_add(1);
        }
    }

    /// A fallback: the allocation that follows is no vote, unless the block changes hands.
    pub fn note(&mut self, noted: &Noted) {
        if noted.kind != NoteKind::Fallback {
            return;
        }
        let [pfn, _, _, alloc_type, _, change_ownership] = noted.numbers;
        let Some(pfn) = pfn else { return };
        let new_type = alloc_type.filter(|_| change_ownership.is_some_and(|c| c != 0));
        let Some(new_type) = new_type else {
            self.fallback.insert(noted.place.cpu, pfn);
            return;
        };
        let mut votes = [0; TYPES];
        if let Some(slot) = usize::try_from(new_type).ok().and_then(|t| votes.get_mut(t)) {
            *slot = 1;
        }
        self.votes.insert(pfn >> self.pageblock_order, votes);
    }

    /// Frames are added up.
    pub fn closed_frames(&mut self, closed: &ClosedFrames) {
        if closed.sums.frames_live > 0 {
            let block = closed.pfn >> self.pageblock_order;
            let frames = closed.sums.frames_live;
            self.live.push(LivePages { block, site: closed.site, origin: closed.origin, frames });
        }
    }

    /// The type of a block by most of what was served from it; `None` if nothing was, or it is a draw.
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
