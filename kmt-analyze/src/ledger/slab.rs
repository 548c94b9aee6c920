//! Allocations, frees and page events of slab objects, by the rules.
//!
//! An operation comes here from `plain` where the address has a live object or a pending decision, or where something
//! is filtered out. Rules R1 to R11 and R13 decide if it begins or ends a life, and the ends go to `close`. `page_gone`
//! ends objects on the frames of a page event (R7).

use super::Ledger;
use super::lives::{
    ADDRESS_BITS, End, Free, FreeOp, FreedOnce, Life, NEW_PAGE, NO_SITE, NoLife, PendingLife, Replacement,
    ZERO_SIZE_PTR,
};
use super::receiver::Receiver;
use super::table::SlotLocation;
use super::totals::{EventCounts, RawSums};
use crate::stream::Interests;
use crate::stream::{Api, Op};

/// Counts a free of NULL or of the result of kmalloc(0) (R3).
#[inline(never)]
pub(super) fn count_null(counts: &mut [EventCounts; 2], raw: &mut RawSums, op: &Op) {
    raw.free_events += 1;
    let counts = &mut counts[Free::of(FreeOp::of(op)).api as usize];
    let is_null = op.value & ADDRESS_BITS == 0;
    *(if is_null { &mut counts.null_frees } else { &mut counts.zero_size_frees }) += 1;
}

