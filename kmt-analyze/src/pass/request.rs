//! Input of a pass.

use super::selection::Selection;
use crate::collect::Collectors;

bitflags::bitflags! {
    /// Needs of a pass besides sums by site and those of its collectors.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct Needs: u8 {
        /// Counts of all events by class and origin.
        const EVENT_COUNTS = 1;
        /// Totals as ranges, where events were lost.
        const RANGES = 1 << 1;
        /// Names of tasks at the time of each event.
        const TASK_NAMES = 1 << 2;
        /// Names of caches by frees after the window too, where allocations do not name them: the pass reads to the end.
        /// Bounds of live objects need them, too: objects of a cache whose frees all have events are live if they seem so.
        const CACHE_NAMES = 1 << 3;
        /// Names of allocation flags.
        const FLAG_NAMES = 1 << 4;
        /// Ends after the window too: the pass reads to the end.
        const LATER_ENDS = 1 << 5;
        /// Cgroups of tasks at the time of each event.
        const CGROUPS = 1 << 6;
    }
}

/// Input of a pass: events to count, and results to compute.
#[derive(Debug, Clone, Copy)]
pub struct Request<'r> {
    /// Selected events.
    pub selection: &'r Selection,
    /// Collectors besides sums by site.
    pub collectors: &'r Collectors,
    /// Further needs.
    pub needs: Needs,
}

impl<'r> Request<'r> {
    /// A request for collectors.
    pub fn new(selection: &'r Selection, collectors: &'r Collectors) -> Self {
        Self { selection, collectors, needs: Needs::empty() }
    }

    /// This request with further needs.
    pub fn with(self, needs: Needs) -> Self {
        Self { needs: self.needs | needs, ..self }
    }
}
