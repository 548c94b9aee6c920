//! Failed allocations of pages, by kind and allocating origin: those of a task are left out by them.

use std::collections::HashMap;

use super::collector::StateCollector;
use crate::int_hash::IntHash;
use crate::ledger::{Interests, PageGroup, Receiver};

/// Collects failed allocations of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFailures;

impl StateCollector for PageFailures {
    type State = PageFailureSums;

    const INTERESTS: Interests = Interests::FRAMES;
}

/// Failures by the numbers of their kind and of their origin.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PageFailureSums(pub HashMap<(u32, u32), u64, IntHash>);

impl Receiver for PageFailureSums {
    fn page_failed(&mut self, group: PageGroup) {
        *self.0.entry((group.site, group.origin)).or_default() += 1;
    }
}
