//! Table of lives: by page of 4 KiB, and in it by offset.
//!
//! Objects of one page have one size, so their offsets, shifted by its zero bits, are nearly always a perfect hash. The
//! small head of a page stays in the processor's caches: an event reads one head, mostly near, and one slot, which may
//! be far. The ledger locates a whole batch before it enters it, so that cache misses overlap. A page event finds the
//! lives on its frame without another index. An address with an event keeps its slot (rule R10 needs it), so memory is
//! bounded by the addresses that the target's allocator uses, not by the length of the trace.

use std::collections::HashMap;

use super::arena::Arena;
use super::lives::{ADDRESS_BITS, FreedOnce, Life, NEW_PAGE, NO_SITE, PendingLife, ZERO_SIZE_PTR};
use crate::int_hash::{IntHash, Seed};
use crate::stream::Op;

/// log2 of the page size of the table; the target's pages may be larger.
pub const PAGE_SHIFT: u32 = 12;

/// Pages of a region: large ranges are scanned by regions.
pub const REGION_PAGES: u64 = 512;
/// Number of birth marks; regions share them by hash.
const MARKS: usize = 1 << 12;

/// State of one address.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    /// Its life. Without one: the last free that ended a life, with its time as birth, or the last life if no free ended
    /// it; the site may be [`NO_SITE`] or [`NEW_PAGE`].
    pub life: Life,
    /// Offset in the page, or [`UNUSED`].
    offset: u16,
    /// True if an object is live there.
    pub is_live: bool,
    /// Number of the pending decision, or [`NOTHING`].
    pending: u32,
}

impl Slot {
    /// True if no decision is pending.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.pending == NOTHING
    }
}

// Memory for each address, and the processor's caches.
const _: () = assert!(size_of::<Slot>() == 24);

const UNUSED: u16 = u16::MAX;
const NOTHING: u32 = u32::MAX;

const EMPTY: Slot =
    Slot { life: Life { born: 0, site: 0, origin: 0 }, offset: UNUSED, is_live: false, pending: NOTHING };

/// One page: its number and its slots.
#[derive(Debug, Clone, Copy)]
struct SlotHead {
    page: u64,
    first_slot: u32,
    /// True if objects were born since the last look for live ones.
    may_live: bool,
    /// log2 of the number of slots, and the zero bits of offsets.
    slots_log2: u8,
    offset_shift: u8,
}

/// No head in the index.
const NONE: u32 = u32::MAX;
/// Smallest number of index places for each head: collisions are rare, which keeps branches predictable.
const SPARSE: usize = 8;

/// log2 of the slots of a new page.
const FIRST_LOG2: u8 = 1;

/// Position of a page's head and of a slot; valid until slots move ([`LifeTable::generation`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotLocation {
    head: u32,
    slot: u32,
}

impl SlotLocation {
    /// The address had no event.
    pub const NONE: Self = Self { head: u32::MAX, slot: u32::MAX };
}

/// All addresses with events.
#[derive(Debug)]
pub struct LifeTable {
    heads: Vec<SlotHead>,
    /// Numbers of heads, by the hash of their page.
    index: Vec<u32>,
    slots: Vec<Slot>,
    /// Unused blocks of slots, by log2 of their length.
    spare: [Vec<u32>; 16],
    pending: Arena<PendingLife>,
    freed_once: Arena<FreedOnce>,
    /// Incremented when slots move.
    generation: u32,
    seed: Seed,
    /// Last scan of each region that has pages.
    regions: HashMap<u64, u32, IntHash>,
    /// Last scan before the latest birth, by the low bits of a region's number.
    births: Box<[u32; MARKS]>,
    /// Number of scans.
    scans: u32,
}

impl Default for LifeTable {
    fn default() -> Self {
        Self {
            heads: Vec::new(),
            index: vec![NONE; 1 << 12],
            slots: Vec::new(),
            spare: Default::default(),
            pending: Arena::default(),
            freed_once: Arena::default(),
            generation: 0,
            seed: Seed::of_this_run(),
            regions: HashMap::default(),
            births: Box::new([0; MARKS]),
            scans: 0,
        }
    }
}

impl LifeTable {
    /// Incremented when slots move: locations found before may be invalid.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Number of a page's head, and its position in the index.
    #[inline]
    fn find(&self, page: u64) -> (u32, usize) {
        find(&self.index, &self.heads, self.seed, page)
    }

    /// Location of `address`; [`SlotLocation::NONE`] if it had no event.
    #[inline]
    pub fn locate(&self, address: u64) -> SlotLocation {
        locate((&self.index, &self.heads, &self.slots), self.seed, address)
    }

