//! Joins slab allocations to the call stacks that follow them.

use std::collections::HashMap;

use crate::int_hash::IntHash;
use crate::ledger::Closed;
use crate::ledger::lives::ADDRESS_BITS;
use crate::stream::Op;

/// Stacks of objects whose lives are not added up yet.
#[derive(Debug, Default)]
pub struct StackJoin {
    /// Address and birth of the last allocation of each origin, which may get a stack.
    waiting: HashMap<u32, (u64, u64), IntHash>,
    /// Stacks by address and birth. An address may be reused before the end of its last life is known.
    stacks: HashMap<(u64, u64), u32, IntHash>,
}

impl StackJoin {
    /// Records a slab allocation.
    pub fn alloc(&mut self, op: &Op) {
        self.waiting.insert(op.origin, (op.value & ADDRESS_BITS, op.time));
    }

    /// Records the stack of the last allocation of its origin, if `keeps` is true for the address.
    pub fn stack(&mut self, op: &Op, keeps: impl Fn(u64) -> bool) {
        if let Some(object) = self.waiting.remove(&op.origin).filter(|(address, _)| keeps(*address)) {
            self.stacks.insert(object, op.code.number());
        }
    }

    /// The last allocation of the origin was a duplicate event: it has no life.
    pub fn folded(&mut self, op: &Op) {
        self.waiting.remove(&op.origin);
    }

    /// Removes and returns the stack of a life.
    pub fn take(&mut self, closed: &Closed) -> Option<u32> {
        self.stacks.remove(&(closed.address, closed.life.born))
    }

    /// True if no stack is left.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }
}
