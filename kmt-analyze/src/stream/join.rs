//! Joins stacks to allocations, for all reports and exports.
//!
//! A stack belongs to the last event before it of the same CPU, task and level, unless a loss is between them (spec
//! section "EVNT", Stacks). All events pass here, also those that no report needs, so a stack in the stream belongs to
//! the last allocation of that kind of its origin.

use kmt_format::read::StackJoiner;

use super::intern::Origin;
use super::op::{Kind, OpCode};
use super::side_events::SideEventKind;

/// Kind of allocation that a stack belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackOf {
    /// An allocation of a slab object.
    Slab,
    /// An allocation of pages.
    Pages,
    /// An allocation of a vmalloc area, or of the percpu allocator.
    Area,
}

impl StackOf {
    /// Value in an operation.
    pub fn value(self) -> u64 {
        self as u64
    }

    /// Kind from the value of an operation.
    #[inline]
    pub fn of(value: u64) -> Self {
        match value {
            value if value == Self::Slab as u64 => Self::Slab,
            value if value == Self::Pages as u64 => Self::Pages,
            _ => Self::Area,
        }
    }
}

/// Allocations of each CPU that can get a stack.
#[derive(Debug, Default)]
pub struct StackJoin(StackJoiner<Option<StackOf>>);

impl StackJoin {
    /// Records a loss on a CPU.
    pub fn gap(&mut self, cpu: u32) {
        self.0.gap(cpu);
    }

    /// Adds an event of any kind. For a stack: the kind of allocation that it belongs to, if any.
    pub fn see(&mut self, code: OpCode, origin: Origin) -> Option<StackOf> {
        let kind = code.kind();
        let of = match kind {
            Kind::Alloc => Some(StackOf::Slab),
            Kind::PageAlloc => Some(StackOf::Pages),
            Kind::SideEvent => {
                let allocates = SideEventKind::of(code.number()).is_some_and(SideEventKind::allocates_area);
                allocates.then_some(StackOf::Area)
            }
            _ => None,
        };
        self.0.see_at(origin.cpu, origin.pid, origin.level.into(), kind == Kind::Stack, of).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_belongs_to_the_last_event_of_its_cpu_task_and_level() {
        let mut join = StackJoin::default();
        let origin = |cpu, pid, level| Origin { cpu, pid, level, ..Origin::default() };
        let (slab, pages, free) =
            (OpCode::new(Kind::Alloc, 1), OpCode::new(Kind::PageAlloc, 1), OpCode::new(Kind::Kfree, 1));
        let stack = OpCode::new(Kind::Stack, 1);
        let mut see = |code, origin| join.see(code, origin);
        see(slab, origin(1, 7, 0));
        assert_eq!(see(stack, origin(1, 7, 0)), Some(StackOf::Slab));
        assert_eq!(see(stack, origin(1, 7, 0)), None, "one stack for one event");
        // An interrupt between an event and its stack, with its own stack.
        see(pages, origin(1, 7, 0));
        see(free, origin(1, 7, 8));
        assert_eq!(see(stack, origin(1, 7, 8)), None, "it is the free's");
        assert_eq!(see(stack, origin(1, 7, 0)), Some(StackOf::Pages));
        let area = OpCode::new(Kind::SideEvent, SideEventKind::VmallocAlloc as u32);
        see(area, origin(1, 7, 0));
        assert_eq!(see(stack, origin(1, 7, 0)).map(StackOf::value).map(StackOf::of), Some(StackOf::Area));
        // Other events, also those that no report needs.
        for other in [free, OpCode::OTHER, OpCode::new(Kind::SideEvent, 3)] {
            see(slab, origin(1, 7, 0));
            see(other, origin(1, 7, 0));
            assert_eq!(see(stack, origin(1, 7, 0)), None, "{other:?}");
        }
        see(slab, origin(1, 7, 0));
        assert_eq!(see(stack, origin(2, 7, 0)), None, "another CPU");
        assert_eq!(see(stack, origin(1, 8, 0)), None, "another task");
        see(slab, origin(1, 8, 0));
        assert_eq!(see(stack, origin(1, 7, 0)), None, "its task had been switched away from");
        see(slab, origin(1, 7, 0));
        join.gap(1);
        assert_eq!(join.see(stack, origin(1, 7, 0)), None, "a loss stands between");
    }
}
