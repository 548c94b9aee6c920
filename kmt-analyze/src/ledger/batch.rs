//! Events of the ledger in lists: a receiver takes many at a time, while its code and tables are in the cache.

use super::events::{
    AreaKind, Change, Closed, ClosedArea, ClosedFrames, PageEvent, PageGroup, PlainLife, SideEvent,
};
use super::lives::{Free, Life, NoLife};
use super::receiver::Receiver;
use crate::stream::{Interests, Op, Origin};

/// Events of a batch: few enough to stay in the second-level cache while all receivers take them.
const FULL: usize = 1024;

/// Events, in the order in which they were decided.
#[derive(Debug, Default)]
pub struct Batch {
    order: Vec<List>,
    closed: Vec<Closed>,
    changes: Vec<Change>,
    frames: Vec<ClosedFrames>,
    others: Vec<Event>,
    /// Needed by a receiver of any of the others.
    others_for: Interests,
}

/// List that has the next event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    Closed,
    Changes,
    Frames,
    Others,
}

/// An event, by the method of [`Receiver`] that takes it.
#[derive(Debug, Clone, Copy)]
enum Event {
    FreedPlain(u32, Life, Free, PlainLife),
    ImpliedFreePlain(u32, Life, u64, PlainLife),
    SlabAlloc(Op, Origin, bool),
    Unmatched(Free, NoLife),
    FreedUnknown(u64, Free),
    PageAlloc(PageEvent),
    PageFree(PageEvent),
    PageFailed(PageGroup),
    Area(ClosedArea),
    AreaFailed(AreaKind, u32),
    AreaFreedUnknown(AreaKind, u32),
    Side(SideEvent),
}

impl Event {
    /// Receivers with any of these take it.
    fn wanted_for(&self) -> Interests {
        match self {
            Self::FreedPlain(..) | Self::ImpliedFreePlain(..) => Interests::PLAIN_LIVES,
            Self::SlabAlloc(..) => Interests::SLAB_ALLOCS,
            Self::Unmatched(..) | Self::FreedUnknown(..) => Interests::UNMATCHED,
            Self::PageAlloc(_) | Self::PageFree(_) => Interests::PAGES,
            Self::PageFailed(_) => Interests::FRAMES,
            Self::Area(_) | Self::AreaFailed(..) | Self::AreaFreedUnknown(..) => Interests::AREAS,
            Self::Side(_) => Interests::ANY_SIDE_EVENTS,
        }
    }

    #[inline]
    fn deliver(&self, wanted: Interests, to: &mut impl Receiver) {
        if !wanted.intersects(self.wanted_for()) {
            return;
        }
        match self {
            Self::FreedPlain(caller, life, free, plain) => to.freed_plain(*caller, life, free, *plain),
            Self::ImpliedFreePlain(caller, life, end, plain) => {
                to.implied_free_plain(*caller, life, *end, *plain);
            }
            Self::SlabAlloc(op, origin, counted) => to.slab_alloc(op, *origin, *counted),
            Self::Unmatched(free, no_life) => to.unmatched(free, *no_life),
            Self::FreedUnknown(address, free) => to.freed_unknown(*address, free),
            Self::PageAlloc(event) => to.page_alloc(event),
            Self::PageFree(event) => to.page_free(event),
            Self::PageFailed(group) => to.page_failed(*group),
            Self::Area(closed) => to.closed_area(closed),
            Self::AreaFailed(kind, origin) => to.area_failed(*kind, *origin),
            Self::AreaFreedUnknown(kind, origin) => to.area_freed_unknown(*kind, *origin),
            Self::Side(event) => to.side_event(event),
        }
    }
}

impl Batch {
    /// Removes all events; the memory stays.
    pub fn clear(&mut self) {
        self.order.clear();
        self.closed.clear();
        self.changes.clear();
        self.frames.clear();
        self.others.clear();
        self.others_for = Interests::empty();
    }

