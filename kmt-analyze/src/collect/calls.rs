//! Slab objects by the call stack that allocated them, where stacks were recorded.

use std::collections::HashMap;

use super::Spool;
use crate::int_hash::IntHash;
use crate::ledger::Closed;
use crate::ledger::lives::ADDRESS_BITS;
use crate::stream::Op;

/// Sums of one stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallSums {
    /// Objects allocated.
    pub allocs: u64,
    /// Bytes of them.
    pub bytes_alloc: u64,
    /// Objects live at the end.
    pub live: u64,
    /// Bytes of those.
    pub bytes_live: u64,
    /// Number of the call site and interface.
    pub caller: u32,
}

/// The sink.
#[derive(Debug, Default)]
pub struct Calls {
    /// By number of the stack.
    pub stacks: HashMap<u32, CallSums, IntHash>,
    /// Objects without a stack.
    pub without: CallSums,
    /// By number of the origin: address and birth of its last allocation, which may get a stack.
    waiting: HashMap<u32, (u64, u64), IntHash>,
    /// By address and birth: the stack. An address may have a next life before the end of the last one is known.
    joined: HashMap<(u64, u64), u32, IntHash>,
    /// Where each life goes, if somebody wants them all.
    pub spool: Option<Spool>,
}

impl Calls {
    /// That also puts each life into a spool.
    pub fn keeping(spool: Option<Spool>) -> Self {
        Self { spool, ..Self::default() }
    }

    /// A slab object is allocated.
    pub fn slab_alloc(&mut self, op: &Op) {
        self.waiting.insert(op.origin, (op.value & ADDRESS_BITS, op.time));
    }

    /// The stack of the last allocation of its origin.
    pub fn stack(&mut self, op: &Op) {
        if let Some(object) = self.waiting.remove(&op.origin) {
            self.joined.insert(object, op.what.number());
        }
    }

    /// The last allocation of the origin reported another one again: it has no life of its own.
    pub fn folded(&mut self, op: &Op) {
        self.waiting.remove(&op.origin);
    }

    /// A life is added up.
    pub fn closed(&mut self, closed: &Closed) {
        let stack = self.joined.remove(&(closed.address, closed.life.born));
        if let Some(spool) = &mut self.spool {
            spool.push(closed, stack);
        }
        let sums = match stack {
            Some(stack) => self.stacks.entry(stack).or_default(),
            None => &mut self.without,
        };
        let bytes = closed.bytes_alloc;
        sums.caller = closed.caller;
        sums.allocs += u64::from(closed.is_born);
        sums.bytes_alloc = sums.bytes_alloc.saturating_add(if closed.is_born { bytes } else { 0 });
        sums.live += u64::from(closed.is_live);
        sums.bytes_live = sums.bytes_live.saturating_add(if closed.is_live { bytes } else { 0 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::lives::{End, Life};
    use crate::stream::op::{Kind, What};
    use crate::stream::{Api, Origin};

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
            is_unseen: false,
            is_live,
            uncertain: false,
        }
    }

    #[test]
    fn lives_of_one_address_keep_their_own_stacks() {
        let mut calls = Calls::default();
        let op =
            |kind, value, time, origin| Op { time, value, what: What::new(kind, value as u32 & 15), origin };
        let alloc = |calls: &mut Calls, time| calls.slab_alloc(&op(Kind::Alloc, 0x1000, time, 1));
        let stack = |calls: &mut Calls, number, origin| {
            calls.stack(&Op { what: What::new(Kind::Stack, number), origin, ..Op::default() });
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
        let of = |stack| calls.stacks.get(&stack).map(|s: &CallSums| (s.allocs, s.bytes_live));
        assert_eq!((of(3), of(4), of(9), of(5)), (Some((1, 0)), Some((1, 64)), None, None));
        assert_eq!((calls.without.allocs, calls.without.bytes_live), (1, 64));
        assert!(calls.joined.is_empty());
    }
}
