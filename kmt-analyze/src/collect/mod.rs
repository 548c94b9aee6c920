//! What reports collect beyond sums by site. All of them are fed by one pass; what no report wants costs nothing.

pub mod amount;
pub mod calls;
pub mod crossing;
pub mod fallbacks;
pub mod growth;
pub mod histogram;
pub mod lifetimes;
pub mod mixing;
pub mod moments;
pub mod occupancy;
pub mod oddities;
pub mod page_use;
pub mod peak;
pub mod reasons;
pub mod replay;
pub mod spool;
pub mod stalls;
pub mod tasks;
pub mod timeline;
pub mod who;

use crate::ledger::lives::{Free, Life, NoLife};
use crate::ledger::{Change, Closed, ClosedFrames, Collector, Noted, PageEvent, Rules};
use crate::stream::{NotesWanted, Op, Origin};
pub use calls::Calls;
pub use crossing::Crossing;
pub use fallbacks::Fallbacks;
pub use growth::Growth;
pub use lifetimes::Lifetimes;
pub use mixing::Mixing;
pub use moments::Moments;
pub use occupancy::Occupancy;
pub use oddities::Oddities;
pub use page_use::PageUse;
pub use peak::Peak;
pub use reasons::Reasons;
pub use replay::Replay;
pub use spool::{Object, Objects, Spool};
pub use stalls::Stalls;
pub use tasks::Tasks;
pub use timeline::Timeline;
pub use who::Who;

/// What the reports of a run want.
#[derive(Debug, Default)]
pub struct Sinks {
    /// Distributions of lifetimes.
    pub lifetimes: Option<Lifetimes>,
    /// Sums by task.
    pub tasks: Option<Tasks>,
    /// Live bytes and rates over time.
    pub timeline: Option<Timeline>,
    /// Live objects at given times.
    pub moments: Option<Moments>,
    /// When most bytes were live, and whose.
    pub peak: Option<Peak>,
    /// All lives near an address.
    pub who: Option<Who>,
    /// Bytes by what showed their end.
    pub reasons: Option<Reasons>,
    /// Pages by call stack.
    pub stacks: bool,
    /// Slab objects by call stack.
    pub calls: Option<Calls>,
    /// Slab objects on their pages.
    pub occupancy: Option<Occupancy>,
    /// Pages by pageblock.
    pub mixing: Option<Mixing>,
    /// Page allocations that fell back to another migrate type.
    pub fallbacks: Option<Fallbacks>,
    /// What tasks did to the page allocator.
    pub page_use: Option<PageUse>,
    /// Reclaim, compaction, function graphs.
    pub stalls: Option<Stalls>,
    /// What stays, over time.
    pub growth: Option<Growth>,
    /// Objects freed on another CPU.
    pub crossing: Option<Crossing>,
    /// What should not be, or looks so.
    pub oddities: Option<Oddities>,
    /// The trace played to other size classes.
    pub replay: Option<Replay>,
    /// The trace has no stacks: nothing needs to wait for one.
    pub no_stacks: bool,
}

impl Sinks {
    /// Which events beside the ledger are wanted.
    pub fn wants_notes(&self) -> NotesWanted {
        NotesWanted {
            pages: self.page_use.is_some() || self.fallbacks.is_some() || self.mixing.is_some(),
            stalls: self.stalls.is_some(),
        }
    }
}

impl Collector for Sinks {
    fn learn(&mut self, rules: &Rules) {
        if let Some(occupancy) = &mut self.occupancy {
            occupancy.learn(rules);
        }
        if let Some(replay) = &mut self.replay {
            replay.learn(rules);
        }
        if let Some(stalls) = &mut self.stalls {
            stalls.learn(rules);
        }
        if let Some(fallbacks) = &mut self.fallbacks {
            fallbacks.learn(rules);
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.learn(rules);
        }
        if let Some(moments) = &mut self.moments {
            moments.learn(rules);
        }
        if let Some(peak) = &mut self.peak {
            peak.learn(rules);
        }
    }

    /// Lifetimes alone do not: of plain ones they need only a few numbers.
    #[inline]
    fn wants_lives(&self) -> bool {
        self.tasks.is_some()
            || self.timeline.is_some()
            || self.moments.is_some()
            || self.who.is_some()
            || self.reasons.is_some()
            || self.growth.is_some()
            || self.crossing.is_some()
            || self.oddities.is_some()
            || self.calls.is_some()
            || self.occupancy.is_some()
    }

    #[inline]
    fn wants_closed(&self) -> bool {
        self.wants_lives() || self.lifetimes.is_some()
    }

    #[inline]
    fn wants_slab_frames(&self) -> bool {
        self.growth.is_some()
    }

    #[inline]
    fn plainly_freed(&mut self, caller: u32, life: &Life, free: &Free, bytes_alloc: u64, uncertain: bool) {
        if let Some(lifetimes) = &mut self.lifetimes {
            lifetimes.freed(caller, life, free, free.time, bytes_alloc);
            lifetimes.uncertain(caller, uncertain);
        }
    }

    fn plainly_unseen(&mut self, caller: u32, uncertain: bool) {
        if let Some(lifetimes) = &mut self.lifetimes {
            lifetimes.unseen(caller);
            lifetimes.uncertain(caller, uncertain);
        }
    }

    #[inline]
    fn wants_changes(&self) -> bool {
        self.peak.is_some() || self.occupancy.is_some() || self.replay.is_some()
    }

    #[inline]
    fn wants_allocs(&self) -> bool {
        self.stalls.is_some() || self.fallbacks.is_some() || (self.calls.is_some() && !self.no_stacks)
    }

