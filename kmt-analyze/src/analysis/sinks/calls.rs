//! Slab objects by the call stack that allocated them, where stacks were recorded.

use std::collections::HashMap;

use super::{Closed, Spool};
use crate::analysis::int_hash::IntHash;
use crate::stream::{Op, Origin};

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
}

/// Task, level, address and birth of what may get a stack.
type Waiting = (i32, u8, u64, u64);

/// The sink.
#[derive(Debug, Default)]
pub struct Calls {
    /// By number of the stack.
    pub stacks: HashMap<u32, CallSums, IntHash>,
    /// Objects without a stack.
    pub without: CallSums,
    /// By CPU: what may get a stack.
    waiting: HashMap<u32, Vec<Waiting>, IntHash>,
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
    pub fn slab_alloc(&mut self, op: &Op, place: Origin) {
        let waiting = self.waiting.entry(place.cpu).or_default();
        // On one level there is one event at a time.
        waiting.retain(|w| w.1 != place.level);
        waiting.push((
            place.pid,
            place.level,
            op.value & crate::analysis::ledger::lives::ADDRESS_BITS,
            op.time,
        ));
    }

    /// A stack belongs to the last event before it of the same CPU, task and level (spec section "EVNT", Stacks).
    pub fn stack(&mut self, op: &Op, place: Origin) {
        let Some(waiting) = self.waiting.get_mut(&place.cpu) else { return };
        let found = waiting.iter().position(|w| (w.0, w.1) == (place.pid, place.level));
        let Some((.., address, born)) = found.map(|at| waiting.swap_remove(at)) else { return };
        self.joined.insert((address, born), op.what.number());
    }

    /// The last allocation of the CPU reported another one again: it has no life of its own.
    pub fn folded(&mut self, place: Origin) {
        self.other_event(place);
    }

    /// Another event: whatever stack follows is its own.
    pub fn other_event(&mut self, place: Origin) {
        if let Some(waiting) = self.waiting.get_mut(&place.cpu) {
            waiting.retain(|w| w.1 != place.level);
        }
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
        sums.allocs += u64::from(closed.is_born);
        sums.bytes_alloc = sums.bytes_alloc.saturating_add(if closed.is_born { bytes } else { 0 });
        sums.live += u64::from(closed.is_live);
        sums.bytes_live = sums.bytes_live.saturating_add(if closed.is_live { bytes } else { 0 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::ledger::lives::{End, Life};
    use crate::stream::Api;
    use crate::stream::op::{Kind, What};

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
            is_unseen: false,
            is_live,
            uncertain: false,
        }
    }

    #[test]
    fn lives_of_one_address_keep_their_own_stacks() {
        let mut calls = Calls::default();
        let place = |level| Origin { cpu: 1, pid: 7, level };
        let op = |kind, value, time| Op { time, value, what: What::new(kind, value as u32 & 15), origin: 0 };
        let alloc = |calls: &mut Calls, time| calls.slab_alloc(&op(Kind::Alloc, 0x1000, time), place(0));
        alloc(&mut calls, 10);
        calls.stack(&op(Kind::Stack, 3, 10), place(0));
        // An interrupt between an event and its stack has a stack of its own, for something else.
        alloc(&mut calls, 20);
        calls.stack(&op(Kind::Stack, 9, 20), place(8));
        calls.stack(&op(Kind::Stack, 4, 20), place(0));
        alloc(&mut calls, 30);
        calls.other_event(place(0));
        calls.stack(&op(Kind::Stack, 5, 30), place(0));
        for (born, is_live) in [(10, false), (20, true), (30, true)] {
            calls.closed(&closed(0x1000, born, is_live));
        }
        let of = |stack| calls.stacks.get(&stack).map(|s: &CallSums| (s.allocs, s.bytes_live));
        assert_eq!((of(3), of(4), of(9), of(5)), (Some((1, 0)), Some((1, 64)), None, None));
        assert_eq!((calls.without.allocs, calls.without.bytes_live), (1, 64));
        assert!(calls.joined.is_empty());
    }
}
