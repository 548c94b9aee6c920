//! Page events that wait until it is known whether a stack follows.

use std::collections::VecDeque;

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
    /// A free.
    Free {
        /// First frame.
        pfn: u64,
        /// log2 of the number of pages.
        order: u32,
    },
}

/// Events in their order.
#[derive(Debug, Default)]
pub struct PageQueue {
    /// Event, CPU, whether it waits for its stack.
    items: VecDeque<(Waiting, u32, bool)>,
}

/// More than any CPU's worth of events between an event and its stack.
const WAITING_MAX: usize = 65_536;

impl PageQueue {
    /// An event of that CPU happened: nothing of it waits any longer.
    pub fn happened(&mut self, cpu: u32) {
        self.items.iter_mut().filter(|(_, c, _)| *c == cpu).for_each(|(_, _, waits)| *waits = false);
    }

    /// Adds a page event.
    pub fn push(&mut self, event: Waiting, cpu: u32, has_stacks: bool) {
        let waits = has_stacks && matches!(event, Waiting::Alloc { .. });
        self.items.push_back((event, cpu, waits));
    }

    /// The stack of the last allocation on that CPU, if it waits for one.
    pub fn stack(&mut self, cpu: u32, addresses: Vec<u64>) {
        let mut waiting = self.items.iter_mut().rev().filter(|(_, c, waits)| *c == cpu && *waits);
        if let Some((Waiting::Alloc { stack, .. }, _, waits)) = waiting.next() {
            *stack = addresses;
            *waits = false;
        }
    }

    /// The next event that waits for nothing; at the end, any.
    pub fn pop(&mut self, is_end: bool) -> Option<Waiting> {
        let is_due = is_end || self.items.len() > WAITING_MAX;
        self.items.front().filter(|(_, _, waits)| is_due || !*waits)?;
        self.items.pop_front().map(|(event, _, _)| event)
    }
}