    #[inline]
    fn wants_pages(&self) -> bool {
        self.occupancy.is_some()
            || self.fallbacks.is_some()
            || self.page_use.is_some()
            || self.stalls.is_some()
            || self.mixing.is_some()
    }

    #[inline]
    fn wants_frames(&self) -> bool {
        self.tasks.is_some() || self.timeline.is_some() || self.growth.is_some() || self.mixing.is_some()
    }

    #[inline]
    fn wants_stacks(&self) -> bool {
        (self.stacks || self.calls.is_some() || self.growth.is_some()) && !self.no_stacks
    }

    #[inline]
    fn closed(&mut self, closed: &Closed) {
        if let Some(lifetimes) = &mut self.lifetimes {
            lifetimes.closed(closed);
        }
        if let Some(tasks) = &mut self.tasks {
            tasks.closed(closed);
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.closed(closed);
        }
        if let Some(moments) = &mut self.moments {
            moments.closed(closed);
        }
        if let Some(reasons) = &mut self.reasons {
            reasons.closed(closed);
        }
        if let Some(who) = &mut self.who {
            who.closed(closed);
        }
        if let Some(growth) = &mut self.growth {
            growth.closed(closed);
        }
        if let Some(crossing) = &mut self.crossing {
            crossing.closed(closed);
        }
        if let Some(oddities) = &mut self.oddities {
            oddities.closed(closed);
        }
        if let Some(calls) = &mut self.calls {
            calls.closed(closed);
        }
        if let Some(occupancy) = &mut self.occupancy {
            occupancy.closed(closed);
        }
    }

    fn closed_frames(&mut self, closed: &ClosedFrames) {
        if let Some(tasks) = &mut self.tasks {
            tasks.closed_frames(closed);
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.closed_frames(closed);
        }
        if let Some(growth) = &mut self.growth {
            growth.closed_frames(closed);
        }
        if let Some(mixing) = &mut self.mixing {
            mixing.closed_frames(closed);
        }
    }

    fn unmatched(&mut self, free: &Free, no_life: NoLife) {
        if let Some(tasks) = &mut self.tasks {
            tasks.unmatched(free);
        }
        if let Some(lifetimes) = &mut self.lifetimes {
            lifetimes.unmatched(free);
        }
        if let Some(oddities) = &mut self.oddities {
            oddities.unmatched(free, no_life);
        }
    }

    #[inline]
    fn freed_unknown(&mut self, address: u64, free: &Free) {
        if let Some(occupancy) = &mut self.occupancy {
            occupancy.freed_unknown(address, free);
        }
    }

    #[inline]
    fn changed(&mut self, change: &Change<'_>) {
        if let Some(peak) = &mut self.peak {
            if change.selected {
                let bytes = change.site.bytes_alloc as i64;
                peak.change(change.time, change.life.site, if change.is_birth { bytes } else { -bytes });
                if change.is_deferred {
                    peak.waits(change.time, change.life.site, bytes);
                }
            }
        }
        if let Some(occupancy) = &mut self.occupancy {
            occupancy.changed(change);
        }
        if let Some(replay) = &mut self.replay {
            replay.changed(change);
        }
    }

    fn slab_alloc(&mut self, op: &Op, place: Origin, counted: bool) {
        if let Some(fallbacks) = &mut self.fallbacks {
            fallbacks.slab_alloc(op, place);
        }
        if let Some(stalls) = self.stalls.as_mut().filter(|_| counted) {
            stalls.slab_alloc(op, place);
        }
        if let Some(calls) = self.calls.as_mut().filter(|_| !self.no_stacks) {
            calls.slab_alloc(op);
        }
    }

    fn page_alloc(&mut self, event: &PageEvent<'_>) {
        if let Some(occupancy) = &mut self.occupancy {
            occupancy.page_alloc(event);
        }
        if let Some(fallbacks) = &mut self.fallbacks {
            fallbacks.page_alloc(event);
        }
        if let Some(mixing) = &mut self.mixing {
            mixing.page_alloc(event);
        }
        if !event.counted {
            return;
        }
        if let Some(page_use) = &mut self.page_use {
            page_use.alloc(event.place.pid);
        }
        if let Some(stalls) = &mut self.stalls {
            stalls.page_alloc(event);
        }
    }

    fn page_free(&mut self, event: &PageEvent<'_>) {
        if let Some(occupancy) = &mut self.occupancy {
            occupancy.page_free(event);
        }
        if let Some(page_use) = self.page_use.as_mut().filter(|_| event.counted) {
            page_use.free(event.place.pid);
        }
    }

    fn stack(&mut self, op: &Op) {
        if let Some(calls) = &mut self.calls {
            calls.stack(op);
        }
    }

    fn folded(&mut self, op: &Op) {
        if let Some(calls) = &mut self.calls {
            calls.folded(op);
        }
    }

    fn note(&mut self, noted: &Noted) {
        if let Some(page_use) = &mut self.page_use {
            page_use.note(noted);
        }
        if let Some(fallbacks) = &mut self.fallbacks {
            fallbacks.note(noted);
        }
        if let Some(mixing) = &mut self.mixing {
            mixing.note(noted);
        }
        if let Some(stalls) = &mut self.stalls {
            stalls.note(noted);
        }
    }
}

/// The element of that number of a vector that grows with the numbers; room that it has beyond them is not touched.
#[inline]
fn grown<T: Default>(items: &mut Vec<T>, number: u32) -> &mut T {
    let number = number as usize;
    if items.len() <= number {
        items.resize_with(number + 1, T::default);
    }
    &mut items[number]
}

#[cfg(test)]
mod tests;
