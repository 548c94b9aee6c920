//! Frees without a life in the trace, by their sites.

use super::collector::StateCollector;
use super::sums::grown;
use crate::ledger::lives::{Free, NoLife};
use crate::ledger::{Interests, Receiver};

/// Collects frees without a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unmatched;

impl StateCollector for Unmatched {
    type State = UnmatchedSums;

    const INTERESTS: Interests = Interests::UNMATCHED;
}

/// Number of frees by number of the free's site.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct UnmatchedSums(pub Vec<u64>);

impl Receiver for UnmatchedSums {
    fn unmatched(&mut self, free: &Free, _: NoLife) {
        *grown(&mut self.0, free.site) += 1;
    }
}
