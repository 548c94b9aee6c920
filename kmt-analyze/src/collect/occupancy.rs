//! Occupancy of slab pages: bytes on each page, allocation and free of pages, and the survivors that pin them.
//!
//! Page frames of objects are found by the direct map (rule R8); without it nothing is known. A page allocation on
//! which an object is allocated later is a slab page, of the cache of that object. Slab pages older than the trace are
//! known only by the events on them.

use super::collector::{Collector, PassFacts};
pub use super::occupancy_sums::{CacheEvidence, OccupancySums, Pins, SPARSE, SlabPage, StepChange, Turnover};
use super::sums::grown;
use crate::ledger::arena::Arena;
use crate::ledger::direct_map::DirectMap;
use crate::ledger::frames::ORDER_MAX;
use crate::ledger::lives::{Free, Life, ZERO_SIZE_PTR};
use crate::ledger::owners::Owners;
use crate::ledger::{Change, Closed, FoldedLives, FreedPlain, Interests, PageEvent, PlainLife, Receiver};
use crate::trace::ages::Ages;

/// Collects the occupancy of slab pages, in time steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    /// First and last time.
    pub window: (u64, u64),
    /// Number of time steps, at least one.
    pub steps: usize,
}

impl Collector for Occupancy {
    type State = OccupancyState;
    type Output = OccupancySums;

    const INTERESTS: Interests =
        Interests::PLAIN_LIVES.union(Interests::CHANGES).union(Interests::UNMATCHED).union(Interests::PAGES);
    const IN_ORDER: bool = true;

    fn begin(&self, PassFacts { rules, .. }: &PassFacts) -> OccupancyState {
        let ((start, last), steps) = (self.window, vec![StepChange::default(); self.steps.max(1)]);
        let step = last.saturating_sub(start) / steps.len() as u64 + 1;
        OccupancyState {
            owners: Owners::default(),
            runs: Vec::new(),
            pages: Arena::default(),
            map: rules.direct_map,
            page_shift: rules.page_size.trailing_zeros(),
            end: rules.window.1,
            window: self.window,
            ages: rules.ages,
            sums: OccupancySums { start, step, steps, ..OccupancySums::default() },
        }
    }

    fn finish(state: OccupancyState) -> OccupancySums {
        // Numbers are reused: a page exists if its frame has its number.
        let number = |page: &SlabPage| state.owners.find(page.pfn).checked_sub(1);
        let is_there = |page: &&SlabPage| {
            number(page).and_then(|n| state.pages.get(n)).is_some_and(|p| std::ptr::eq(p, *page))
        };
        let mut pages: Vec<SlabPage> = state.pages.iter().filter(is_there).copied().collect();
        pages.sort_unstable();
        OccupancySums { pages, ..state.sums }
    }
}

/// Pages with their frames, and sums.
#[derive(Debug, Clone)]
pub struct OccupancyState {
    owners: Owners,
    /// Owners of the frames of an event; empty between events.
    runs: Vec<(u32, u32)>,
    pages: Arena<SlabPage>,
    map: Option<DirectMap>,
    page_shift: u32,
    end: u64,
    window: (u64, u64),
    ages: Ages,
    sums: OccupancySums,
}

impl OccupancyState {
    fn change(&mut self, time: u64, held: i64, live: i64) {
        let OccupancySums { start, step, steps, .. } = &mut self.sums;
        let last = steps.len().saturating_sub(1) as u64;
        let number = (time.saturating_sub(*start) / *step).min(last) as usize;
        if let Some(step) = steps.get_mut(number) {
            step.held = step.held.saturating_add(held);
            step.live = step.live.saturating_add(live);
        }
    }

    fn size(&self, order: u8) -> u64 {
        1u64 << (self.page_shift + u32::from(order)).min(63)
    }

    fn page(&mut self, address: u64) -> Option<u32> {
        let frame = self.map?.frame(address, self.page_shift);
        self.owners.get(frame).checked_sub(1)
    }

    /// The page of an address; a page older than the trace is added.
    fn page_or_old(&mut self, address: u64) -> Option<u32> {
        let frame = self.map?.frame(address, self.page_shift);
        if let Some(number) = self.owners.get(frame).checked_sub(1) {
            return Some(number);
        }
        // Beyond any memory: not an object of the direct map.
        if frame >> 40 != 0 {
            return None;
        }
        let number = self.pages.put(SlabPage {
            pfn: frame,
            order: 0,
            is_old: true,
            evidence: CacheEvidence::Nothing,
            live: 0,
            live_bytes: 0,
            peak_bytes: 0,
        });
        self.owners.set(frame, 0, number + 1);
        Some(number)
    }

    /// Ends all pages on the frames of an event.
    fn clear(&mut self, event: &PageEvent) {
        let order = event.site.order.min(ORDER_MAX);
        let frames = 1u64 << order;
        let mut old: Option<CacheEvidence> = None;
        let mut runs = std::mem::take(&mut self.runs);
        self.owners.take(event.op.value, order, &mut runs);
        for (owner, _) in runs.drain(..) {
            let number = owner - 1;
            let Some(page) = self.pages.get(number).copied() else { continue };
            if page.is_old {
                self.pages.take(number);
                old = match (old, page.evidence) {
                    (Some(CacheEvidence::Site(_)), _) | (_, CacheEvidence::Nothing) => old,
                    (_, evidence) => Some(evidence),
                };
            } else {
                self.died(&page, number, event.op.time);
            }
        }
        self.runs = runs;
        let turnover = match old {
            Some(CacheEvidence::Site(site)) => grown(&mut self.sums.turnover, site),
            Some(CacheEvidence::FreeSite(site)) => grown(&mut self.sums.turnover_by_free, site),
            Some(CacheEvidence::Large | CacheEvidence::Nothing) | None => return,
        };
        turnover.old_slabs_died += 1;
        turnover.old_frames_died = turnover.old_frames_died.saturating_add(frames);
    }

