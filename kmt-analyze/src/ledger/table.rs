//! Table of lives: by page of 4 KiB, and in it by offset.
//!
//! Objects of one page have one size, so their offsets, shifted by its zero bits, are nearly always a perfect hash. The
//! small head of a page stays in the processor's caches: an event reads one head, mostly near, and one slot, which may
//! be far. The ledger locates a whole batch before it enters it, so that cache misses overlap. A page event finds the
//! lives on its frame without another index. An address with an event keeps its slot (rule R10 needs it), so memory is
//! bounded by the addresses that the target's allocator uses, not by the length of the trace.

mod fast;

use std::collections::HashMap;

use super::arena::Arena;
use super::lives::{ADDRESS_BITS, FreedOnce, Life, NEW_PAGE, NO_SITE, PendingLife, ZERO_SIZE_PTR};
use crate::int_hash::{IntHash, Seed};

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
    state: SlotState,
}

/// Offset in the page, or [`UNUSED`], if an object is live there, and the number of the pending decision plus 1, or 0: in
/// one piece, so that one comparison shows if a slot is as expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SlotState(u64);

impl SlotState {
    const LIVE: u64 = 1 << 16;
    const PENDING_SHIFT: u32 = 32;

    /// Of a slot without a pending decision.
    #[inline(always)]
    const fn plain(offset: u16, is_live: bool) -> Self {
        Self(offset as u64 | if is_live { Self::LIVE } else { 0 })
    }
}

impl Slot {
    /// True if no decision is pending.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.pending() == NOTHING
    }

    /// True if an object is live there.
    #[inline]
    pub fn is_live(&self) -> bool {
        self.state.0 & SlotState::LIVE != 0
    }

    /// Begins or ends a life.
    #[inline]
    pub fn set_live(&mut self, is_live: bool) {
        self.state.0 = self.state.0 & !SlotState::LIVE | if is_live { SlotState::LIVE } else { 0 };
    }

    #[inline]
    fn offset(&self) -> u16 {
        self.state.0 as u16
    }

    /// Number of the pending decision, or [`NOTHING`].
    #[inline]
    fn pending(&self) -> u32 {
        ((self.state.0 >> SlotState::PENDING_SHIFT) as u32).wrapping_sub(1)
    }

    fn set_pending(&mut self, number: u32) {
        let below = self.state.0 & ((1 << SlotState::PENDING_SHIFT) - 1);
        self.state.0 = below | u64::from(number.wrapping_add(1)) << SlotState::PENDING_SHIFT;
    }
}

// Memory for each address, and the processor's caches.
const _: () = assert!(size_of::<Slot>() == 24);

const UNUSED: u16 = u16::MAX;
const NOTHING: u32 = u32::MAX;

const EMPTY: Slot =
    Slot { life: Life { born: 0, site: 0, origin: 0 }, state: SlotState::plain(UNUSED, false) };

/// One page: its number and its slots.
#[derive(Debug, Clone, Copy)]
struct SlotHead {
    page: u64,
    first_slot: u32,
    /// Number of slots, a power of two, minus one.
    mask: u16,
    /// Zero bits of offsets.
    offset_shift: u8,
    /// True if objects were born since the last look for live ones.
    may_live: bool,
}

impl SlotHead {
    /// First probed slot of an offset.
    #[inline(always)]
    fn home(&self, offset: u16) -> usize {
        self.first_slot as usize + ((usize::from(offset) >> self.offset_shift) & usize::from(self.mask))
    }

    fn slots_log2(&self) -> u8 {
        self.mask.count_ones() as u8
    }
}

/// No head in the index.
const NONE: u32 = u32::MAX;
/// Smallest number of index places for each head: collisions are rare, which keeps branches predictable.
const SPARSE: usize = 8;

/// log2 of the slots of a new page.
const FIRST_LOG2: u8 = 1;

/// Position of a page's head and of a slot; valid until slots move ([`LifeTable::is_at`]).
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
    /// Number of used slots of each head.
    used: Vec<u16>,
    /// Numbers of heads, by the hash of their page.
    index: Vec<u32>,
    slots: Vec<Slot>,
    /// Unused blocks of slots, by log2 of their length.
    spare: [Vec<u32>; 16],
    /// Blocks whose slots moved since the last batch was located, to be used again after it.
    moved: Vec<(u8, u32)>,
    pending: Arena<PendingLife>,
    freed_once: Arena<FreedOnce>,
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
            used: Vec::new(),
            index: vec![NONE; 1 << 12],
            slots: Vec::new(),
            spare: Default::default(),
            moved: Vec::new(),
            pending: Arena::default(),
            freed_once: Arena::default(),
            seed: Seed::of_this_run(),
            regions: HashMap::default(),
            births: Box::new([0; MARKS]),
            scans: 0,
        }
    }
}

impl LifeTable {
    /// Number of a page's head, and its position in the index.
    #[inline]
    fn find(&self, page: u64) -> (u32, usize) {
        find(&self.index, &self.heads, self.seed, page)
    }

