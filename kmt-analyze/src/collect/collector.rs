//! Collectors gather more than sums by site, in one part for each partition of the events.

use super::sums::{Sums, merged};
use crate::ledger::{Interests, Receiver, Rules};

/// Description of data to collect in a pass.
///
/// A pass makes one part for each partition of its events, feeds them, and merges them: the result is the same for any
/// number of parts. Equal collectors of one type share their parts.
pub trait Collector: PartialEq + 'static {
    /// Receives the events of one partition.
    type Part: Receiver + Send + 'static;
    /// Result of the pass.
    type Output: 'static;

    /// Events that its parts receive.
    const INTERESTS: Interests;

    /// Partition that receives an event.
    const ROUTE: Route = Route::Any;

    /// True if it takes as long as many others together: it gets a core of its own, or that of the ledger.
    const IS_HEAVY: bool = false;

    /// An empty part.
    fn partition(&self, share: &Share) -> Self::Part;

    /// Merges the parts, at least one, to the result.
    fn merge(&self, first: Self::Part, others: Vec<Self::Part>) -> Self::Output;
}

/// A collector whose parts are sums, and whose result is the sum of its parts.
pub trait SumCollector: PartialEq + 'static {
    /// Sums of the events of one partition, and of all.
    type Sums: Receiver + Sums + Default + Send + 'static;

    /// Events that its parts receive.
    const INTERESTS: Interests;

    /// Partition that receives an event.
    const ROUTE: Route = Route::Any;

    /// An empty part.
    fn partition(&self, _share: &Share) -> Self::Sums {
        Self::Sums::default()
    }
}

impl<C: SumCollector> Collector for C {
    type Part = C::Sums;
    type Output = C::Sums;

    const INTERESTS: Interests = <C as SumCollector>::INTERESTS;
    const ROUTE: Route = <C as SumCollector>::ROUTE;

    fn partition(&self, share: &Share) -> C::Sums {
        SumCollector::partition(self, share)
    }

    fn merge(&self, first: C::Sums, others: Vec<C::Sums>) -> C::Sums {
        merged(first, others)
    }
}

/// Distribution of events to partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Each event goes to any one part: sums do not depend on the order. Changes of one address go to one part, in
    /// order. Events of one method come in order, those of several methods one method after the other.
    Any,
    /// Each event goes to the part of its task, in order.
    Task,
    /// Each part receives all events in order, and counts its [`Share`] of them.
    All,
    /// One part receives every event: its result is a sequence, not a sum.
    Whole,
}

/// Number of a part, and the parameters of the pass.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    /// Rules of the pass.
    pub rules: Rules,
    /// True if the trace has call stacks.
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

    /// True if this part counts items with that key.
    #[inline]
    pub fn owns(&self, key: u64) -> bool {
        self.of == 1 || part_of(key, self.of) == self.index
    }
}

/// Number of the part of a key, of `of` parts.
#[inline]
pub fn part_of(key: u64, of: u32) -> u32 {
    // Multiplied by 2^64 divided by the golden ratio: neighbouring keys go to different parts.
    let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    ((mixed * u64::from(of)) >> 32) as u32
}
