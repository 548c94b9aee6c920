//! Page events that wait until it is known whether a stack follows.

use std::collections::{BTreeMap, VecDeque};

/// A page event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {
    /// An allocation; frame, or none if it failed; order, migrate type, flags; addresses of its stack.
    Alloc {
        /// First frame.
        pfn: Option<u64>,
        /// Order, migrate type, flags.
        key: (u32, u32, u32),
        /// The stack, innermost first.
        stack: Vec<u64>,
    },
    Free {
        /// First frame.
        pfn: u64,
        /// log2 of the number of pages.
        order: u32,
    },
}

/// CPU and level of an event.
pub type CpuAndLevel = (u32, u64);

/// Events in their order.
#[derive(Debug, Default)]
pub struct PageQueue {
    /// Events, and whether their stacks may still come.
    items: VecDeque<(Waiting, bool)>,
    /// Number of the first of them.
    first: u64,
    /// By CPU and level, the number of the event whose stack may still come there: one at a time.
    waiting: BTreeMap<CpuAndLevel, u64>,
}

/// More than any CPU's worth of events between an event and its stack.
const WAITING_MAX: usize = 65_536;

impl PageQueue {
    /// An event happened there: nothing of that level of the CPU waits any longer.
    pub fn happened(&mut self, level: CpuAndLevel) {
        if let Some(number) = self.waiting.remove(&level) {
            self.has_all(number);
        }
    }

    /// Events of that CPU were lost.
    pub fn lost(&mut self, cpu: u32) {
        while let Some((&level, _)) = self.waiting.range((cpu, 0)..=(cpu, u64::MAX)).next() {
            self.happened(level);
        }
    }

    fn at(&mut self, number: u64) -> Option<&mut (Waiting, bool)> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.items.get_mut(at)
    }

    /// No stack of that event comes any more.
    fn has_all(&mut self, number: u64) {
        if let Some((_, waits)) = self.at(number) {
            *waits = false;
        }
    }

    /// The number of the event that is pushed next.
    pub fn next_number(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    /// Adds a page event; with its level if a stack may follow there.
    pub fn push(&mut self, event: Waiting, level: Option<CpuAndLevel>) {
        if let Some(level) = level {
            self.happened(level);
            self.waiting.insert(level, self.next_number());
        }
        self.items.push_back((event, level.is_some()));
    }

    /// The stack of the event of that number.
    pub fn stack(&mut self, number: u64, addresses: Vec<u64>) {
        if let Some((Waiting::Alloc { stack, .. }, waits)) = self.at(number) {
            *stack = addresses;
            *waits = false;
        }
    }

    /// The next event that waits for nothing; at the end, any.
    pub fn pop(&mut self, is_end: bool) -> Option<Waiting> {
        let is_due = is_end || self.items.len() > WAITING_MAX;
        self.items.front().filter(|(_, waits)| is_due || !waits)?;
        self.first += 1;
        self.items.pop_front().map(|(event, _)| event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alloc(pfn: u64) -> Waiting {
        Waiting::Alloc { pfn: Some(pfn), key: (0, 0, 0), stack: Vec::new() }
    }

    #[test]
    fn events_wait_for_the_stack_of_their_place() {
        let mut queue = PageQueue::default();
        let number = queue.next_number();
        queue.push(alloc(1), Some((0, 7)));
        queue.push(alloc(2), Some((1, 7)));
        queue.push(Waiting::Free { pfn: 9, order: 0 }, None);
        assert_eq!(queue.pop(false), None, "the first one waits");
        queue.stack(number, vec![5]);
        assert_eq!(queue.pop(false), Some(Waiting::Alloc { pfn: Some(1), key: (0, 0, 0), stack: vec![5] }));
        assert_eq!(queue.pop(false), None);
        queue.lost(0);
        assert_eq!(queue.pop(false), None, "another CPU's loss");
        queue.lost(1);
        assert_eq!(queue.pop(false), Some(alloc(2)));
        assert_eq!(queue.pop(false), Some(Waiting::Free { pfn: 9, order: 0 }));
        queue.push(alloc(3), Some((0, 7)));
        queue.push(alloc(4), Some((0, 7)));
        assert_eq!((queue.pop(false), queue.pop(false)), (Some(alloc(3)), None), "one at a time");
        assert_eq!((queue.pop(true), queue.pop(true)), (Some(alloc(4)), None));
    }
}