    /// Locations of the addresses of operations on slab objects. Loads their slots, and pending decisions, so that cache
    /// misses overlap; returned is what keeps the loads alive.
    pub fn locate_all(&self, ops: &[Op], found: &mut [SlotLocation]) -> u64 {
        let parts = (self.index.as_slice(), self.heads.as_slice(), self.slots.as_slice());
        let (seed, mut touched) = (self.seed, 0);
        for (found, op) in found.iter_mut().zip(ops) {
            if op.code.is_slab() {
                *found = locate(parts, seed, op.value);
                let slot = parts.2.get(found.slot as usize);
                if let Some(slot) = slot.filter(|slot| slot.pending != NOTHING) {
                    let pending = self.pending.get(slot.pending);
                    touched ^= pending.map_or(0, |p| u64::from(matches!(p, PendingLife::Folded(_))));
                }
            }
        }
        touched
    }

    /// Adds an address without earlier events.
    #[cold]
    pub fn add(&mut self, address: u64) -> SlotLocation {
        let (page, offset) = (page_of(address), offset_of(address));
        let zeros = offset.trailing_zeros().min(11) as u8;
        let (mut number, at) = self.find(page);
        if number == NONE {
            number = self.heads.len() as u32;
            let first_slot = self.block(FIRST_LOG2);
            self.regions.entry(page / REGION_PAGES).or_insert(0);
            self.heads.push(SlotHead {
                page,
                first_slot,
                may_live: false,
                slots_log2: FIRST_LOG2,
                offset_shift: zeros,
            });
            if let Some(entry) = self.index.get_mut(at) {
                *entry = number;
            }
            if self.heads.len() * SPARSE > self.index.len() {
                self.grow();
            }
        }
        let Some(head) = self.heads.get(number as usize).copied() else { return SlotLocation::NONE };
        let used = self.page_slots(&head).iter().filter(|s| s.offset != UNUSED).count();
        // If every offset has its own slot, all slots may be used; else three quarters. A smaller shift would break up
        // long runs of probes.
        let offsets = (1usize << PAGE_SHIFT) >> head.offset_shift.min(zeros);
        let slots = 1usize << head.slots_log2;
        let is_full = if slots >= offsets { used >= slots } else { (used + 1) * 4 > 3 * slots };
        if is_full || zeros < head.offset_shift {
            let log2 = head.slots_log2 + u8::from(is_full);
            self.rebuild(number, log2, head.offset_shift.min(zeros));
        }
        let Some(head) = self.heads.get(number as usize).copied() else { return SlotLocation::NONE };
        SlotLocation { head: number, slot: self.put(&head, Slot { offset, ..EMPTY }) as u32 }
    }

    fn page_slots(&self, head: &SlotHead) -> &[Slot] {
        let first = head.first_slot as usize;
        self.slots.get(first..first + (1usize << head.slots_log2)).unwrap_or_default()
    }

    /// Stores a slot in the first free place after its home.
    fn put(&mut self, head: &SlotHead, slot: Slot) -> usize {
        let mask = (1usize << head.slots_log2) - 1;
        let first = head.first_slot as usize;
        let mut at = home(head, slot.offset) - first;
        while self.slots.get(first + at).is_some_and(|s| s.offset != UNUSED) {
            at = (at + 1) & mask;
        }
        if let Some(entry) = self.slots.get_mut(first + at) {
            *entry = slot;
        }
        first + at
    }

    /// Allocates a block of 2^log2 empty slots.
    fn block(&mut self, log2: u8) -> u32 {
        if let Some(first) = self.spare.get_mut(usize::from(log2)).and_then(Vec::pop) {
            return first;
        }
        let first = self.slots.len();
        self.slots.resize(first + (1 << log2), EMPTY);
        first as u32
    }

    /// Rebuilds a page with another number of slots, or another shift.
    fn rebuild(&mut self, number: u32, log2: u8, offset_shift: u8) {
        let Some(old) = self.heads.get(number as usize).copied() else { return };
        self.generation = self.generation.wrapping_add(1);
        let first_slot = self.block(log2);
        let new = SlotHead { first_slot, slots_log2: log2, offset_shift, ..old };
        for slot in old.first_slot as usize..(old.first_slot as usize + (1 << old.slots_log2)) {
            let Some(slot) = self.slots.get_mut(slot).map(|s| std::mem::replace(s, EMPTY)) else { continue };
            if slot.offset != UNUSED {
                self.put(&new, slot);
            }
        }
        if let Some(spare) = self.spare.get_mut(usize::from(old.slots_log2)) {
            spare.push(old.first_slot);
        }
        if let Some(head) = self.heads.get_mut(number as usize) {
            *head = new;
        }
    }

    fn grow(&mut self) {
        self.index = vec![NONE; self.index.len() * 2];
        for number in 0..self.heads.len() {
            let Some(page) = self.heads.get(number).map(|h| h.page) else { continue };
            let mask = self.index.len() - 1;
            let mut at = self.seed.spread(page) as usize & mask;
            while self.index.get(at).is_some_and(|n| *n != NONE) {
                at = (at + 1) & mask;
            }
            if let Some(entry) = self.index.get_mut(at) {
                *entry = number as u32;
            }
        }
    }

