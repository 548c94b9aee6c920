//! Events of large kmallocs that a later event reports again: sums leave them out.
//!
//! The allocation counts once, at the second event, as in reports (R4 of the ledger). That an event is followed by another one
//! is known behind it only, so events are read once before they are written.

use kmt_format::read::{DuplicateKmallocs, Merge, Trace};
use kmt_format::schema::Meaning;

/// Events of a window, or all.
pub fn merge_within<'t, 'd>(trace: &'t Trace<'d>, window: Option<(u64, u64)>) -> Merge<'t, 'd> {
    match window {
        Some((first, last)) => trace.merge_between(first, last),
        None => trace.merge(),
    }
}

/// First events of the pairs in a part of a trace.
#[derive(Debug, Default)]
pub struct FirstEvents {
    /// Numbers of these events in the order of events, ascending.
    numbers: Vec<u64>,
    /// Number of them until now.
    passed: usize,
    /// Number of events until now.
    events: u64,
}

impl FirstEvents {
    /// Finds those in a window.
    pub fn within(trace: &Trace<'_>, window: Option<(u64, u64)>) -> Self {
        if trace.schema().classes().all(|(_, class)| class.meaning != Meaning::KMALLOC) {
            return Self::default();
        }
        let mut duplicates = DuplicateKmallocs::new(trace);
        let (mut numbers, mut number) = (Vec::new(), 0);
        let mut merge = merge_within(trace, window);
        while let Some(run) = merge.next_run() {
            for event in run.events() {
                numbers.extend(duplicates.see(&event, number));
                number += 1;
            }
        }
        numbers.sort_unstable();
        Self { numbers, ..Self::default() }
    }

    /// True if the next event is one of them. To be called for each event of the same window, in order.
    pub fn is_next(&mut self) -> bool {
        let is_first = self.numbers.get(self.passed) == Some(&self.events);
        self.passed += usize::from(is_first);
        self.events += 1;
        is_first
    }
}
