//! A collector: what is to be gathered beside sums by site, in as many parts as there are partitions.

use crate::ledger::{Interests, Receiver, Rules};

/// Describes what is to be gathered in a pass.
///
/// A pass makes one part for each partition of its events, feeds them, and merges them: the result is the same for any
/// number of parts. Two collectors of one type that are equal ask for the same, and share their parts.
pub trait Collector: PartialEq + 'static {
    /// Receives the events of one partition.
    type Part: Receiver + 'static;
    /// Result of the pass.
    type Output: 'static;

    /// Events that its parts receive.
    fn interests(&self) -> Interests;

    /// Which partition receives which event.
    fn route(&self) -> Route {
        Route::Any
    }

    /// An empty part.
    fn partition(&self, share: &Share) -> Self::Part;

    /// The result of all parts, which are one or more.
    fn merge(&self, first: Self::Part, others: Vec<Self::Part>) -> Self::Output;
}

/// Which partition receives which event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Each event goes to one part, whichever: they add up in any order. Changes of one address go to one part, in order.
    Any,
    /// Each event goes to the part of its task, in order.
    Task,
    /// Each part receives every event in order, and counts its [`Share`] of them.
    All,
    /// One part receives every event: its result is a sequence, not a sum.
    Whole,
}

/// A part among its like, and what the rules of the ledger depend on.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    /// Rules of the pass.
    pub rules: Rules,
    /// The trace has call stacks.
    pub has_stacks: bool,
    /// Number of the part, from 0.
    pub index: u32,
    /// Number of parts.
    pub of: u32,
}

impl Share {
    /// The only part.
    pub fn whole(rules: Rules, has_stacks: bool) -> Self {
        Self { rules, has_stacks, index: 0, of: 1 }
    }

    /// True if this part counts what has that key.
    #[inline]
    pub fn owns(&self, key: u64) -> bool {
        self.of == 1 || part_of(key, self.of) == self.index
    }
}

/// Number of the part of a key, of so many.
#[inline]
pub fn part_of(key: u64, of: u32) -> u32 {
    // Multiplied by 2^64 divided by the golden ratio: neighbours go to different parts.
    let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    ((mixed * u64::from(of)) >> 32) as u32
}