impl<R: Receiver> Ledger<'_, R> {
    /// Enters an allocation event.
    #[inline(never)]
    pub(super) fn alloc(&mut self, op: &Op, slot: SlotLocation) {
        let address = op.value & ADDRESS_BITS;
        if address == 0 {
            return self.failed(op);
        }
        let at = if slot == SlotLocation::NONE { self.table.add(address) } else { slot };
        let new = Life::of(op);
        let Some(slot) = self.table.slot_mut(at) else { return };
        if slot.is_live() || !slot.is_plain() {
            return self.alloc_again(op, address, at);
        }
        slot.life = new;
        slot.set_live(true);
        self.table.note_birth(at);
        self.born(address, &new);
    }

    /// Enters an allocation at an address with a live object or a pending decision.
    fn alloc_again(&mut self, op: &Op, address: u64, at: SlotLocation) {
        let Some(slot) = self.table.slot_mut(at) else { return };
        let (life, was_live) = (slot.life, slot.is_live());
        if was_live && self.is_duplicate(at, &life, op) {
            return;
        }
        let pending = self.table.take_pending(at);
        self.settle(address, life.born, pending);
        let new = Life::of(op);
        if let Some(slot) = self.table.slot_mut(at) {
            slot.life = new;
            slot.set_live(true);
        }
        if was_live {
            self.gone(address, &life, op.time);
            self.table.set_pending(at, PendingLife::Replaced { old: life, last_report: op.time });
        } else {
            self.table.note_birth(at);
        }
        self.born(address, &new);
    }

    /// Rule R4: inner and outer function of one large kmalloc, 6.10 and later. Folds the duplicate event.
    fn is_duplicate(&mut self, at: SlotLocation, life: &Life, op: &Op) -> bool {
        let second = self.tables.site(op.code.number());
        if !second.is_large {
            return false;
        }
        let first = self.tables.site(life.site);
        let (here, there) = (self.tables.origin(op.origin).origin, self.tables.origin(life.origin).origin);
        let pending = self.table.slot_mut(at).copied().and_then(|s| self.table.pending(&s));
        let last_report = match pending {
            Some(PendingLife::Folded(time)) | Some(PendingLife::Replaced { last_report: time, .. }) => time,
            _ => life.born,
        };
        let is_double = first.api == Api::Kmalloc
            // One call site is the same function twice: two allocations, whose free is not in the file.
            && first.caller != second.caller
            && (first.bytes_req, first.bytes_alloc) == (second.bytes_req, second.bytes_alloc)
            && (here.cpu, here.pid) == (there.cpu, there.pid)
            && op.time.saturating_sub(last_report) <= self.rules.late_bound;
        if is_double {
            self.duplicate_kmalloc(op);
            if self.interests.contains(Interests::SLAB_STACKS) {
                self.slab_stacks.folded(op);
            }
            let pending = match self.table.take_pending(at) {
                Some(PendingLife::Replaced { old, .. }) => {
                    PendingLife::Replaced { old, last_report: op.time }
                }
                _ => PendingLife::Folded(op.time),
            };
            self.table.set_pending(at, pending);
            if let Some(slot) = self.table.slot_mut(at) {
                slot.life.site = op.code.number();
            }
            self.renamed(op.value & ADDRESS_BITS, life, op.code.number());
        }
        is_double
    }

    /// Enters a free event.
    #[inline(never)]
    pub(super) fn free(&mut self, op: &Op, at: SlotLocation) {
        let counted = self.is_plain || self.counts_event(op);
        let address = op.value & ADDRESS_BITS;
        if address <= ZERO_SIZE_PTR {
            if counted {
                count_null(&mut self.counts, &mut self.raw, op);
            }
            return;
        }
        self.raw.free_events += u64::from(counted);
        let free = Free::of(FreeOp::of(op));
        if at == SlotLocation::NONE {
            return self.free_at_new_address(address, &free, counted);
        }
        let Some(slot) = self.table.slot_mut(at) else { return };
        let (life, was_live, is_settled) = (slot.life, slot.is_live(), slot.is_plain());
        slot.set_live(false);
        if was_live {
            // The free, as in [`LifeTable::exchange`](super::table::LifeTable::exchange).
            slot.life = Life::of(op);
            self.gone(address, &life, op.time);
        }
        match (is_settled, was_live) {
            (true, true) => self.close(address, &life, End::Freed { free, end: op.time, late: None }),
            (true, false) => self.free_again(address, at, &free, counted),
            (false, _) => self.free_pending(address, at, (life, was_live), free, counted),
        }
    }

    /// Enters a free at an address without earlier events.
    #[cold]
    fn free_at_new_address(&mut self, address: u64, free: &Free, counted: bool) {
        let no_life = if self.page_born(address).is_some() { NoLife::NewPage } else { NoLife::Before };
        let at = self.table.add(address);
        self.free_unmatched(address, at, free, (no_life, counted));
    }

    /// Enters a free at an address with earlier events, whose last life has ended (R10).
    #[cold]
    fn free_again(&mut self, address: u64, at: SlotLocation, free: &Free, counted: bool) {
        let Some(last) = self.table.slot_mut(at).map(|slot| slot.life) else { return };
        let no_life = match self.page_born(address) {
            Some(page_born) if page_born > last.born => NoLife::NewPage,
            _ if self.may_be_lost_between(last.born, free.time) => NoLife::AgainLost,
            _ if matches!(last.site, NO_SITE | NEW_PAGE) => NoLife::AgainUnseen,
            _ => NoLife::AgainSeen,
        };
        self.free_unmatched(address, at, free, (no_life, counted));
    }

    /// True if events may be lost between two events. A loss that ends at the first or begins at the second is outside.
    fn may_be_lost_between(&self, first: u64, second: u64) -> bool {
        self.has_losses && self.losses.overlaps(first.saturating_add(1), second.saturating_sub(1))
    }

    fn free_unmatched(
        &mut self,
        address: u64,
        at: SlotLocation,
        free: &Free,
        (no_life, counted): (NoLife, bool),
    ) {
        let new_page = (no_life == NoLife::NewPage).then_some(free.time);
        self.table.set_freed_unmatched(at, new_page);
        self.unmatched(address, free, no_life, counted);
    }

    /// Time of the allocation of the page of an address, if it was allocated in the trace. No page is allocated while an
    /// object lives on it.
    fn page_born(&self, address: u64) -> Option<u64> {
        let page_shift = self.rules.page_size.trailing_zeros();
        self.rules.direct_map.and_then(|map| self.frames.born_at(map.frame(address, page_shift)))
    }

    /// Enters a free at an address with a pending decision.
    fn free_pending(
        &mut self,
        address: u64,
        at: SlotLocation,
        (life, was_live): (Life, bool),
        free: Free,
        counted: bool,
    ) {
        let now = End::Freed { free, end: free.time, late: None };
        match self.table.take_pending(at) {
            Some(PendingLife::Replaced { old, .. }) if self.is_late(life.born, &free) => {
                self.table.set_freed_once(at, FreedOnce { old, second: life, free, page_gone: None });
            }
            Some(PendingLife::Replaced { old, .. }) => {
                self.close_implied(address, &old, life.born, Replacement::Object);
                self.close(address, &life, now);
            }
            Some(PendingLife::FreedOnce(number)) => {
                // Two frees after two allocations: the first free belongs to the old life, logged late (R6).
                let Some(once) = self.table.take_freed_once(number) else { return };
                let late = Some(Replacement::Object);
                self.close(address, &once.old, End::Freed { free: once.free, end: once.second.born, late });
                match once.page_gone {
                    None => self.close(address, &once.second, now),
                    Some(end) => self.freed_behind_page(address, at, (&once.second, end), free, counted),
                }
            }
            Some(PendingLife::PageGone { old, end }) => {
                self.freed_behind_page(address, at, (&old, end), free, counted)
            }
            Some(PendingLife::Folded(_)) | None if was_live => self.close(address, &life, now),
            Some(PendingLife::Deferred(_)) => {}
            Some(PendingLife::Folded(_)) | None => self.free_again(address, at, &free, counted),
        }
    }

    /// Enters a free after the page event that ended a life: its own, logged late, or unmatched (R7).
    fn freed_behind_page(
        &mut self,
        address: u64,
        at: SlotLocation,
        (life, end): (&Life, u64),
        free: Free,
        counted: bool,
    ) {
        if self.is_late(end, &free) {
            self.close(address, life, End::Freed { free, end, late: Some(Replacement::Page) });
        } else {
            self.close_implied(address, life, end, Replacement::PageThenFree);
            if let Some(slot) = self.table.slot_mut(at) {
                slot.life = Life { site: NO_SITE, ..*life };
            }
            self.free_again(address, at, &free, counted);
        }
    }

    /// Rule R13: enters a kfree_rcu. Unknown addresses are ignored, they may be of vmalloc.
    pub(super) fn free_rcu(&mut self, op: &Op) {
        let address = op.value & ADDRESS_BITS;
        let at = self.table.locate(address);
        let Some(slot) = self.table.slot_mut(at).copied() else { return };
        if !slot.is_live() {
            return self.free_rcu_behind_free(op, address, at);
        }
        // Of the pending states only this one has a live object.
        if let Some(PendingLife::Replaced { old, .. }) = self.table.take_pending(at) {
            self.close_implied(address, &old, slot.life.born, Replacement::Object);
        }
        if let Some(slot) = self.table.slot_mut(at) {
            slot.set_live(false);
        }
        self.given_up(address, &slot.life, op.time);
        self.close_given_up(op, address, at, &slot.life);
    }

    /// Enters a kfree_rcu after two allocations and one free: the free belongs to the old life, logged late (R6).
    fn free_rcu_behind_free(&mut self, op: &Op, address: u64, at: SlotLocation) {
        let pending = self.table.slot_mut(at).copied().and_then(|slot| self.table.pending(&slot));
        let Some(PendingLife::FreedOnce(number)) = pending else { return };
        self.table.take_pending(at);
        let Some(once) = self.table.take_freed_once(number) else { return };
        let late = Some(Replacement::Object);
        self.close(address, &once.old, End::Freed { free: once.free, end: once.second.born, late });
        match once.page_gone {
            None => self.close_given_up(op, address, at, &once.second),
            Some(end) => self.close_implied(address, &once.second, end, Replacement::Page),
        }
    }

    fn close_given_up(&mut self, op: &Op, address: u64, at: SlotLocation, life: &Life) {
        let api = self.tables.site(life.site).api;
        let free = Free { time: op.time, api, site: op.code.number(), origin: op.origin, is_deferred: true };
        self.close(address, life, End::Freed { free, end: op.time, late: None });
        self.table.set_pending(at, PendingLife::Deferred(op.time));
    }

    fn is_late(&self, end: u64, free: &Free) -> bool {
        self.rules.late_frees
            && free.api == Api::Cache
            && free.time.saturating_sub(end) <= self.rules.late_bound
    }

    /// Takes the pending decision of an address, whose last life was born at `born`: no free can be late any more.
    pub(super) fn settle(&mut self, address: u64, born: u64, pending: Option<PendingLife>) {
        match pending {
            None | Some(PendingLife::Folded(_) | PendingLife::Deferred(_)) => {}
            Some(PendingLife::Replaced { old, .. }) => {
                self.close_implied(address, &old, born, Replacement::Object)
            }
            Some(PendingLife::PageGone { old, end }) => {
                self.close_implied(address, &old, end, Replacement::Page)
            }
            Some(PendingLife::FreedOnce(number)) => self.only_one_free(address, number),
        }
    }

    fn close_implied(&mut self, address: u64, life: &Life, end: u64, by: Replacement) {
        self.close(address, life, End::ImpliedFree { end, ambiguous: false, by });
    }

    /// One free after two allocations belongs to the second; the first is an implied free, and uncertain.
    pub(super) fn only_one_free(&mut self, address: u64, number: u32) {
        let Some(FreedOnce { old, second, free, .. }) = self.table.take_freed_once(number) else {
            return;
        };
        self.close(
            address,
            &old,
            End::ImpliedFree { end: second.born, ambiguous: true, by: Replacement::Object },
        );
        self.close(address, &second, End::Freed { free, end: free.time, late: None });
    }

    /// Rule R7 for one life.
    pub(super) fn page_gone(&mut self, address: u64, time: u64) {
        let at = self.table.locate(address);
        if let Some(PendingLife::FreedOnce(number)) =
            self.table.slot_mut(at).copied().and_then(|s| self.table.pending(&s))
        {
            return self.table.record_page_gone(number, time);
        }
        let Some(slot) = self.table.slot_mut(at).filter(|s| s.is_live()) else { return };
        slot.set_live(false);
        let life = slot.life;
        self.gone(address, &life, time);
        if let Some(PendingLife::Replaced { old, .. }) = self.table.take_pending(at) {
            self.close_implied(address, &old, life.born, Replacement::Object);
        }
        self.table.set_pending(at, PendingLife::PageGone { old: life, end: time });
    }
}
