//! Fast paths of the table, for batches of operations.
//!
//! A batch is located first, so that its cache misses overlap; then runs of it are entered without a branch that depends on
//! the kind of an event.

use std::hint::black_box;

use super::{LifeTable, NOTHING, SlotLocation, SlotState, is_object, locate, offset_of, page_of};
use crate::ledger::lives::{FreeOp, Life, PendingLife};
use crate::stream::Op;

impl LifeTable {
    /// True if a location that was found in this batch is still that of `address`: a block whose slots moved stays empty
    /// until the next batch.
    #[inline]
    pub fn is_at(&self, at: SlotLocation, address: u64) -> bool {
        self.slots.get(at.slot as usize).is_some_and(|slot| slot.offset() == offset_of(address))
    }

    /// Locations of the addresses of a batch; [`SlotLocation::NONE`] for operations that are not about slab objects, or about
    /// the page of NULL. Loads their slots, and pending decisions, so that cache misses overlap, and calls `other` with the
    /// operations that are not about slab objects.
    pub fn locate_all(&mut self, ops: &[Op], found: &mut [SlotLocation], mut other: impl FnMut(&Op)) {
        for (log2, block) in self.moved.drain(..) {
            if let Some(spare) = self.spare.get_mut(usize::from(log2)) {
                spare.push(block);
            }
        }
        let parts = (self.index.as_slice(), self.heads.as_slice(), self.slots.as_slice());
        if self.index.is_empty() {
            // It never is: known here, it costs no test for each operation.
            return;
        }
        for (found, op) in found.iter_mut().zip(ops) {
            *found = if !op.code.is_slab() {
                other(op);
                SlotLocation::NONE
            } else if page_of(op.value) == 0 {
                SlotLocation::NONE
            } else {
                let (at, pending) = locate(parts, self.seed, op.value);
                if pending != NOTHING {
                    let pending = self.pending.get(pending);
                    black_box(matches!(pending, Some(PendingLife::Folded(_))));
                }
                at
            };
        }
    }

    /// Fast path of most events: births at addresses without a life, and frees of live objects, without pending decisions.
    /// Enters operations from `from` on until one is of another kind, and `other` does not enter it either; returns their
    /// number. `slots` are the locations of the operations, looked up again where they are stale, also of that one. `ended`
    /// gets the lives that ended, each with its free: `count` is their number. `other` gets the position too. Births are
    /// noted if page events can end lives: `PAGES`.
    ///
    /// No branch depends on allocation or free of an object, since it is unpredictable.
    #[inline(never)]
    pub fn exchange<const PAGES: bool>(
        &mut self,
        ops: &[Op],
        slots: &mut [SlotLocation],
        from: usize,
        (ended, count): (&mut [(Life, FreeOp)], &mut usize),
        mut other: impl FnMut(&mut Self, &Op, SlotLocation, u32) -> bool,
    ) -> usize {
        let (mut at, mut ended_count) = (from, *count);
        let (ops, slots) = (ops.get(from..).unwrap_or_default(), slots.get_mut(from..).unwrap_or_default());
        for (op, location) in ops.iter().zip(slots) {
            let Some(out) = ended.get_mut(ended_count) else { break };
            let is_null_free = || !is_object(op.value) && op.code.is_slab_free();
            let is_entered = self.turn::<PAGES>(op, *location, out)
                || !is_null_free() && self.turn_again::<PAGES>(op, location, out);
            if is_entered {
                ended_count += usize::from(op.code.is_slab_free());
            } else if !other(self, op, *location, at as u32) {
                break;
            }
            at += 1;
        }
        *count = ended_count;
        at - from
    }

    /// Enters the operation if it is a birth at an address without a life, or a free of a live object; `out`
    /// gets what was there. False for others.
    #[inline(always)]
    fn turn<const PAGES: bool>(&mut self, op: &Op, at: SlotLocation, out: &mut (Life, FreeOp)) -> bool {
        let is_free = op.code.is_slab_free();
        let expected = SlotState::plain(offset_of(op.value), is_free);
        let slot = self.slots.get_mut(at.slot as usize).filter(|slot| slot.state == expected);
        let Some(slot) = slot else { return false };
        *out = (slot.life, FreeOp::of(op));
        slot.life = Life::of(op);
        slot.state.0 ^= SlotState::LIVE;
        // A page that may have live objects has its birth mark.
        if PAGES && self.heads.get(at.head as usize).is_some_and(|head| !(is_free | head.may_live)) {
            self.note_birth(at);
        }
        true
    }

    /// [`LifeTable::turn`] for an address that has another location since the batch was located, or none yet: an allocated
    /// object gets one.
    #[inline(never)]
    fn turn_again<const PAGES: bool>(
        &mut self,
        op: &Op,
        at: &mut SlotLocation,
        out: &mut (Life, FreeOp),
    ) -> bool {
        if self.is_at(*at, op.value) || !op.code.is_slab() {
            return false;
        }
        *at = self.locate(op.value);
        if *at == SlotLocation::NONE && !op.code.is_slab_free() && is_object(op.value) {
            *at = self.add(op.value);
        }
        self.turn::<PAGES>(op, *at, out)
    }

    /// Fast path for a birth at a live address whose life had replaced another one (R5), without other pending
    /// decisions: frequent with caches that free in bulk. Returns the oldest of the three lives, whose end is decided: the
    /// birth of the second one, which it returns too.
    #[inline]
    pub fn replace(&mut self, at: SlotLocation, op: &Op) -> Option<(Life, Life)> {
        let slot = self.slots.get_mut(at.slot as usize)?;
        let Some(PendingLife::Replaced { old, last_report }) = self.pending.get_mut(slot.pending()) else {
            return None;
        };
        let settled = std::mem::replace(old, std::mem::replace(&mut slot.life, Life::of(op)));
        *last_report = op.time;
        Some((settled, *old))
    }
}