    /// Location of `address`; [`SlotLocation::NONE`] if it had no event.
    #[inline(never)]
    pub fn locate(&self, address: u64) -> SlotLocation {
        locate((&self.index, &self.heads, &self.slots), self.seed, address).0
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
            let mask: u16 = (1 << FIRST_LOG2) - 1;
            self.heads.push(SlotHead { page, first_slot, mask, offset_shift: zeros, may_live: false });
            self.used.push(0);
            if let Some(entry) = self.index.get_mut(at) {
                *entry = number;
            }
            if self.heads.len() * SPARSE > self.index.len() {
                self.grow();
            }
        }
        let Some(head) = self.heads.get(number as usize).copied() else { return SlotLocation::NONE };
        let Some(used) = self.used.get_mut(number as usize) else { return SlotLocation::NONE };
        *used += 1;
        let used = usize::from(*used - 1);
        // If every offset has its own slot, all slots may be used; else three quarters. A smaller shift would break up
        // long runs of probes.
        let offsets = (1usize << PAGE_SHIFT) >> head.offset_shift.min(zeros);
        let slots = usize::from(head.mask) + 1;
        let is_full = if slots >= offsets { used >= slots } else { (used + 1) * 4 > 3 * slots };
        if is_full || zeros < head.offset_shift {
            let log2 = head.slots_log2() + u8::from(is_full);
            self.rebuild(number, log2, head.offset_shift.min(zeros));
        }
        let Some(head) = self.heads.get(number as usize).copied() else { return SlotLocation::NONE };
        SlotLocation {
            head: number,
            slot: self.put(&head, Slot { state: SlotState::plain(offset, false), ..EMPTY }) as u32,
        }
    }

    fn page_slots(&self, head: &SlotHead) -> &[Slot] {
        let first = head.first_slot as usize;
        self.slots.get(first..first + usize::from(head.mask) + 1).unwrap_or_default()
    }

    /// Stores a slot in the first free place after its home.
    fn put(&mut self, head: &SlotHead, slot: Slot) -> usize {
        let mask = usize::from(head.mask);
        let first = head.first_slot as usize;
        let mut at = head.home(slot.offset()) - first;
        while self.slots.get(first + at).is_some_and(|s| s.offset() != UNUSED) {
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
        let first_slot = self.block(log2);
        let new = SlotHead { first_slot, mask: ((1u32 << log2) - 1) as u16, offset_shift, ..old };
        for slot in old.first_slot as usize..=(old.first_slot as usize + usize::from(old.mask)) {
            let Some(slot) = self.slots.get_mut(slot).map(|s| std::mem::replace(s, EMPTY)) else { continue };
            if slot.offset() != UNUSED {
                self.put(&new, slot);
            }
        }
        self.moved.push((old.slots_log2(), old.first_slot));
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
    #[inline(never)]
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
        let lives = |s: &&Slot| s.is_live() || matches!(self.pending(s), Some(PendingLife::FreedOnce(_)));
        let living = self.page_slots(&head).iter().filter(lives);
        living.map(|s| page << PAGE_SHIFT | u64::from(s.offset())).collect()
    }

    /// Pages with births, and the time of the last birth, by page.
    pub fn last_births(&self) -> Vec<(u64, u64)> {
        let last = |head: &SlotHead| {
            let used =
                self.page_slots(head).iter().filter(|s| s.offset() != UNUSED && s.life.site != NEW_PAGE);
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
            let used = self.page_slots(head).iter().filter(|s| s.offset() != UNUSED);
            used.map(move |slot| (page | u64::from(slot.offset()), *slot))
        })
    }

    /// Removes and returns the pending decision of a slot.
    #[inline]
    pub fn take_pending(&mut self, at: SlotLocation) -> Option<PendingLife> {
        let slot = self.slots.get_mut(at.slot as usize).filter(|s| !s.is_plain())?;
        let number = slot.pending();
        slot.set_pending(NOTHING);
        self.pending.take(number)
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
        self.pending.get(slot.pending()).copied()
    }

    /// Sets the pending decision of a slot that has none.
    pub fn set_pending(&mut self, at: SlotLocation, pending: PendingLife) {
        let number = self.pending.put(pending);
        if let Some(slot) = self.slots.get_mut(at.slot as usize) {
            slot.set_pending(number);
        }
    }
}

/// See [`LifeTable::find`].
#[inline(never)]
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

/// See [`LifeTable::locate`]; and the number of a pending decision there. Collisions are rare, and looked up by functions
/// of their own, without that number.
#[inline(always)]
fn locate(
    (index, heads, slots): (&[u32], &[SlotHead], &[Slot]),
    seed: Seed,
    address: u64,
) -> (SlotLocation, u32) {
    const NONE_THERE: (SlotLocation, u32) = (SlotLocation::NONE, NOTHING);
    let page = page_of(address);
    let at = seed.spread(page) as usize & index.len().wrapping_sub(1);
    let mut number = index.get(at).copied().unwrap_or(NONE);
    let Some(mut head) = heads.get(number as usize) else { return NONE_THERE };
    if head.page != page {
        number = find(index, heads, seed, page).0;
        let Some(found) = heads.get(number as usize) else { return NONE_THERE };
        head = found;
    }
    let (offset, at) = (offset_of(address), head.home(offset_of(address)));
    match slots.get(at) {
        Some(slot) if slot.offset() == offset => {
            (SlotLocation { head: number, slot: at as u32 }, slot.pending())
        }
        _ => (probe(slots, (number, head), offset), NOTHING),
    }
}

/// Location of an offset that is not in its first place.
#[inline(never)]
fn probe(slots: &[Slot], (number, head): (u32, &SlotHead), offset: u16) -> SlotLocation {
    let (first, mask) = (head.first_slot as usize, usize::from(head.mask));
    let mut at = head.home(offset) - first;
    for _ in 0..=mask {
        let found = slots.get(first + at).map_or(UNUSED, Slot::offset);
        if found == offset {
            return SlotLocation { head: number, slot: (first + at) as u32 };
        }
        if found == UNUSED {
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

/// False for addresses that are none of an object (R3).
#[inline]
fn is_object(address: u64) -> bool {
    address & ADDRESS_BITS > ZERO_SIZE_PTR
}
