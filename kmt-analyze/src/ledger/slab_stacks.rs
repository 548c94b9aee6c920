//! Stacks of slab objects: each follows the event of its allocation.
//!
//! A stack is an event of its own behind the allocation, on the same CPU, task and level. The stack waits here by
//! address until the life is added up, when `close` takes it. Only passes that need stacks of slab objects have it.

use std::collections::HashMap;

use crate::int_hash::IntHash;
use crate::ledger::lives::{ADDRESS_BITS, Life};
use crate::stream::Op;

/// Stacks of objects whose lives are not added up yet.
#[derive(Debug, Default)]
pub struct SlabStacks {
    /// Address and birth of the last allocation of each origin, which may get a stack.
    waiting: HashMap<u32, (u64, u64), IntHash>,
    /// Stacks by address and birth. An address may be reused before the end of its last life is known.
    stacks: HashMap<(u64, u64), u32, IntHash>,
}

impl SlabStacks {
    /// Records a slab allocation.
    pub fn alloc(&mut self, op: &Op) {
        self.waiting.insert(op.origin, (op.value & ADDRESS_BITS, op.time));
    }

    /// Records the stack of the last allocation of its origin.
    pub fn stack(&mut self, op: &Op) {
        if let Some(object) = self.waiting.remove(&op.origin) {
            self.stacks.insert(object, op.code.number());
        }
    }

    /// The last allocation of the origin was a duplicate event: it has no life.
    pub fn folded(&mut self, op: &Op) {
        self.waiting.remove(&op.origin);
    }

    /// Removes and returns the stack of a life.
    pub fn take(&mut self, address: u64, life: &Life) -> Option<u32> {
        self.stacks.remove(&(address, life.born))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::op::{Kind, OpCode};

    #[test]
    fn lives_of_one_address_keep_their_own_stacks() {
        let mut stacks = SlabStacks::default();
        let alloc = |time| Op { time, value: 0x1000, code: OpCode::new(Kind::Alloc, 0), origin: 1 };
        let stack = |number, origin| Op { code: OpCode::new(Kind::Stack, number), origin, ..Op::default() };
        stacks.alloc(&alloc(10));
        stacks.stack(&stack(3, 1));
        stacks.alloc(&alloc(20));
        stacks.stack(&stack(9, 2));
        stacks.stack(&stack(4, 1));
        stacks.alloc(&alloc(30));
        stacks.folded(&alloc(30));
        stacks.stack(&stack(5, 1));
        let mut of = |born| stacks.take(0x1000, &Life { born, site: 0, origin: 0 });
        assert_eq!([10, 20, 30, 10].map(&mut of), [Some(3), Some(4), None, None]);
        assert!(stacks.stacks.is_empty());
    }
}