    /// The slot at a location.
    #[inline]
    pub fn slot_mut(&mut self, at: SlotLocation) -> Option<&mut Slot> {
        self.slots.get_mut(at.slot as usize)
    }

    /// Records a free that ended no life (R10). `new_page` is its time if its page was allocated since the last event.
    pub fn set_freed_unmatched(&mut self, at: SlotLocation, new_page: Option<u64>) {
        let Some(slot) = self.slots.get_mut(at.slot as usize) else { return };
        match new_page {
            Some(born) => slot.life = Life { born, site: NEW_PAGE, origin: 0 },
            None if slot.life.site == NEW_PAGE => {}
            None => slot.life.site = NO_SITE,
        }
    }

    /// Notes a birth.
    #[inline]
    pub fn note_birth(&mut self, at: SlotLocation) {
        if let Some(head) = self.heads.get_mut(at.head as usize) {
            head.may_live = true;
            self.births[mark_of(head.page)] = self.scans;
        }
    }

    /// True if the region of `address` may have live objects; with `is_whole` the caller scans all of it next.
    pub fn may_live_in(&mut self, address: u64, is_whole: bool) -> bool {
        let page = page_of(address);
        let Some(last) = self.regions.get_mut(&(page / REGION_PAGES)) else { return false };
        let may_live = self.births[mark_of(page)] >= *last;
        if may_live && is_whole {
            self.scans = self.scans.saturating_add(1);
            *last = self.scans;
        }
        may_live
    }

    /// Addresses with live objects, or possibly live ones, in the page of `address`; the caller ends them.
    pub fn living_in_page(&mut self, address: u64) -> Vec<u64> {
        let page = page_of(address);
        let number = self.find(page).0 as usize;
        let Some(head) = self.heads.get_mut(number).filter(|head| head.may_live) else { return Vec::new() };
        head.may_live = false;
        let head = *head;
        let lives = |s: &&Slot| s.is_live || matches!(self.pending(s), Some(PendingLife::FreedOnce(_)));
        let living = self.page_slots(&head).iter().filter(lives);
        living.map(|s| page << PAGE_SHIFT | u64::from(s.offset)).collect()
    }

    /// Pages with births, and the time of the last birth, by page.
    pub fn last_births(&self) -> Vec<(u64, u64)> {
        let last = |head: &SlotHead| {
            let used = self.page_slots(head).iter().filter(|s| s.offset != UNUSED && s.life.site != NEW_PAGE);
            used.map(|s| s.life.born).max().filter(|&born| born > 0)
        };
        let mut births: Vec<(u64, u64)> =
            self.heads.iter().filter_map(|head| Some((head.page, last(head)?))).collect();
        births.sort_unstable();
        births
    }

