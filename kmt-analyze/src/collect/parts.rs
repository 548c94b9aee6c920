//! Parts of one partition: each event goes only to the parts that need it.

use std::any::Any;

use crate::ledger::lives::{Free, Life, NoLife};
use crate::ledger::{
    AreaKind, Change, Closed, ClosedArea, ClosedFrames, Interests, PageEvent, PlainLife, Receiver, SideEvent,
};
use crate::stream::{Op, Origin};

/// Parts, and for each kind of event the indices of its receivers.
#[derive(Default)]
pub struct Parts {
    parts: Vec<Box<dyn AnyPart>>,
    lives: Vec<usize>,
    plain_lives: Vec<usize>,
    changes: Vec<usize>,
    slab_allocs: Vec<usize>,
    unmatched: Vec<usize>,
    pages: Vec<usize>,
    frames: Vec<usize>,
    areas: Vec<usize>,
    side_events: Vec<usize>,
}

impl Parts {
    /// Parts with their events.
    pub(super) fn new(parts: impl Iterator<Item = (Interests, Box<dyn AnyPart>)>) -> Self {
        let mut out = Self::default();
        for (origin, (interests, part)) in parts.enumerate() {
            let lists = [
                (&mut out.lives, interests.intersects(Interests::ANY_LIVES)),
                (&mut out.plain_lives, interests.contains(Interests::PLAIN_LIVES)),
                (&mut out.changes, interests.contains(Interests::CHANGES)),
                (&mut out.slab_allocs, interests.contains(Interests::SLAB_ALLOCS)),
                (&mut out.unmatched, interests.contains(Interests::UNMATCHED)),
                (&mut out.pages, interests.contains(Interests::PAGES)),
                (&mut out.frames, interests.contains(Interests::FRAMES)),
                (&mut out.areas, interests.contains(Interests::AREAS)),
                (&mut out.side_events, interests.intersects(Interests::ANY_SIDE_EVENTS)),
            ];
            lists.into_iter().filter(|(_, wanted)| *wanted).for_each(|(list, _)| list.push(origin));
            out.parts.push(part);
        }
        out
    }

    pub(super) fn into_parts(self) -> Vec<Box<dyn AnyPart>> {
        self.parts
    }
}

/// A part of any type.
pub(super) trait AnyPart: Receiver {
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<R: Receiver + 'static> AnyPart for R {
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Passes an event to the parts of a list.
macro_rules! hand {
    ($self:ident, $list:ident, $($call:tt)+) => {
        for &origin in &$self.$list {
            if let Some(part) = $self.parts.get_mut(origin) {
                part.$($call)+;
            }
        }
    };
}

impl Receiver for Parts {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        hand!(self, lives, closed(closed));
    }

    #[inline]
    fn freed_plain(&mut self, caller: u32, life: &Life, free: &Free, plain: PlainLife) {
        hand!(self, plain_lives, freed_plain(caller, life, free, plain));
    }

    fn implied_free_plain(&mut self, caller: u32, life: &Life, end: u64, plain: PlainLife) {
        hand!(self, plain_lives, implied_free_plain(caller, life, end, plain));
    }

    fn closed_frames(&mut self, closed: &ClosedFrames) {
        hand!(self, frames, closed_frames(closed));
    }

    fn unmatched(&mut self, free: &Free, no_life: NoLife) {
        hand!(self, unmatched, unmatched(free, no_life));
    }

    fn freed_unknown(&mut self, address: u64, free: &Free) {
        hand!(self, unmatched, freed_unknown(address, free));
    }

    #[inline]
    fn changed(&mut self, change: &Change<'_>) {
        hand!(self, changes, changed(change));
    }

    fn slab_alloc(&mut self, op: &Op, origin: Origin, counted: bool) {
        hand!(self, slab_allocs, slab_alloc(op, origin, counted));
    }

    fn page_alloc(&mut self, event: &PageEvent<'_>) {
        hand!(self, pages, page_alloc(event));
    }

    fn page_free(&mut self, event: &PageEvent<'_>) {
        hand!(self, pages, page_free(event));
    }

    fn closed_area(&mut self, closed: &ClosedArea) {
        hand!(self, areas, closed_area(closed));
    }

    fn area_failed(&mut self, kind: AreaKind, origin: u32) {
        hand!(self, areas, area_failed(kind, origin));
    }

    fn area_freed_unknown(&mut self, kind: AreaKind, origin: u32) {
        hand!(self, areas, area_freed_unknown(kind, origin));
    }

    fn side_event(&mut self, event: &SideEvent) {
        hand!(self, side_events, side_event(event));
    }
}
