//! Interface of the receivers of ledger events, and the list of the events, from which it is made.
//!
//! The macro `for_each_event` has the list: methods of the trait, the enum of batches and the tests are made of it, so
//! that a new event is added in one place. The ledger is generic over its receiver; collectors implement the methods
//! that they declare as interests.

use super::events::{
    AreaKind, Change, Closed, ClosedArea, ClosedFrames, FreedPlain, PageEvent, PageGroup, PlainLife,
    SideEvent,
};
use super::folded::{FoldedLives, FoldedPages};
use super::lives::{Free, NoLife};
use crate::stream::{Op, Origin};

/// Calls the macro `$then` with the list of the events: first the frequent ones, then the others. Of each: its name, the
/// method that takes it, and the [`Interests`](super::Interests) of which a receiver needs one.
macro_rules! for_each_event {
    ($then:ident) => {
        $then! {
            {
                /// A life is added up.
                Closed closed(closed: &Closed) for ANY_LIVES;
                /// A life ended by its free, if nothing is filtered out and no receiver needs each life.
                FreedPlain freed_plain(freed: &FreedPlain) for PLAIN_LIVES;
                /// An object begins or ends.
                Changed changed(change: &Change) for CHANGES;
                /// Frames are added up.
                Frames closed_frames(closed: &ClosedFrames) for FRAMES;
            }
            {
                /// A life ended by an implied free, at `end` at the latest, under the same conditions.
                ImpliedFreePlain implied_free_plain(plain: &PlainLife, end: u64) for PLAIN_LIVES;
                /// A slab object is about to be allocated, or the allocation failed: the first of its task after pages or a side
                /// event. `counted`: selected, and in the window; others may come before the first that is.
                SlabAlloc slab_alloc(op: &Op, origin: Origin, counted: bool) for SLAB_ALLOCS;
                /// A counted free without a life in the trace.
                Unmatched unmatched(address: u64, free: &Free, no_life: NoLife) for UNMATCHED;
                /// Any free without a life, also outside the window.
                FreedUnknown freed_unknown(address: u64, free: &Free) for UNMATCHED;
                /// Pages were allocated, or the allocation failed.
                PageAlloc page_alloc(event: &PageEvent) for PAGES;
                /// Pages are freed.
                PageFree page_free(event: &PageEvent) for PAGES;
                /// A counted page allocation failed; some time later than the event, if it may have a stack.
                PageFailed page_failed(group: PageGroup) for FRAMES;
                /// An area is added up.
                Area closed_area(closed: &ClosedArea) for AREAS;
                /// An allocation of an area failed.
                AreaFailed area_failed(kind: AreaKind, origin: u32) for AREAS;
                /// A free of an area without an allocation in the trace.
                AreaFreedUnknown area_freed_unknown(kind: AreaKind, origin: u32) for AREAS;
                /// Lives that are in the file as sums: each is plain, and all of it is in one interval.
                Folded folded(lives: &FoldedLives) for ANY_LIVES;
                /// A number of these lives whose lengths are in one bucket of a histogram.
                FoldedBucket folded_bucket(lives: &FoldedLives, bucket: u32, count: u64) for ANY_LIVES;
                /// Pages that are in the file as sums.
                FoldedPages folded_pages(pages: &FoldedPages) for FRAMES;
                /// A number of these pages' allocations whose lengths are in one bucket of a histogram.
                FoldedPagesBucket folded_pages_bucket(pages: &FoldedPages, bucket: u32, count: u64) for FRAMES;
                /// A side event.
                Side side_event(event: &SideEvent) for ANY_SIDE_EVENTS;
            }
        }
    };
}
pub(crate) use for_each_event;

macro_rules! receiver {
    ($({ $($(#[$doc:meta])* $name:ident $method:ident($($arg:ident: $type:ty),*) for $for:ident;)* })*) => {
        /// Receives the events of the ledger, in the order in which they are decided; a collector that is not
        /// [`IN_ORDER`](crate::collect::Collector::IN_ORDER) has only those of each method in that order.
        ///
        /// Only events in [`Interests`](super::Interests) are delivered. `()` receives none.
        pub trait Receiver {
            $($(
                $(#[$doc])*
                fn $method(&mut self, $($arg: $type),*) {
                    let _ = ($($arg,)*);
                }
            )*)*
        }
    };
}
for_each_event!(receiver);

impl Receiver for () {}