    /// Delivers the events that a receiver of `wanted` needs: in order, or those of each method in order.
    pub fn deliver(&self, wanted: Interests, in_order: bool, to: &mut impl Receiver) {
        let closed = wanted.intersects(Interests::ANY_LIVES) && !self.closed.is_empty();
        let changes = wanted.contains(Interests::CHANGES) && !self.changes.is_empty();
        let frames = wanted.contains(Interests::FRAMES) && !self.frames.is_empty();
        let others = wanted.intersects(self.others_for);
        if in_order && [closed, changes, frames, others].into_iter().filter(|list| *list).count() > 1 {
            return self.deliver_in_order([closed, changes, frames], wanted, to);
        }
        if closed {
            self.closed.iter().for_each(|closed| to.closed(closed));
        }
        if changes {
            self.changes.iter().for_each(|change| to.changed(change));
        }
        if frames {
            self.frames.iter().for_each(|frames| to.closed_frames(frames));
        }
        if others {
            self.others.iter().for_each(|event| event.deliver(wanted, to));
        }
    }

    fn deliver_in_order(
        &self,
        [lives, changed, framed]: [bool; 3],
        wanted: Interests,
        to: &mut impl Receiver,
    ) {
        let (mut closed, mut changes) = (self.closed.iter(), self.changes.iter());
        let (mut frames, mut others) = (self.frames.iter(), self.others.iter());
        for list in &self.order {
            match list {
                List::Closed => closed.next().filter(|_| lives).into_iter().for_each(|c| to.closed(c)),
                List::Changes => changes.next().filter(|_| changed).into_iter().for_each(|c| to.changed(c)),
                List::Frames => {
                    frames.next().filter(|_| framed).into_iter().for_each(|f| to.closed_frames(f))
                }
                List::Others => others.next().into_iter().for_each(|event| event.deliver(wanted, to)),
            }
        }
    }
}

/// Receiver that gathers events into batches.
pub struct Batched<F> {
    batch: Batch,
    take: F,
}

impl<F: FnMut(&mut Batch)> Batched<F> {
    /// `take` gets each batch, and leaves an empty one.
    pub fn new(take: F) -> Self {
        Self { batch: Batch::default(), take }
    }

    /// Gives up the last batch.
    pub fn finish(mut self) {
        (self.take)(&mut self.batch);
    }

    #[inline]
    fn added(&mut self, list: List) {
        self.batch.order.push(list);
        if self.batch.order.len() >= FULL {
            (self.take)(&mut self.batch);
        }
    }

    fn push(&mut self, event: Event) {
        self.batch.others_for |= event.wanted_for();
        self.batch.others.push(event);
        self.added(List::Others);
    }
}

impl<F: FnMut(&mut Batch)> Receiver for Batched<F> {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        self.batch.closed.push(*closed);
        self.added(List::Closed);
    }

    #[inline]
    fn changed(&mut self, change: &Change) {
        self.batch.changes.push(*change);
        self.added(List::Changes);
    }

    #[inline]
    fn freed_plain(&mut self, caller: u32, life: &Life, free: &Free, plain: PlainLife) {
        self.push(Event::FreedPlain(caller, *life, *free, plain));
    }

    fn implied_free_plain(&mut self, caller: u32, life: &Life, end: u64, plain: PlainLife) {
        self.push(Event::ImpliedFreePlain(caller, *life, end, plain));
    }

    fn slab_alloc(&mut self, op: &Op, origin: Origin, counted: bool) {
        self.push(Event::SlabAlloc(*op, origin, counted));
    }

    fn unmatched(&mut self, free: &Free, no_life: NoLife) {
        self.push(Event::Unmatched(*free, no_life));
    }

    fn freed_unknown(&mut self, address: u64, free: &Free) {
        self.push(Event::FreedUnknown(address, *free));
    }

    fn page_alloc(&mut self, event: &PageEvent) {
        self.push(Event::PageAlloc(*event));
    }

    fn page_free(&mut self, event: &PageEvent) {
        self.push(Event::PageFree(*event));
    }

    fn page_failed(&mut self, group: PageGroup) {
        self.push(Event::PageFailed(group));
    }

    fn closed_frames(&mut self, closed: &ClosedFrames) {
        self.batch.frames.push(*closed);
        self.added(List::Frames);
    }

    fn closed_area(&mut self, closed: &ClosedArea) {
        self.push(Event::Area(*closed));
    }

    fn area_failed(&mut self, kind: AreaKind, origin: u32) {
        self.push(Event::AreaFailed(kind, origin));
    }

    fn area_freed_unknown(&mut self, kind: AreaKind, origin: u32) {
        self.push(Event::AreaFreedUnknown(kind, origin));
    }

    fn side_event(&mut self, event: &SideEvent) {
        self.push(Event::Side(*event));
    }
}
