//! The ledger of pages: one owner for every page frame (rule R12).
//!
//! A page free frees the live frames of its range: free-only if none is live; partial unless the range is exactly one
//! allocation. Frames allocated while live are implied frees, one by one. So allocations that are split later, or freed
//! in parts, add up.

use std::collections::HashMap;

use super::Ledger;
use super::arena::Arena;
use super::events::{ClosedFrames, PageGroup};
use super::owners::Owners;
use super::receiver::Receiver;
use crate::int_hash::IntHash;
use crate::ledger::totals::{FrameCounts, FrameTotals};
use crate::stream::{Interests, Op, PageSite};

/// Largest order that is followed frame by frame: no kernel has larger ones (MAX_PAGE_ORDER is 13 at most, arm64 with
/// pages of 64 KiB), but a file may contain any order.
pub const ORDER_MAX: u8 = 15;

/// An allocation with live frames.
#[derive(Debug, Clone, Copy)]
struct Allocation {
    born: u64,
    pfn: u64,
    site: u32,
    origin: u32,
    /// Number of its stack, or [`NO_STACK`].
    stack: u32,
    frames_left: u32,
    order: u8,
    selected: bool,
    /// True if it holds slab objects; known for frames that are live at the end of what is read for the window.
    is_slab: bool,
}

/// Number of an unknown stack.
pub const NO_STACK: u32 = u32::MAX;

/// Owners of the frames, and sums of allocations.
#[derive(Debug, Default)]
pub struct Frames {
    owners: Owners,
    /// Owners of the frames of an event, and the number of frames of each; empty between events.
    runs: Vec<(u32, u32)>,
    allocations: Arena<Allocation>,
    totals: Vec<FrameTotals>,
    counts: FrameCounts,
    /// Frames without a live owner that each origin freed.
    older_freed: Vec<u64>,
    /// Last allocation of each origin, which may get a stack.
    waiting: HashMap<u32, Waiting, IntHash>,
}

/// An allocation that may get a stack.
#[derive(Debug, Clone, Copy)]
enum Waiting {
    /// Number of its owner, and its birth.
    Allocation(u32, u64),
    /// It failed: number of its kind.
    Failure(u32),
}

/// Results of the ledger.
#[derive(Debug, Default)]
pub struct FrameBalance {
    /// By kind of allocation.
    pub sites: Vec<FrameTotals>,
    /// Counts of events.
    pub counts: FrameCounts,
    /// Frames by number of the origin that freed them, of those in `counts.free_only_frames`.
    pub older_freed: Vec<u64>,
}

impl Frames {
    /// Time of the allocation of a frame that was allocated in the trace and not freed.
    #[inline]
    pub fn born_at(&self, pfn: u64) -> Option<u64> {
        let owner = self.owners.find(pfn);
        self.allocations.get(owner.wrapping_sub(1)).map(|allocation| allocation.born)
    }

    /// Starts to load the allocation of a frame.
    #[inline(never)]
    pub fn touch(&self, pfn: u64) {
        std::hint::black_box(self.born_at(pfn));
    }

    /// Marks live allocations; `is_slab` is true if one, by its first frame, order and birth, holds slab objects.
    pub fn mark_slab(&mut self, is_slab: impl Fn(u64, u8, u64) -> bool) {
        for allocation in self.allocations.iter_mut().filter(|allocation| allocation.frames_left > 0) {
            allocation.is_slab = is_slab(allocation.pfn, allocation.order, allocation.born);
        }
    }

    /// Adds allocations of one kind that were freed as they were allocated, and are in the file as a number.
    pub fn add_folded(&mut self, number: u32, kind: PageSite, count: u64, selected: bool) {
        if !selected {
            return;
        }
        let frames = count.saturating_mul(1 << kind.order);
        let counts = &mut self.counts;
        for (sum, more) in [
            (&mut counts.raw_alloc_events, count),
            (&mut counts.raw_frames_alloc, frames),
            (&mut counts.raw_free_events, count),
            (&mut counts.raw_frames_freed, frames),
            (&mut counts.frees_matched, count),
        ] {
            *sum = sum.saturating_add(more);
        }
        let number = number as usize;
        if self.totals.len() <= number {
            self.totals.resize_with((number + 1).next_power_of_two(), FrameTotals::default);
        }
        if let Some(totals) = self.totals.get_mut(number) {
            totals.alloc_events = totals.alloc_events.saturating_add(count);
            totals.frames_alloc = totals.frames_alloc.saturating_add(frames);
            totals.frames_freed = totals.frames_freed.saturating_add(frames);
        }
    }

