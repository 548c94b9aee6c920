//! Slab objects by their allocation stack, if stacks were recorded.

use std::collections::HashMap;

use super::collector::{PassFacts, StateCollector};
use crate::int_hash::IntHash;
use crate::ledger::{Closed, Interests, Receiver};

/// Collects slab objects by allocation stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// Time at which objects count as live; `None`: the end of the window.
    pub until: Option<u64>,
    /// True if live objects count only where they were allocated in the window.
    pub is_of_window: bool,
}

impl StateCollector for Calls {
    type State = CallSums;

    const INTERESTS: Interests = Interests::LIVES.union(Interests::SLAB_STACKS);

    fn begin(&self, _: &PassFacts) -> CallSums {
        CallSums { of: *self, ..CallSums::default() }
    }
}

/// Sums of one stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StackSums {
    /// Objects allocated.
    pub allocs: u64,
    /// Bytes allocated.
    pub bytes_alloc: u64,
    /// Objects live at the end.
    pub live: u64,
    /// Bytes live at the end.
    pub bytes_live: u64,
    /// Number of the call site and interface, the highest one if there are several.
    pub caller: Option<u32>,
}

/// Sums by stack.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CallSums {
    of: Calls,
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
        let (bytes, is_live) = (closed.bytes_alloc, closed.is_live_at(self.of.until));
        let is_live = is_live && (closed.is_born || !self.of.is_of_window);
        sums.allocs += u64::from(closed.is_born);
        sums.bytes_alloc = sums.bytes_alloc.saturating_add(if closed.is_born { bytes } else { 0 });
        sums.live += u64::from(is_live);
        sums.bytes_live = sums.bytes_live.saturating_add(if is_live { bytes } else { 0 });
        sums.caller = sums.caller.max(Some(closed.caller));
    }
}
