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

/// CPU and level of an event.
pub type Place = (u32, u64);

/// Events in their order.
#[derive(Debug, Default)]
pub struct PageQueue {
    /// Event, and where its stack may still come from.
    items: VecDeque<(Waiting, Option<Place>)>,
    /// Number of the first of them.
    first: u64,
}

/// More than any CPU's worth of events between an event and its stack.
const WAITING_MAX: usize = 65_536;

impl PageQueue {
    /// An event happened there: nothing of that place waits any longer.
    pub fn happened(&mut self, place: Place) {
        self.items.iter_mut().filter(|(_, p)| *p == Some(place)).for_each(|(_, p)| *p = None);
    }

    /// Events of that CPU were lost.
    pub fn lost(&mut self, cpu: u32) {
        self.items.iter_mut().filter(|(_, p)| p.is_some_and(|p| p.0 == cpu)).for_each(|(_, p)| *p = None);
    }

    /// The number of the event that is pushed next.
    pub fn next_number(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    /// Adds a page event; with a place if a stack may follow there.
    pub fn push(&mut self, event: Waiting, place: Option<Place>) {
        self.items.push_back((event, place));
    }

    /// The stack of the event of that number.
    pub fn stack(&mut self, number: u64, addresses: Vec<u64>) {
        let at = number.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
        if let Some((Waiting::Alloc { stack, .. }, place)) = at.and_then(|at| self.items.get_mut(at)) {
            *stack = addresses;
            *place = None;
        }
    }

    /// The next event that waits for nothing; at the end, any.
    pub fn pop(&mut self, is_end: bool) -> Option<Waiting> {
        let is_due = is_end || self.items.len() > WAITING_MAX;
        self.items.front().filter(|(_, place)| is_due || place.is_none())?;
        self.first += 1;
        self.items.pop_front().map(|(event, _)| event)
    }
}