    /// Counts freed frames that had no live owner.
    fn add_older_freed(&mut self, origin: u32, frames: u64) {
        if frames == 0 {
            return;
        }
        self.counts.free_only_frames += frames;
        let number = origin as usize;
        if self.older_freed.len() <= number {
            self.older_freed.resize((number + 1).next_power_of_two(), 0);
        }
        if let Some(sum) = self.older_freed.get_mut(number) {
            *sum += frames;
        }
    }

    /// Sets the stack of an allocation, if it is still there.
    fn set_stack(&mut self, owner: u32, born: u64, stack: u32) {
        if let Some(allocation) = self.allocations.get_mut(owner).filter(|a| a.born == born) {
            allocation.stack = stack;
        }
    }
}

impl<R: Receiver> Ledger<'_, R> {
    /// Adds the stack of the last allocation of its origin.
    pub(super) fn frames_stack(&mut self, op: &Op) {
        match self.frames.waiting.remove(&op.origin) {
            Some(Waiting::Allocation(owner, born)) => self.frames.set_stack(owner, born, op.code.number()),
            Some(Waiting::Failure(site)) => self.page_failed(site, op.origin, op.code.number()),
            None => {}
        }
    }

    /// Makes an allocation the last one of its origin. A failure before it has no stack.
    fn await_stack(&mut self, origin: u32, waiting: Waiting) {
        if let Some(Waiting::Failure(site)) = self.frames.waiting.insert(origin, waiting) {
            self.page_failed(site, origin, NO_STACK);
        }
    }

    /// Adds a counted failure, with its stack if that comes.
    fn add_failure(&mut self, op: &Op) {
        let site = op.code.number();
        match self.interests.contains(Interests::PAGE_STACKS) {
            true => self.await_stack(op.origin, Waiting::Failure(site)),
            false => self.page_failed(site, op.origin, NO_STACK),
        }
    }

    fn page_failed(&mut self, site: u32, origin: u32, stack: u32) {
        if self.interests.contains(Interests::FRAMES) {
            self.receiver.page_failed(PageGroup { site, origin, stack });
        }
    }

    /// Adds an allocation of 2^order pages, or a failure.
    pub(super) fn frames_alloc(&mut self, op: &Op, site: PageSite, selected: bool) {
        let counted = selected && self.in_window(op.time);
        let frames = 1u64 << site.order;
        self.frames.counts.raw_alloc_events += u64::from(counted);
        self.frames.counts.raw_frames_alloc += if counted { frames } else { 0 };
        let number = op.code.number() as usize;
        if self.frames.totals.len() <= number {
            self.frames.totals.resize_with((number + 1).next_power_of_two(), FrameTotals::default);
        }
        if op.value == self.rules.no_frame {
            if let Some(totals) = self.frames.totals.get_mut(number).filter(|_| counted) {
                totals.alloc_failures += 1;
                return self.add_failure(op);
            }
            // Its stack is not that of the allocation before it.
            if let Some(Waiting::Failure(site)) = self.frames.waiting.remove(&op.origin) {
                self.page_failed(site, op.origin, NO_STACK);
            }
            return;
        }
        let order = site.order.min(ORDER_MAX);
        let mut runs = std::mem::take(&mut self.frames.runs);
        self.frames.owners.take(op.value, order, &mut runs);
        for (owner, count) in runs.drain(..) {
            self.end_frames(owner - 1, count, op.time, false);
        }
        self.frames.runs = runs;
        let allocation = Allocation {
            born: op.time,
            pfn: op.value,
            site: op.code.number(),
            origin: op.origin,
            stack: NO_STACK,
            frames_left: 1 << order,
            order,
            selected,
            is_slab: false,
        };
        let owner = self.frames.allocations.put(allocation);
        self.frames.owners.set(op.value, order, owner + 1);
        if let Some(totals) = self.frames.totals.get_mut(number).filter(|_| counted) {
            totals.alloc_events += 1;
            totals.frames_alloc += frames;
        }
        if self.interests.contains(Interests::PAGE_STACKS) {
            self.await_stack(op.origin, Waiting::Allocation(owner, op.time));
        }
    }

    /// Adds a free of 2^order pages.
    pub(super) fn frames_free(&mut self, op: &Op, order: u8, selected: bool) {
        let counted = selected && self.in_window(op.time);
        self.frames.counts.raw_free_events += u64::from(counted);
        self.frames.counts.raw_frames_freed += if counted { 1 << order } else { 0 };
        let order = order.min(ORDER_MAX);
        let (mut whole, mut matched) = (None, 0u64);
        let mut is_selected = false;
        let mut runs = std::mem::take(&mut self.frames.runs);
        self.frames.owners.take(op.value, order, &mut runs);
        for (owner, count) in runs.drain(..) {
            matched += u64::from(count);
            if let Some(allocation) = self.frames.allocations.get(owner - 1) {
                is_selected |= allocation.selected;
                let exact = allocation.pfn == op.value && allocation.order == order;
                whole = Some(whole.unwrap_or(true) && exact);
            }
            self.end_frames(owner - 1, count, op.time, true);
        }
        self.frames.runs = runs;
        let in_window = self.in_window(op.time);
        if matched == 0 {
            self.frames.counts.free_only_events += u64::from(counted);
            self.frames.add_older_freed(op.origin, if counted { 1 << order } else { 0 });
        } else if in_window && is_selected {
            self.frames.counts.frees_matched += 1;
            self.frames.counts.frees_partial += u64::from(whole == Some(false));
            self.frames.add_older_freed(op.origin, if counted { (1 << order) - matched } else { 0 });
        }
    }

    /// Ends `count` frames of an allocation.
    fn end_frames(&mut self, number: u32, count: u32, time: u64, has_event: bool) {
        let Some(allocation) = self.frames.allocations.get_mut(number) else { return };
        allocation.frames_left = allocation.frames_left.saturating_sub(count);
        let allocation = *allocation;
        if allocation.frames_left == 0 {
            self.frames.allocations.take(number);
        }
        if !allocation.selected {
            return;
        }
        let (in_window, count) = (self.in_window(time), u64::from(count));
        let is_live = allocation.born <= self.rules.window.1 && time > self.rules.window.1;
        let mut sums = FrameTotals::default();
        *(if has_event { &mut sums.frames_freed } else { &mut sums.frames_freed_implied }) =
            if in_window { count } else { 0 };
        sums.frames_live = if is_live { count } else { 0 };
        let uncertain = self.losses.overlaps(allocation.born, time.min(self.rules.window.1));
        sums.frames_uncertain = if uncertain && (in_window || is_live) { count } else { 0 };
        sums.frames_live_uncertain = if uncertain { sums.frames_live } else { 0 };
        self.add_frames(&allocation, sums, count, Some((time, has_event)));
    }

    fn add_frames(
        &mut self,
        allocation: &Allocation,
        sums: FrameTotals,
        frames: u64,
        end: Option<(u64, bool)>,
    ) {
        if let Some(totals) = self.frames.totals.get_mut(allocation.site as usize) {
            *totals += &sums;
        }
        let is_born = self.in_window(allocation.born);
        if !is_born {
            let ended = sums.frames_freed.saturating_add(sums.frames_freed_implied);
            self.older.pages += ended.saturating_add(sums.frames_live);
            self.older.pages_live += sums.frames_live;
        }
        if self.interests.contains(Interests::FRAMES) {
            self.receiver.closed_frames(&ClosedFrames {
                born: allocation.born,
                pfn: allocation.pfn,
                site: allocation.site,
                origin: allocation.origin,
                stack: allocation.stack,
                is_slab: allocation.is_slab,
                end,
                is_born,
                is_last: end.is_none() || allocation.frames_left == 0,
                frames,
                sums,
            });
        }
    }

    /// Closes live allocations.
    pub(super) fn finish_frames(&mut self) -> FrameBalance {
        let mut waiting: Vec<(u32, Waiting)> = self.frames.waiting.drain().collect();
        waiting.sort_unstable_by_key(|(origin, _)| *origin);
        for (origin, waiting) in waiting {
            if let Waiting::Failure(site) = waiting {
                self.page_failed(site, origin, NO_STACK);
            }
        }
        for allocation in std::mem::take(&mut self.frames.allocations).iter() {
            let left = u64::from(allocation.frames_left);
            if left > 0 && allocation.selected && allocation.born <= self.rules.window.1 {
                let uncertain = self.losses.overlaps(allocation.born, self.rules.window.1);
                let sums = FrameTotals {
                    frames_live: left,
                    frames_uncertain: if uncertain { left } else { 0 },
                    frames_live_uncertain: if uncertain { left } else { 0 },
                    ..FrameTotals::default()
                };
                self.add_frames(allocation, sums, left, None);
            }
        }
        let (sites, older_freed) =
            (std::mem::take(&mut self.frames.totals), std::mem::take(&mut self.frames.older_freed));
        FrameBalance { sites, counts: self.frames.counts, older_freed }
    }
}
