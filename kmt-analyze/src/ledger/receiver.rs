//! Interface of the receivers of ledger events.

use super::events::{
    AreaKind, Change, Closed, ClosedArea, ClosedFrames, PageEvent, PageGroup, PlainLife, SideEvent,
};
use super::lives::{Free, Life, NoLife};
use crate::stream::{Op, Origin};

/// Receives the events of the ledger, in the order in which they are decided; a collector whose
/// [`Route`](crate::collect::Route) is `Any` has only those of each method in that order.
///
/// Only events in [`Interests`](super::Interests) are delivered. `()` receives none.
pub trait Receiver {
    /// A life is added up.
    fn closed(&mut self, _closed: &Closed) {}

    /// A life ended by its free, if nothing is filtered out and no receiver needs each life. `caller` is the number
    /// of its call site.
    fn freed_plain(&mut self, _caller: u32, _life: &Life, _free: &Free, _plain: PlainLife) {}

    /// The same for an implied free, at `_end` at the latest.
    fn implied_free_plain(&mut self, _caller: u32, _life: &Life, _end: u64, _plain: PlainLife) {}

    /// Frames are added up.
    fn closed_frames(&mut self, _closed: &ClosedFrames) {}

    /// A counted page allocation failed; some time later than the event, if it may have a stack.
    fn page_failed(&mut self, _group: PageGroup) {}

    /// A counted free without a life in the trace.
    fn unmatched(&mut self, _free: &Free, _no_life: NoLife) {}

    /// Any free without a life, also outside the window.
    fn freed_unknown(&mut self, _address: u64, _free: &Free) {}

    /// An object begins or ends.
    fn changed(&mut self, _change: &Change) {}

    /// A slab object is about to be allocated, or the allocation failed: the first of its task after pages or a side event.
    /// `counted`: selected, and in the window; others may come before the first that is.
    fn slab_alloc(&mut self, _op: &Op, _origin: Origin, _counted: bool) {}

    /// Pages were allocated, or the allocation failed.
    fn page_alloc(&mut self, _event: &PageEvent) {}

    /// Pages are freed.
    fn page_free(&mut self, _event: &PageEvent) {}

    /// An area is added up.
    fn closed_area(&mut self, _closed: &ClosedArea) {}

    /// An allocation of an area failed.
    fn area_failed(&mut self, _kind: AreaKind, _origin: u32) {}

    /// A free of an area without an allocation in the trace.
    fn area_freed_unknown(&mut self, _kind: AreaKind, _origin: u32) {}

    /// A side event.
    fn side_event(&mut self, _event: &SideEvent) {}
}

impl Receiver for () {}
