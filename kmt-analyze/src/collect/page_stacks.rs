//! Pages by allocation stack.

use std::collections::HashMap;

use super::collector::{Collector, Share};
use super::sums::merged;
use crate::int_hash::IntHash;
use crate::ledger::page_totals::FrameTotals;
use crate::ledger::{ClosedFrames, Interests, Receiver};

/// Collects pages by stack; empty if the trace has no stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageStacks;

impl Collector for PageStacks {
    type Part = PageStackSums;
    type Output = HashMap<u32, FrameTotals, IntHash>;

    fn interests(&self) -> Interests {
        Interests::FRAMES | Interests::PAGE_STACKS
    }

    fn partition(&self, share: &Share) -> PageStackSums {
        PageStackSums { has_stacks: share.has_stacks, stacks: HashMap::default() }
    }

    /// By number of the stack; pages without one are under `NO_STACK`.
    fn merge(&self, first: PageStackSums, others: Vec<PageStackSums>) -> Self::Output {
        merged(first.stacks, others.into_iter().map(|part| part.stacks).collect())
    }
}

/// Sums by number of the stack.
#[derive(Debug)]
pub struct PageStackSums {
    has_stacks: bool,
    stacks: HashMap<u32, FrameTotals, IntHash>,
}

impl Receiver for PageStackSums {
    fn closed_frames(&mut self, closed: &ClosedFrames) {
        if self.has_stacks {
            let sums = self.stacks.entry(closed.stack).or_default();
            *sums += &closed.sums;
            sums.frames_alloc += if closed.is_born { closed.frames } else { 0 };
        }
    }
}
