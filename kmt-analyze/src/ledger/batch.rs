//! Events of the ledger in lists: a receiver takes many at a time, while its code and tables are in the cache.
//!
//! Frequent events have a list each. The others are values of an enum, made from the list of events in `receiver`.

use super::events::{
    AreaKind, Change, Closed, ClosedArea, ClosedFrames, FreedPlain, PageEvent, PageGroup, PlainLife,
    SideEvent,
};
use super::folded::{FoldedLives, FoldedPages};
use super::lives::{Free, NoLife};
use super::receiver::{Receiver, for_each_event};
use crate::stream::{Interests, Op, Origin};

/// Makes an enum of the events of a list: their arguments by value, and the method that each is for.
macro_rules! event_enum {
    ($enum:ident { $($(#[$doc:meta])* $name:ident $method:ident(
        $($arg:ident: $(&$ref:ident)? $($value:ident)?),*
    ) for $for:ident;)* }) => {
        /// An event, by the method of [`Receiver`] that takes it.
        #[derive(Debug, Clone, Copy)]
        enum $enum {
            $($name($($($ref)? $($value)?),*),)*
        }

        impl $enum {
            /// Receivers with any of these take it.
            fn wanted_for(&self) -> Interests {
                match self {
                    $(Self::$name(..) => Interests::$for,)*
                }
            }

            #[inline]
            fn deliver(&self, wanted: Interests, to: &mut impl Receiver) {
                if !wanted.intersects(self.wanted_for()) {
                    return;
                }
                match self {
                    $(Self::$name($($arg),*) => to.$method(
                        $($(<&$ref>::from($arg))? $(<$value>::clone($arg))?),*
                    ),)*
                }
            }
        }
    };
}
#[cfg(test)]
pub(super) use event_enum;

/// Makes the methods of a receiver that pushes each event of a list, as [`event_enum`] has it.
macro_rules! event_pushes {
    ($enum:ident { $($(#[$doc:meta])* $name:ident $method:ident(
        $($arg:ident: $(&$ref:ident)? $($value:ident)?),*
    ) for $for:ident;)* }) => {
        $(
            #[inline]
            fn $method(&mut self, $($arg: $(&$ref)? $($value)?),*) {
                self.push($enum::$name($($(<$ref>::clone($arg))? $(<$value>::from($arg))?),*));
            }
        )*
    };
}
#[cfg(test)]
pub(super) use event_pushes;

/// Events of one list of a batch: few enough to stay in the second-level cache while all receivers take them.
const FULL: usize = 1024;

/// Events, in the order in which they were decided.
#[derive(Debug, Default)]
pub struct Batch {
    /// Lists that have the next events, and the number of events of the list behind these.
    order: Vec<(List, usize)>,
    /// List of the last events.
    last: List,
    closed: Vec<Closed>,
    freed: Vec<FreedPlain>,
    changes: Vec<Change>,
    frames: Vec<ClosedFrames>,
    others: Vec<Event>,
    /// Needed by a receiver of any of the others.
    others_for: Interests,
}

/// List of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum List {
    #[default]
    Closed,
    Freed,
    Changes,
    Frames,
    Others,
}

macro_rules! others {
    ({ $($own:tt)* } { $($others:tt)* }) => {
        event_enum!(Event { $($others)* });
    };
}
for_each_event!(others);

impl Batch {
    /// Removes all events; the memory stays.
    pub fn clear(&mut self) {
        self.order.clear();
        self.closed.clear();
        self.freed.clear();
        self.changes.clear();
        self.frames.clear();
        self.others.clear();
        self.others_for = Interests::empty();
    }

