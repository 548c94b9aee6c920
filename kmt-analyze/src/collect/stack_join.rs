//! Joins slab allocations with the call stacks that follow them.

use std::collections::HashMap;

use crate::int_hash::IntHash;
use crate::ledger::Closed;
use crate::ledger::lives::ADDRESS_BITS;
use crate::stream::Op;

/// Stacks of objects whose lives are not added up yet.
#[derive(Debug, Default)]
pub struct StackJoin {
    /// By number of the origin: address and birth of its last allocation, which may get a stack.
    waiting: HashMap<u32, (u64, u64), IntHash>,
    /// By address and birth: the stack. An address may have a next life before the end of the last one is known.
    joined: HashMap<(u64, u64), u32, IntHash>,
}

impl StackJoin {
    /// A slab object is allocated.
    pub fn alloc(&mut self, op: &Op) {
        self.waiting.insert(op.origin, (op.value & ADDRESS_BITS, op.time));
    }

    /// The stack of the last allocation of its origin; kept for the addresses that `keeps` names.
    pub fn stack(&mut self, op: &Op, keeps: impl Fn(u64) -> bool) {
        if let Some(object) = self.waiting.remove(&op.origin).filter(|(address, _)| keeps(*address)) {
            self.joined.insert(object, op.code.number());
        }
    }

    /// The last allocation of the origin reported another one again: it has no life of its own.
    pub fn folded(&mut self, op: &Op) {
        self.waiting.remove(&op.origin);
    }

    /// The number of the stack of a life, once.
    pub fn take(&mut self, closed: &Closed) -> Option<u32> {
        self.joined.remove(&(closed.address, closed.life.born))
    }

    /// True if no life is left.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.joined.is_empty()
    }
}
