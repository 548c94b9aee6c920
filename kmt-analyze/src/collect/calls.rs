//! Slab objects by their allocation stack, if stacks were recorded.

use std::collections::HashMap;

use super::collector::{Share, SumCollector};
use super::sums::{Sums, sums};
use crate::int_hash::IntHash;
use crate::ledger::{Closed, Interests, Receiver};

/// Collects slab objects by allocation stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// Time at which objects count as live; `None`: the end of the window.
    pub until: Option<u64>,
}

impl SumCollector for Calls {
    type Sums = CallSums;

    const INTERESTS: Interests = Interests::LIVES.union(Interests::SLAB_STACKS);

    fn partition(&self, _: &Share) -> CallSums {
        CallSums { until: self.until, ..CallSums::default() }
    }
}

/// Sums of one stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StackSums {
    /// Objects allocated.
    pub allocs: u64,
    /// Bytes of them.
    pub bytes_alloc: u64,
    /// Objects live at the end.
    pub live: u64,
    /// Bytes of those.
    pub bytes_live: u64,
    /// Number of the call site and interface, the last one if there are several.
    pub caller: Option<u32>,
}

/// Sums by stack.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CallSums {
    until: Option<u64>,
    /// By number of the stack.
    pub stacks: HashMap<u32, StackSums, IntHash>,
    /// Objects without a stack.
    pub without: StackSums,
}

impl Receiver for CallSums {
    fn closed(&mut self, closed: &Closed) {
        let sums = match closed.stack {
            Some(stack) => self.stacks.entry(stack).or_default(),
            None => &mut self.without,
        };
        let (bytes, is_live) = (closed.bytes_alloc, closed.is_live_at(self.until));
        sums.absorb(StackSums {
            allocs: u64::from(closed.is_born),
            bytes_alloc: if closed.is_born { bytes } else { 0 },
            live: u64::from(is_live),
            bytes_live: if is_live { bytes } else { 0 },
            caller: Some(closed.caller),
        });
    }
}

impl Sums for StackSums {
    #[inline]
    fn absorb(&mut self, other: Self) {
        self.allocs.absorb(other.allocs);
        self.bytes_alloc.absorb(other.bytes_alloc);
        self.live.absorb(other.live);
        self.bytes_live.absorb(other.bytes_live);
        // The caller with the highest number; `None` is lower than any.
        self.caller = self.caller.max(other.caller);
    }
}

sums!(CallSums: stacks, without);
