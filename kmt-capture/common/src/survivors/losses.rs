//! Which lives a loss of events touches: none of them is folded.

use super::nodes::Node;

/// The losses so far.
#[derive(Debug, Default)]
pub struct Losses {
    /// CPUs between whose last event and their next one events are missing.
    open: u32,
    /// Number of the first event after the last loss.
    end: u64,
    /// Time of that event.
    end_time: Option<u64>,
    /// True until that event.
    is_ending: bool,
}

impl Losses {
    /// Events of a CPU are missing from here on, until its next event.
    pub fn begin(&mut self) {
        self.open += 1;
    }

    /// The next event, with that number, is the first one after a loss. `was_begun`: the loss had its [`Losses::begin`].
    pub fn end(&mut self, seq: u64, was_begun: bool) {
        self.open -= u32::from(was_begun);
        self.end = seq;
        self.is_ending = true;
    }

    /// Enters an event.
    #[inline]
    pub fn event(&mut self, time: u64) {
        if std::mem::take(&mut self.is_ending) {
            self.end_time = self.end_time.max(Some(time));
        }
    }

    /// What is before the event of that number is treated as touched by a loss.
    pub fn touch_before(&mut self, seq: u64) {
        self.end = seq;
    }

    /// True while events are missing.
    #[inline]
    pub fn are_open(&self) -> bool {
        self.open > 0
    }

    /// True if a life that began with this event may have had events that are missing.
    #[inline]
    pub fn touch(&self, born: &Node) -> bool {
        born.seq < self.end || self.end_time.is_some_and(|end| born.time <= end)
    }
}