    /// Delivers the events that a receiver of `wanted` needs: in order, or those of each method in order.
    pub fn deliver(&self, wanted: Interests, in_order: bool, to: &mut impl Receiver) {
        let closed = wanted.intersects(Interests::ANY_LIVES) && !self.closed.is_empty();
        let freed = wanted.contains(Interests::PLAIN_LIVES) && !self.freed.is_empty();
        let changes = wanted.contains(Interests::CHANGES) && !self.changes.is_empty();
        let frames = wanted.contains(Interests::FRAMES) && !self.frames.is_empty();
        let others = wanted.intersects(self.others_for);
        if in_order && [closed, freed, changes, frames, others].into_iter().filter(|list| *list).count() > 1 {
            return self.deliver_in_order([closed, freed, changes, frames], wanted, to);
        }
        if closed {
            self.closed.iter().for_each(|closed| to.closed(closed));
        }
        if freed {
            self.freed.iter().for_each(|freed| to.freed_plain(freed));
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
        [lives, frees, changed, framed]: [bool; 4],
        wanted: Interests,
        to: &mut impl Receiver,
    ) {
        let [mut closed, mut freed, mut changes, mut frames, mut others] = [0; 5];
        for &(list, end) in self.order.iter().chain([&(self.last, usize::MAX)]) {
            // A list that is not wanted stays as it is.
            match list {
                List::Closed if lives => part(&self.closed, &mut closed, end).for_each(|c| to.closed(c)),
                List::Freed if frees => part(&self.freed, &mut freed, end).for_each(|f| to.freed_plain(f)),
                List::Changes if changed => {
                    part(&self.changes, &mut changes, end).for_each(|c| to.changed(c))
                }
                List::Frames if framed => {
                    part(&self.frames, &mut frames, end).for_each(|f| to.closed_frames(f))
                }
                List::Others => {
                    part(&self.others, &mut others, end).for_each(|event| event.deliver(wanted, to))
                }
                List::Closed | List::Freed | List::Changes | List::Frames => {}
            }
        }
    }

    /// Makes a list that of the last events.
    #[inline(never)]
    fn switch(&mut self, to: List) {
        let end = match self.last {
            List::Closed => self.closed.len(),
            List::Freed => self.freed.len(),
            List::Changes => self.changes.len(),
            List::Frames => self.frames.len(),
            List::Others => self.others.len(),
        };
        self.order.push((std::mem::replace(&mut self.last, to), end));
    }
}

/// Events of a list that are not delivered yet, up to `end`.
fn part<'e, T>(list: &'e [T], done: &mut usize, end: usize) -> std::slice::Iter<'e, T> {
    let from = std::mem::replace(done, end.min(list.len()));
    list.get(from..*done).unwrap_or_default().iter()
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

    /// Adds an event to one of the lists.
    #[inline]
    fn add<T>(&mut self, list: List, event: T, list_of: impl FnOnce(&mut Batch) -> &mut Vec<T>) {
        if self.batch.last != list {
            self.batch.switch(list);
        }
        let events = list_of(&mut self.batch);
        events.push(event);
        if events.len() >= FULL {
            (self.take)(&mut self.batch);
        }
    }

    fn push(&mut self, event: Event) {
        self.batch.others_for |= event.wanted_for();
        self.add(List::Others, event, |batch| &mut batch.others);
    }
}

macro_rules! push_others {
    ({ $($own:tt)* } { $($others:tt)* }) => {
        event_pushes!(Event { $($others)* });
    };
}

impl<F: FnMut(&mut Batch)> Receiver for Batched<F> {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        self.add(List::Closed, *closed, |batch| &mut batch.closed);
    }

    #[inline]
    fn freed_plain(&mut self, freed: &FreedPlain) {
        self.add(List::Freed, *freed, |batch| &mut batch.freed);
    }

    #[inline]
    fn changed(&mut self, change: &Change) {
        self.add(List::Changes, *change, |batch| &mut batch.changes);
    }

    #[inline]
    fn closed_frames(&mut self, closed: &ClosedFrames) {
        self.add(List::Frames, *closed, |batch| &mut batch.frames);
    }

    for_each_event!(push_others);
}
