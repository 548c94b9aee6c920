//! Frees without a life in the trace, by their sites.

use super::collector::{Collector, Share};
use super::sums::{grown, merged};
use crate::ledger::lives::{Free, NoLife};
use crate::ledger::{Interests, Receiver};

/// Collects frees without a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unmatched;

impl Collector for Unmatched {
    type Part = UnmatchedSums;
    type Output = Vec<u64>;

    fn interests(&self) -> Interests {
        Interests::UNMATCHED
    }

    fn partition(&self, _: &Share) -> UnmatchedSums {
        UnmatchedSums::default()
    }

    /// Number of frees by number of the free's site.
    fn merge(&self, first: UnmatchedSums, others: Vec<UnmatchedSums>) -> Vec<u64> {
        merged(first.0, others.into_iter().map(|part| part.0).collect())
    }
}

/// Frees of one part.
#[derive(Debug, Default)]
pub struct UnmatchedSums(Vec<u64>);

impl Receiver for UnmatchedSums {
    fn unmatched(&mut self, free: &Free, _: NoLife) {
        *grown(&mut self.0, free.site) += 1;
    }
}
