//! What reports collect beyond sums by site. All of them are fed by one pass; what no report wants costs nothing.

pub mod histogram;
pub mod lifetimes;
pub mod peak;
pub mod reasons;
pub mod tasks;
pub mod timeline;
pub mod who;

use super::ledger::lives::{End, Free, Life};
use super::page_totals::FrameTotals;
use crate::stream::{NameId, Origin};
pub use lifetimes::Lifetimes;
pub use peak::Peak;
pub use reasons::Reasons;
pub use tasks::Tasks;
pub use timeline::Timeline;
pub use who::Who;

/// A slab life that is added up.
#[derive(Debug, Clone, Copy)]
pub struct Closed {
    /// Address, low 56 bits.
    pub address: u64,
    /// The life.
    pub life: Life,
    /// Its end.
    pub end: End,
    /// Cache, where an event tells it.
    pub cache: Option<NameId>,
    /// Number of the call site and interface.
    pub caller: u32,
    /// Bytes asked for.
    pub bytes_req: u64,
    /// Bytes handed out.
    pub bytes_alloc: u64,
    /// CPU and task that allocated it.
    pub born_at: Origin,
    /// Born in the window.
    pub is_born: bool,
    /// Freed in the window.
    pub is_freed: bool,
    /// Found gone in the window.
    pub is_unseen: bool,
    /// Alive at the window's end.
    pub is_live: bool,
    /// Crosses a loss, or its free is ambiguous.
    pub uncertain: bool,
}

/// Frames of one allocation that are added up.
#[derive(Debug, Clone, Copy)]
pub struct ClosedFrames {
    /// Time of the allocation.
    pub born: u64,
    /// Number of its kind.
    pub site: u32,
    /// Number of its CPU and task.
    pub origin: u32,
    /// When they ended, and whether by a free; `None` if they did not.
    pub end: Option<(u64, bool)>,
    /// Allocated in the window.
    pub is_born: bool,
    /// How many.
    pub frames: u64,
    /// What counts of them.
    pub sums: FrameTotals,
}

/// What the reports of a run want.
#[derive(Debug, Default)]
pub struct Sinks {
    /// Distributions of lifetimes.
    pub lifetimes: Option<Lifetimes>,
    /// Sums by task.
    pub tasks: Option<Tasks>,
    /// Live bytes and rates over time.
    pub timeline: Option<Timeline>,
    /// When most bytes were live, and whose.
    pub peak: Option<Peak>,
    /// All lives near an address.
    pub who: Option<Who>,
    /// Bytes by what showed their end.
    pub reasons: Option<Reasons>,
    /// Pages by call stack.
    pub stacks: bool,
}

impl Sinks {
    /// Whether anything wants to see each life. Lifetimes alone do not: of plain ones they need only a few numbers.
    #[inline]
    pub fn wants_lives(&self) -> bool {
        self.tasks.is_some() || self.timeline.is_some() || self.who.is_some() || self.reasons.is_some()
    }

    /// Whether [`Sinks::closed_frames`] does anything.
    #[inline]
    pub fn wants_frames(&self) -> bool {
        self.tasks.is_some() || self.timeline.is_some()
    }

    /// Whether page allocations are to be joined with their stacks.
    #[inline]
    pub fn wants_stacks(&self) -> bool {
        self.stacks
    }

    /// A life is added up.
    #[inline]
    pub fn closed(&mut self, closed: &Closed) {
        if let Some(lifetimes) = &mut self.lifetimes {
            lifetimes.closed(closed);
        }
        if let Some(tasks) = &mut self.tasks {
            tasks.closed(closed);
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.closed(closed);
        }
        if let Some(reasons) = &mut self.reasons {
            reasons.closed(closed);
        }
        if let Some(who) = &mut self.who {
            who.closed(closed);
        }
    }

    /// Frames are added up.
    pub fn closed_frames(&mut self, closed: &ClosedFrames) {
        if let Some(tasks) = &mut self.tasks {
            tasks.closed_frames(closed);
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.closed_frames(closed);
        }
    }

    /// A free ended no life that the trace knows.
    pub fn unmatched(&mut self, free: &Free) {
        if let Some(tasks) = &mut self.tasks {
            tasks.unmatched(free);
        }
        if let Some(lifetimes) = &mut self.lifetimes {
            lifetimes.unmatched(free);
        }
    }
}

/// The element of that number of a vector that grows with the numbers.
#[inline]
fn grown<T: Default>(items: &mut Vec<T>, number: u32) -> &mut T {
    let number = number as usize;
    if items.len() <= number {
        items.resize_with((number + 1).next_power_of_two(), T::default);
    }
    &mut items[number]
}