    /// Adds up the time for which a life that ended at `end` held its bytes.
    #[inline]
    fn held(&mut self, life: &Life, end: u64) {
        let (first, last) = self.window;
        let held = end.min(last).saturating_sub(life.born.max(first));
        let time = grown(&mut self.sums.object_time, life.site);
        *time = time.saturating_add(held.into());
    }

    /// Ends a page.
    fn died(&mut self, page: &SlabPage, number: u32, time: u64) {
        // Its other frames: pages of the trace do not overlap.
        if page.order > 0 {
            self.owners.take(page.pfn, page.order.min(ORDER_MAX), &mut Vec::new());
        }
        self.pages.take(number);
        if let CacheEvidence::Site(site) = page.evidence {
            let turnover = grown(&mut self.sums.turnover, site);
            turnover.slabs_died += 1;
            turnover.frames_died = turnover.frames_died.saturating_add(1 << page.order);
            let (held, live) = (self.size(page.order) as i64, page.live_bytes as i64);
            self.change(time, held.saturating_neg(), live.saturating_neg());
        }
    }
}

impl Receiver for OccupancyState {
    #[inline]
    fn changed(&mut self, change: &Change) {
        if change.time > self.end || self.map.is_none() {
            return;
        }
        let (bytes, time) = (change.site.bytes_alloc, change.time);
        if !change.is_birth {
            let Some(page) = self.page(change.address).and_then(|n| self.pages.get_mut(n)) else { return };
            if page.live == 0 || page.evidence == CacheEvidence::Large {
                return;
            }
            page.live -= 1;
            page.live_bytes = page.live_bytes.saturating_sub(bytes);
            if !page.is_old {
                self.change(time, 0, (bytes as i64).saturating_neg());
            }
            return;
        }
        let Some(number) = self.page_or_old(change.address) else { return };
        let Some(page) = self.pages.get_mut(number) else { return };
        if page.evidence == CacheEvidence::Large || change.site.is_large {
            page.evidence = CacheEvidence::Large;
            return;
        }
        let is_first = !matches!(page.evidence, CacheEvidence::Site(_));
        page.evidence = if is_first { CacheEvidence::Site(change.life.site) } else { page.evidence };
        page.live += 1;
        page.live_bytes = page.live_bytes.saturating_add(bytes);
        page.peak_bytes = page.peak_bytes.max(page.live_bytes);
        let (is_old, order) = (page.is_old, page.order);
        if is_old {
            return;
        }
        let mut held = 0;
        if is_first {
            held = self.size(order) as i64;
            let turnover = grown(&mut self.sums.turnover, change.life.site);
            turnover.slabs_born += 1;
            turnover.frames_born = turnover.frames_born.saturating_add(1 << order);
        }
        self.change(time, held, bytes as i64);
    }

    /// A free without a life shows that its page is a slab page, too.
    fn freed_unknown(&mut self, address: u64, free: &Free) {
        if free.time > self.end || address <= ZERO_SIZE_PTR {
            return;
        }
        let number = self.page_or_old(address);
        if let Some(page) = number.and_then(|n| self.pages.get_mut(n)) {
            if page.evidence == CacheEvidence::Nothing {
                page.evidence = CacheEvidence::FreeSite(free.site);
            }
        }
    }

    fn page_alloc(&mut self, event: &PageEvent) {
        if event.failed || event.op.time > self.end || self.map.is_none() {
            return;
        }
        self.clear(event);
        if event.site.is_movable() {
            return;
        }
        let pfn = event.op.value;
        let number = self.pages.put(SlabPage {
            pfn,
            order: event.site.order,
            is_old: false,
            evidence: CacheEvidence::Nothing,
            live: 0,
            live_bytes: 0,
            peak_bytes: 0,
        });
        self.owners.set(pfn, event.site.order.min(ORDER_MAX), number + 1);
    }

    fn page_free(&mut self, event: &PageEvent) {
        if event.op.time <= self.end && self.map.is_some() {
            self.clear(event);
        }
    }

    /// Adds up the time for which a life held its bytes, and what survivors pin.
    fn closed(&mut self, closed: &Closed) {
        let last = self.window.1;
        self.held(&closed.life, closed.end.time().unwrap_or(last));
        if !closed.is_live {
            return;
        }
        let Some(page) = self.page(closed.address).and_then(|n| self.pages.get(n)).copied() else { return };
        if page.is_old || page.live == 0 || !matches!(page.evidence, CacheEvidence::Site(_)) {
            return;
        }
        let unused = self.size(page.order).saturating_sub(page.live_bytes);
        let age = self.ages.length(closed.life.born, last);
        grown(&mut self.sums.pins, closed.caller).survivor(closed.bytes_alloc, age, &page, unused);
    }

    #[inline]
    fn freed_plain(&mut self, FreedPlain { plain, op, .. }: &FreedPlain) {
        self.held(&plain.life, op.time);
    }

    fn implied_free_plain(&mut self, plain: &PlainLife, end: u64) {
        self.held(&plain.life, end);
    }

    /// All of these lives is in the window. Their pages are unknown.
    fn folded(&mut self, lives: &FoldedLives) {
        let time = grown(&mut self.sums.object_time, lives.site);
        *time = time.saturating_add(lives.sums.length_sum.into());
    }
}