    /// All addresses and their slots.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Slot)> + '_ {
        self.heads.iter().flat_map(|head| {
            let page = head.page << PAGE_SHIFT;
            let used = self.page_slots(head).iter().filter(|s| s.offset != UNUSED);
            used.map(move |slot| (page | u64::from(slot.offset), *slot))
        })
    }

    /// Fast path of most events: births at addresses without a life, and frees of live objects, without pending decisions.
    /// Enters operations from the first on until one is of another kind; returns their number. `ended` gets the lives that
    /// ended, each with the position of its free: `count` is their number. `slots` are those of the operations; with
    /// `LOCATE` they are looked up again.
    ///
    /// No branch depends on the kind of event, since it is unpredictable.
    #[inline]
    pub fn exchange<const LOCATE: bool>(
        &mut self,
        ops: &[Op],
        slots: &[SlotLocation],
        from: usize,
        (ended, count): (&mut [(Life, u32)], &mut usize),
    ) -> usize {
        let (mut at, mut ended_count) = (from, *count);
        let (ops, slots) = (ops.get(from..).unwrap_or_default(), slots.get(from..).unwrap_or_default());
        for (op, slot) in ops.iter().zip(slots) {
            let is_free = op.code.is_slab_free();
            let is_object = op.code.is_slab() & (op.value & ADDRESS_BITS > ZERO_SIZE_PTR);
            // An address may have got its slot since the batch was located.
            let is_stale = LOCATE || *slot == SlotLocation::NONE;
            let location = if is_stale && is_object { self.locate(op.value) } else { *slot };
            let Some(slot) = self.slots.get_mut(location.slot as usize).filter(|_| is_object) else { break };
            if (slot.pending != NOTHING) | (slot.is_live != is_free) {
                break;
            }
            let new = Life { born: op.time, site: op.code.number(), origin: op.origin };
            let old = std::mem::replace(&mut slot.life, new);
            slot.is_live = !is_free;
            if let Some(head) = self.heads.get_mut(location.head as usize) {
                head.may_live |= !is_free;
            }
            self.births[mark_of(page_of(op.value))] = self.scans;
            if let Some(ended) = ended.get_mut(ended_count) {
                *ended = (old, at as u32);
            }
            ended_count += usize::from(is_free);
            at += 1;
        }
        *count = ended_count;
        at - from
    }

    /// Fast path for a birth at a live address whose life had replaced another one (R5), without other pending
    /// decisions: frequent with caches that free in bulk. Returns the oldest of the three lives, whose end is decided.
    #[inline]
    pub fn replace(&mut self, at: SlotLocation, op: &Op) -> Option<Life> {
        let slot = self.slots.get_mut(at.slot as usize)?;
        let Some(PendingLife::Replaced { old, last_report }) = self.pending.get_mut(slot.pending) else {
            return None;
        };
        let settled = std::mem::replace(old, slot.life);
        *last_report = op.time;
        slot.life = Life { born: op.time, site: op.code.number(), origin: op.origin };
        Some(settled)
    }

    /// Removes and returns the pending decision of a slot.
    #[inline]
    pub fn take_pending(&mut self, at: SlotLocation) -> Option<PendingLife> {
        let slot = self.slots.get_mut(at.slot as usize).filter(|s| s.pending != NOTHING)?;
        self.pending.take(std::mem::replace(&mut slot.pending, NOTHING))
    }

    /// Stores the pending decision after two allocations and a free.
    pub fn set_freed_once(&mut self, at: SlotLocation, freed_once: FreedOnce) {
        let number = self.freed_once.put(freed_once);
        self.set_pending(at, PendingLife::FreedOnce(number));
        self.note_birth(at);
    }

    /// Records a page event for an object that may have been freed already.
    pub fn record_page_gone(&mut self, number: u32, time: u64) {
        if let Some(freed_once) = self.freed_once.get_mut(number) {
            freed_once.page_gone = freed_once.page_gone.or(Some(time));
        }
    }

    /// Removes and returns a [`FreedOnce`].
    pub fn take_freed_once(&mut self, number: u32) -> Option<FreedOnce> {
        self.freed_once.take(number)
    }

    /// The pending decision of a slot.
    pub fn pending(&self, slot: &Slot) -> Option<PendingLife> {
        self.pending.get(slot.pending).copied()
    }

    /// Sets the pending decision of a slot that has none.
    pub fn set_pending(&mut self, at: SlotLocation, pending: PendingLife) {
        let number = self.pending.put(pending);
        if let Some(slot) = self.slots.get_mut(at.slot as usize) {
            slot.pending = number;
        }
    }
}

/// See [`LifeTable::find`].
#[inline(always)]
fn find(index: &[u32], heads: &[SlotHead], seed: Seed, page: u64) -> (u32, usize) {
    let mask = index.len().wrapping_sub(1);
    let mut at = seed.spread(page) as usize & mask;
    loop {
        let number = index.get(at).copied().unwrap_or(NONE);
        if heads.get(number as usize).is_none_or(|h| h.page == page) {
            return (number, at);
        }
        at = (at + 1) & mask;
    }
}

/// See [`LifeTable::locate`].
#[inline(always)]
fn locate((index, heads, slots): (&[u32], &[SlotHead], &[Slot]), seed: Seed, address: u64) -> SlotLocation {
    let (number, _) = find(index, heads, seed, page_of(address));
    let offset = offset_of(address);
    let Some(head) = heads.get(number as usize) else { return SlotLocation::NONE };
    let (first, mask) = (head.first_slot as usize, (1usize << head.slots_log2) - 1);
    let mut at = (usize::from(offset) >> head.offset_shift) & mask;
    for _ in 0..=mask {
        let Some(found) = slots.get(first + at) else { break };
        if found.offset == offset {
            return SlotLocation { head: number, slot: (first + at) as u32 };
        }
        if found.offset == UNUSED {
            break;
        }
        at = (at + 1) & mask;
    }
    SlotLocation::NONE
}

/// Index of the birth mark of a page's region.
#[inline]
fn mark_of(page: u64) -> usize {
    (page / REGION_PAGES) as usize & (MARKS - 1)
}

#[inline]
fn page_of(address: u64) -> u64 {
    (address & ADDRESS_BITS) >> PAGE_SHIFT
}

#[inline]
fn offset_of(address: u64) -> u16 {
    (address & ((1 << PAGE_SHIFT) - 1)) as u16
}

/// First probed slot.
#[inline]
fn home(head: &SlotHead, offset: u16) -> usize {
    let mask = (1usize << head.slots_log2) - 1;
    head.first_slot as usize + ((usize::from(offset) >> head.offset_shift) & mask)
}
