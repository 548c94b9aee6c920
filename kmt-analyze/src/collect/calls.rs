//! Slab objects by their allocation stack, if stacks were recorded.

use std::collections::HashMap;

use super::collector::{Collector, Route, Share};
use super::stack_join::StackJoin;
use super::sums::{Sums, merged};
use crate::int_hash::IntHash;
use crate::ledger::{Closed, Interests, Receiver};
use crate::stream::{Op, Origin};

/// Collects slab objects by allocation stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// Time at which objects count as live; `None`: the end of the window.
    pub until: Option<u64>,
}

impl Collector for Calls {
    type Part = CallsPart;
    type Output = CallSums;

    fn interests(&self) -> Interests {
        Interests::LIVES | Interests::SLAB_STACKS
    }

    /// A stack follows its allocation on the same task; lives are routed by address.
    fn route(&self) -> Route {
        Route::All
    }

    fn partition(&self, share: &Share) -> CallsPart {
        CallsPart { until: self.until, share: *share, join: StackJoin::default(), sums: CallSums::default() }
    }

    fn merge(&self, first: CallsPart, others: Vec<CallsPart>) -> CallSums {
        merged(first.sums, others.into_iter().map(|part| part.sums).collect())
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
    /// By number of the stack.
    pub stacks: HashMap<u32, StackSums, IntHash>,
    /// Objects without a stack.
    pub without: StackSums,
}

/// Objects of the addresses of one part.
#[derive(Debug)]
pub struct CallsPart {
    until: Option<u64>,
    share: Share,
    join: StackJoin,
    sums: CallSums,
}

impl Receiver for CallsPart {
    fn slab_alloc(&mut self, op: &Op, _: Origin, _: bool) {
        self.join.alloc(op);
    }

    fn slab_stack(&mut self, op: &Op) {
        let share = &self.share;
        self.join.stack(op, |address| share.owns(address));
    }

    fn folded(&mut self, op: &Op) {
        self.join.folded(op);
    }

    fn closed(&mut self, closed: &Closed) {
        if !self.share.owns(closed.address) {
            return;
        }
        let sums = match self.join.take(closed) {
            Some(stack) => self.sums.stacks.entry(stack).or_default(),
            None => &mut self.sums.without,
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

impl Sums for CallSums {
    fn absorb(&mut self, other: Self) {
        self.stacks.absorb(other.stacks);
        self.without.absorb(other.without);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::lives::{End, Life};
    use crate::stream::Api;
    use crate::stream::op::{Kind, OpCode};

    fn closed(address: u64, born: u64, is_live: bool) -> Closed {
        Closed {
            address,
            life: Life { born, site: 0, origin: 0 },
            end: End::Live,
            cache: None,
            caller: 0,
            api: Api::Kmalloc,
            bytes_req: 60,
            bytes_alloc: 64,
            born_at: Origin::default(),
            freed_at: None,
            is_born: true,
            is_freed: !is_live,
            is_waiting: false,
            is_implied_free: false,
            is_live,
            uncertain: false,
        }
    }

    #[test]
    fn lives_of_one_address_keep_their_own_stacks() {
        let mut calls = Calls::default().partition(&Share::whole(crate::collect::tests::rules(), true));
        let op = |kind, value, time, origin| Op {
            time,
            value,
            code: OpCode::new(kind, value as u32 & 15),
            origin,
        };
        let alloc = |calls: &mut CallsPart, time| {
            calls.slab_alloc(&op(Kind::Alloc, 0x1000, time, 1), Origin::default(), true)
        };
        let stack = |calls: &mut CallsPart, number, origin| {
            calls.slab_stack(&Op { code: OpCode::new(Kind::Stack, number), origin, ..Op::default() });
        };
        alloc(&mut calls, 10);
        stack(&mut calls, 3, 1);
        alloc(&mut calls, 20);
        stack(&mut calls, 9, 2);
        stack(&mut calls, 4, 1);
        alloc(&mut calls, 30);
        calls.folded(&op(Kind::Alloc, 0x1000, 30, 1));
        stack(&mut calls, 5, 1);
        for (born, is_live) in [(10, false), (20, true), (30, true)] {
            calls.closed(&closed(0x1000, born, is_live));
        }
        let of = |stack| calls.sums.stacks.get(&stack).map(|s: &StackSums| (s.allocs, s.bytes_live));
        assert_eq!((of(3), of(4), of(9), of(5)), (Some((1, 0)), Some((1, 64)), None, None));
        assert_eq!((calls.sums.without.allocs, calls.sums.without.bytes_live), (1, 64));
        assert!(calls.join.is_empty());
    }
}
