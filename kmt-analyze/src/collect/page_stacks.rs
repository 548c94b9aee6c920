//! Pages by allocation stack.

use std::collections::HashMap;

use super::collector::{PassFacts, StateCollector};
use crate::int_hash::IntHash;
use crate::ledger::page_totals::FrameTotals;
use crate::ledger::{ClosedFrames, Interests, PageGroup, Receiver};

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
