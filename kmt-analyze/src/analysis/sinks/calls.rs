//! Slab objects by the call stack that allocated them, where stacks were recorded.

use std::collections::HashMap;

use super::Closed;
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
    /// By address: birth and stack.
    joined: HashMap<u64, (u64, u32), IntHash>,
}

impl Calls {
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
        self.joined.insert(address, (born, op.what.number()));
    }

    /// Another event: whatever stack follows is its own.
    pub fn other_event(&mut self, place: Origin) {
        if let Some(waiting) = self.waiting.get_mut(&place.cpu) {
            waiting.retain(|w| w.1 != place.level);
        }
    }

    /// A life is added up.
    pub fn closed(&mut self, closed: &Closed) {
        let stack = self.joined.get(&closed.address).filter(|j| j.0 == closed.life.born).map(|j| j.1);
        let sums = match stack {
            Some(stack) => self.stacks.entry(stack).or_default(),
            None => &mut self.without,
        };
        let bytes = closed.bytes_alloc;
        sums.allocs += u64::from(closed.is_born);
        sums.bytes_alloc += if closed.is_born { bytes } else { 0 };
        sums.live += u64::from(closed.is_live);
        sums.bytes_live += if closed.is_live { bytes } else { 0 };
        if stack.is_some() {
            self.joined.remove(&closed.address);
        }
    }
}
