//! The events that a row of folded lives is like. Apart from the chunk, which knows nothing of single events.

use super::{Event, FoldedLives, Schema};

impl<'c> FoldedLives<'c> {
    /// An event like their allocations; its time, address, CPU and task mean nothing. `None`: these are frees of NULL.
    pub fn alloc(&self, schema: &'c Schema) -> Option<Event<'c>> {
        Event::new(schema, self.events(), self.indices().0?)
    }

    /// An event like their frees; its time, address, CPU and task mean nothing.
    pub fn free(&self, schema: &'c Schema) -> Option<Event<'c>> {
        Event::new(schema, self.events(), self.indices().1)
    }
}
