//! Interface of the receivers of ledger events, and the list of events that they need.

use super::events::{Change, Closed, ClosedFrames, PageEvent, SideEvent};
use super::lives::{Free, Life, NoLife};
use crate::stream::{Op, Origin};

/// Events that a receiver needs; the others are not delivered and cost nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Interests {
    /// Each life when it is added up: [`Receiver::closed`].
    pub lives: bool,
    /// The same, if [`Receiver::freed_plainly`] and [`Receiver::implied_free_plainly`] are enough for a plain life: the ledger
    /// adds those up faster.
    pub plain_lives: bool,
    /// Births and ends at once: [`Receiver::changed`].
    pub changes: bool,
    /// Slab allocations before the ledger enters them: [`Receiver::slab_alloc`].
    pub slab_allocs: bool,
    /// Slab allocations with their stacks: [`Receiver::slab_alloc`], [`Receiver::slab_stack`], [`Receiver::folded`]. No
    /// effect if the trace has no stacks.
    pub slab_stacks: bool,
    /// Frees without a life: [`Receiver::unmatched`], [`Receiver::freed_unknown`].
    pub unmatched: bool,
    /// Page events as they occur: [`Receiver::page_alloc`], [`Receiver::page_free`].
    pub pages: bool,
    /// Frames when they are added up: [`Receiver::closed_frames`].
    pub frames: bool,
    /// Live frames with slab objects are marked.
    pub slab_frames: bool,
    /// Frames have the number of their stack. No effect if the trace has no stacks.
    pub page_stacks: bool,
    /// Other events of the page allocator: [`Receiver::side_event`].
    pub page_side_events: bool,
    /// Reclaim, compaction, function graphs: [`Receiver::side_event`].
    pub stalls: bool,
    /// Starts and exits of tasks: [`Receiver::side_event`].
    pub tasks: bool,
}

impl Interests {
    /// Events that either needs.
    pub fn and(self, other: Self) -> Self {
        Self {
            lives: self.lives || other.lives,
            plain_lives: self.plain_lives || other.plain_lives,
            changes: self.changes || other.changes,
            slab_allocs: self.slab_allocs || other.slab_allocs,
            slab_stacks: self.slab_stacks || other.slab_stacks,
            unmatched: self.unmatched || other.unmatched,
            pages: self.pages || other.pages,
            frames: self.frames || other.frames,
            slab_frames: self.slab_frames || other.slab_frames,
            page_stacks: self.page_stacks || other.page_stacks,
            page_side_events: self.page_side_events || other.page_side_events,
            stalls: self.stalls || other.stalls,
            tasks: self.tasks || other.tasks,
        }
    }

    /// Those that a trace without stacks can have.
    pub fn without_stacks(self) -> Self {
        Self { slab_stacks: false, page_stacks: false, ..self }
    }

    /// True if [`Receiver::closed`] is called.
    pub fn any_lives(&self) -> bool {
        self.lives || self.plain_lives
    }

    /// True if [`Receiver::slab_alloc`] is called.
    pub fn any_slab_allocs(&self) -> bool {
        self.slab_allocs || self.slab_stacks
    }

    /// True if [`Receiver::side_event`] is called.
    pub fn any_side_events(&self) -> bool {
        self.page_side_events || self.stalls || self.tasks
    }
}

/// Receives the events of the ledger, in the order in which they are decided.
///
/// Only events in [`Interests`] are delivered. `()` receives none.
pub trait Receiver {
    /// A life is added up.
    fn closed(&mut self, _closed: &Closed) {}

    /// A life ended by its free, if nothing is filtered out and [`Interests::lives`] is false. `caller` is the number
    /// of its call site.
    fn freed_plainly(
        &mut self,
        _caller: u32,
        _life: &Life,
        _free: &Free,
        _bytes_alloc: u64,
        _uncertain: bool,
    ) {
    }

    /// The same for an implied free.
    fn implied_free_plainly(&mut self, _caller: u32, _uncertain: bool) {}

    /// Frames are added up.
    fn closed_frames(&mut self, _closed: &ClosedFrames) {}

    /// A counted free without a life in the trace.
    fn unmatched(&mut self, _free: &Free, _no_life: NoLife) {}

    /// Any free without a life, also outside the window.
    fn freed_unknown(&mut self, _address: u64, _free: &Free) {}

    /// An object begins or ends.
    fn changed(&mut self, _change: &Change<'_>) {}

    /// A slab object is about to be allocated, or the allocation failed. `counted`: selected, and in the window.
    fn slab_alloc(&mut self, _op: &Op, _place: Origin, _counted: bool) {}

    /// The call stack of the last slab allocation of its origin.
    fn slab_stack(&mut self, _op: &Op) {}

    /// The last slab allocation was a duplicate event of one object.
    fn folded(&mut self, _op: &Op) {}

    /// Pages were allocated, or the allocation failed.
    fn page_alloc(&mut self, _event: &PageEvent<'_>) {}

    /// Pages are freed.
    fn page_free(&mut self, _event: &PageEvent<'_>) {}

    /// A side event.
    fn side_event(&mut self, _event: &SideEvent) {}
}

impl Receiver for () {}
