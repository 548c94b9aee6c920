//! Lives of one address and of its neighbours, and allocations that held one page frame.
//!
//! Only lives that overlap the address are kept. The report `who` shows them.

use std::collections::HashMap;

use super::collector::{Collector, PassFacts};
use crate::int_hash::IntHash;
use crate::ledger::frames::{NO_STACK, ORDER_MAX};
use crate::ledger::lives::ADDRESS_BITS;
use crate::ledger::{Closed, ClosedFrames, Interests, PageEvent, Receiver};
use crate::stream::Origin;

/// Distance of the search for neighbours: two pages of 4 KiB of the life table.
const REACH: u64 = 8 << 10;

/// Collects lives near an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Who {
    /// The address; its low 56 bits are used.
    pub address: u64,
}

impl Collector for Who {
    type State = WhoLives;
    type Output = Vec<Closed>;

    const INTERESTS: Interests = Interests::LIVES;

    fn begin(&self, _: &PassFacts) -> WhoLives {
        WhoLives { address: self.address & ADDRESS_BITS, lives: Vec::new() }
    }

    /// By time of birth, then by address; lives of one address that begin at the same time by their ends.
    fn finish(WhoLives { mut lives, .. }: WhoLives) -> Vec<Closed> {
        lives.sort_by_key(|c| {
            let end = c.end.time().unwrap_or(u64::MAX);
            (c.life.born, c.address, end, c.life.site, c.life.origin)
        });
        lives
    }
}

/// Lives near an address, when they are added up.
#[derive(Debug)]
pub struct WhoLives {
    address: u64,
    /// Lives at addresses in reach.
    lives: Vec<Closed>,
}

impl Receiver for WhoLives {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        if closed.address.abs_diff(self.address) < REACH {
            self.lives.push(*closed);
        }
    }
}

/// Collects the allocations of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WhoFrame {
    /// The frame.
    pub pfn: u64,
}

/// Time that one allocation held the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLife {
    /// Time of the allocation.
    pub born: u64,
    /// First frame of the allocation.
    pub pfn: u64,
    /// Number of its kind.
    pub site: u32,
    /// CPU and task that allocated it.
    pub origin: Origin,
    /// Number of its stack, or [`NO_STACK`].
    pub stack: u32,
    /// End; `None`: still allocated at the end of the trace.
    pub end: Option<FrameEnd>,
    /// Number of its CPU and task.
    origin_number: u32,
}

/// End of an allocation for one of its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameEnd {
    pub time: u64,
    /// CPU and task that freed the frame; `None`: it was allocated again without a free event.
    pub freed_by: Option<Origin>,
}

/// Allocations of a frame, by time.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FrameHistory {
    /// Selected allocations.
    pub lives: Vec<FrameLife>,
    /// Frees of the frame without a traced allocation, in the window.
    pub frees_unmatched: u64,
}

impl Collector for WhoFrame {
    type State = FrameLives;
    type Output = FrameHistory;

    const INTERESTS: Interests = Interests::PAGES.union(Interests::FRAMES).union(Interests::PAGE_STACKS);
    const IN_ORDER: bool = true;

    fn begin(&self, _: &PassFacts) -> FrameLives {
        FrameLives { pfn: self.pfn, ..FrameLives::default() }
    }

    fn finish(state: FrameLives) -> FrameHistory {
        let FrameLives { lives, selected, frees_unmatched, .. } = state;
        let of_selection = |life: FrameLife| {
            let stack = *selected.get(&key(&life))?.as_ref()?;
            Some(FrameLife { stack, ..life })
        };
        FrameHistory { lives: lives.into_iter().filter_map(of_selection).collect(), frees_unmatched }
    }
}

/// Time, first frame, kind and origin of an allocation.
type LifeKey = (u64, u64, u32, u32);

fn key(life: &FrameLife) -> LifeKey {
    (life.born, life.pfn, life.site, life.origin_number)
}

/// Events of the frame.
#[derive(Debug, Default)]
pub struct FrameLives {
    pfn: u64,
    lives: Vec<FrameLife>,
    /// Stacks of the allocations that the ledger added up, which are the selected ones; `None`: not added up.
    selected: HashMap<LifeKey, Option<u32>, IntHash>,
    frees_unmatched: u64,
}

impl FrameLives {
    fn is_held_by(&self, event: &PageEvent) -> bool {
        let frames = 1u64 << event.site.order.min(ORDER_MAX);
        self.pfn.checked_sub(event.op.value).is_some_and(|distance| distance < frames)
    }

    /// Ends the current life; false: there is none.
    fn end(&mut self, time: u64, freed_by: Option<Origin>) -> bool {
        let Some(life) = self.lives.last_mut().filter(|life| life.end.is_none()) else { return false };
        life.end = Some(FrameEnd { time, freed_by });
        true
    }
}

impl Receiver for FrameLives {
    fn page_alloc(&mut self, event: &PageEvent) {
        if event.failed || !self.is_held_by(event) {
            return;
        }
        self.end(event.op.time, None);
        let life = FrameLife {
            born: event.op.time,
            pfn: event.op.value,
            site: event.op.code.number(),
            origin: event.origin,
            stack: NO_STACK,
            end: None,
            origin_number: event.op.origin,
        };
        self.selected.entry(key(&life)).or_default();
        self.lives.push(life);
    }

    fn page_free(&mut self, event: &PageEvent) {
        if self.is_held_by(event) && !self.end(event.op.time, Some(event.origin)) && event.counted {
            self.frees_unmatched += 1;
        }
    }

    fn closed_frames(&mut self, closed: &ClosedFrames) {
        let key = (closed.born, closed.pfn, closed.site, closed.origin);
        if let Some(stack) = self.selected.get_mut(&key) {
            *stack = Some(closed.stack);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::lives::{End, Life, Replacement};
    use crate::stream::{Api, Origin};

    #[test]
    fn lives_that_begin_together_are_in_one_order() {
        let life = |end| Closed {
            address: 64,
            life: Life { born: 460, site: 0, origin: 0 },
            end: End::ImpliedFree { end, ambiguous: false, by: Replacement::Object },
            cache: None,
            stack: None,
            caller: 0,
            api: Api::Cache,
            bytes_req: 8,
            bytes_alloc: 8,
            born_at: Origin::default(),
            freed_at: None,
            is_born: true,
            is_freed: false,
            is_implied_free: true,
            is_live: false,
            is_waiting: false,
            uncertain: false,
            lost_at: None,
        };
        let sorted = |ends: [u64; 2]| Who::finish(WhoLives { address: 64, lives: ends.map(life).into() });
        assert_eq!(sorted([2767, 460]), sorted([460, 2767]));
        assert_eq!(sorted([2767, 460])[0].end.time(), Some(460));
    }
}
