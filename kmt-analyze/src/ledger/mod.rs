//! The exact ledger of slab objects: one owner for every address, by the rules R1 to R11.
//!
//! - R1 Events count in merge order; addresses are compared by their low 56 bits.
//! - R2 An allocation of address 0 is a failure. R3 Frees of 0 and of 1 to 16 are no frees of objects.
//! - R4 A large kmalloc with two events is one life.
//! - R5 An allocation of a live address is an implied free of the old life; R6 unless a late free event follows. The next
//!   free tells, if it is not behind what is read for the window ([`Rules::last_read`]).
//! - R7 A page free or allocation under a live object is an implied free likewise.
//! - R9 A free matches the life of its address, whichever API it used.
//! - R10 A free without a life is of an untraced allocation if its address or page had events, else of an object
//!   allocated before the trace. The last event of its address shows if it may be a double free ([`lives::NoLife`]).
//! - R11 A free on another CPU than the allocation is a cross-CPU free.
//! - R12 Pages have a ledger of their own, by frame ([`frames`]); vmalloc and percpu areas too, by address ([`areas`]).
//! - R13 An object passed to kfree_rcu, if that was recorded, ends for its owner; the kernel frees it within
//!   [`Rules::deferred_max`], with or without an event, which then is not a free of its own.
//!
//! A life is added up when its end is known, by the times of its events, so that a time window selects which lives are
//! counted, not which events are matched.

pub mod areas;
pub mod arena;
pub mod batch;
mod close;
pub mod direct_map;
pub mod events;
mod folded;
pub mod frames;
pub mod lives;
pub mod owners;
mod plain;
pub mod receiver;
mod site_lives;
mod slab;
mod slab_stacks;
pub mod table;
mod tables;
pub mod totals;

pub use crate::stream::Interests;
pub use close::Balance;
pub use events::{
    Area, AreaKind, Change, Closed, ClosedArea, ClosedFrames, FreedPlain, PageEvent, PageGroup, PlainLife,
    SideEvent,
};
pub use folded::{FoldedLives, FoldedPages};
pub use receiver::Receiver;
pub use site_lives::SiteTotals;
pub use tables::{Choice, SiteInfo, Tables};

use std::collections::{HashMap, HashSet};

use crate::int_hash::IntHash;
use crate::ledger::direct_map::{DirectMap, Election};
use crate::ledger::totals::{EventCounts, OlderSums, RawSums};
use crate::stream::op::{Kind, Op};
use crate::stream::{NameId, NewItems, PageSite, SideEventKind, SideNumbers, StackOf};
use crate::trace::ages::Ages;
use crate::trace::loss_spans::LossCursor;
use crate::trace::losses::Losses;
use areas::Areas;
use frames::Frames;
use lives::{ADDRESS_BITS, FreeOp, Life};
use plain::Replaced;
use site_lives::SiteLives;
use slab_stacks::SlabStacks;
use table::{LifeTable, SlotLocation};

/// Parameters of the rules.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Page size of the target in bytes.
    pub page_size: u64,
    /// One millisecond in the clock's unit: the bound of late frees and duplicate events.
    pub late_bound: u64,
    /// True if the kernel logs kmem_cache_free after the free: before 5.19, or unknown version.
    pub late_frees: bool,
    /// Base of the direct map, if found.
    pub direct_map: Option<DirectMap>,
    /// First and last counted time.
    pub window: (u64, u64),
    /// Frame number of a failed page allocation: all bits of the kernel's long.
    pub no_frame: u64,
    /// Time of the last event.
    pub last: u64,
    /// Longest wait of an object passed to kfree_rcu, in the clock's unit: `DEFERRED_MS_MAX`.
    pub deferred_max: u64,
    /// Number of possible CPUs; 0: unknown.
    pub cpus: u64,
    /// Lengths of lives.
    pub ages: Ages,
}

/// Longest wait of an object passed to kfree_rcu in practice, in milliseconds: KFREE_DRAIN_JIFFIES (5 s) twice, where both
/// batches are busy, and a grace period (kernel/rcu/tree.c of 6.1, mm/slab_common.c of 6.18). Sheaves that do not fill up
/// (mm/slub.c of 6.18 and later) keep a few objects a CPU for longer.
pub const DEFERRED_MS_MAX: u64 = 15_000;

/// Largest scanned block in bytes: no kernel has larger ones (512 MiB: MAX_PAGE_ORDER is 13 on arm64 with pages of 64
/// KiB, 4.4 to 7.2), but a file may contain any page size and order.
const BLOCK_BYTES_MAX: u64 = 1 << 30;

impl Rules {
    /// Bytes of a block of 2^order pages.
    fn block_bytes(&self, order: u8) -> u64 {
        (self.page_size << order.min(frames::ORDER_MAX)).min(BLOCK_BYTES_MAX)
    }

    /// Time of the last event that may change what is counted in the window: a free in it may be logged late, and a
    /// kmalloc may have a duplicate event, by at most `late_bound`.
    pub fn last_read(&self) -> u64 {
        self.window.1.saturating_add(self.late_bound)
    }

    /// True if an object passed to kfree_rcu at `time` may not be freed yet at the end of the window.
    fn is_waiting(&self, time: u64) -> bool {
        let end = self.window.1.min(self.last);
        time <= end && end - time <= self.deferred_max
    }
}

pub struct Ledger<'l, R> {
    rules: Rules,
    losses: &'l Losses,
    choice: Choice<'l>,
    tables: Tables,
    /// Fields of side events whose operations have not come yet.
    side_numbers: HashMap<u64, SideNumbers, IntHash>,
    /// True if nothing is filtered out and no report needs each life.
    is_plain: bool,
    has_losses: bool,
    loss_cursor: LossCursor,
    table: LifeTable,
    slots: Vec<SlotLocation>,
    /// Lives that ended in this batch, to be added up, and their frees.
    ended: Vec<(Life, FreeOp)>,
    ended_count: usize,
    /// Lives whose implied free was decided in this batch, to be added up.
    replaced: Vec<Replaced>,
    frames: Frames,
    areas: Areas,
    /// Empty unless a receiver needs stacks of slab objects.
    slab_stacks: SlabStacks,
    /// Tasks whose next slab allocation receivers need.
    awaited: HashSet<i32, IntHash>,
    sites: Vec<SiteLives>,
    named_outside: HashMap<(u32, NameId), u64>,
    counts: [EventCounts; 2],
    raw: RawSums,
    older: OlderSums,
    interests: Interests,
    receiver: R,
    /// True if the next operations only end lives, and name their caches: they are behind what is read for the window.
    is_decided: bool,
    election: Option<Election>,
}

/// Up to this number of pages, each page is looked up.
const FEW_PAGES: u64 = 64;

impl<'l, R: Receiver> Ledger<'l, R> {
    /// An empty ledger. The receiver gets the events of `interests`.
    pub fn new(
        rules: Rules,
        losses: &'l Losses,
        choice: Choice<'l>,
        interests: Interests,
        receiver: R,
        election: Option<Election>,
    ) -> Self {
        let needs_each = Interests::LIVES | Interests::SLAB_STACKS;
        let is_plain = choice.is_open && rules.window == (0, u64::MAX) && !interests.intersects(needs_each);
        Self {
            rules,
            losses,
            choice,
            tables: Tables::new(rules.page_size),
            side_numbers: HashMap::default(),
            is_plain,
            has_losses: losses.has_spans(),
            loss_cursor: losses.cursor(),
            table: LifeTable::default(),
            slots: Vec::new(),
            ended: Vec::new(),
            ended_count: 0,
            replaced: Vec::new(),
            frames: Frames::default(),
            areas: Areas::default(),
            slab_stacks: SlabStacks::default(),
            awaited: HashSet::default(),
            sites: Vec::new(),
            counts: Default::default(),
            named_outside: HashMap::new(),
            raw: RawSums::default(),
            older: OlderSums::default(),
            interests,
            receiver,
            is_decided: false,
            election,
        }
    }

    /// Base of the direct map, by all votes so far (R8).
    pub fn elected(&self) -> Option<DirectMap> {
        self.election.as_ref().and_then(Election::result)
    }

    /// Adds items that later operations name.
    pub fn learn(&mut self, new_items: &NewItems) {
        self.tables.add(new_items);
        self.side_numbers.extend(new_items.side_numbers.iter().copied());
        for number in self.sites.len()..self.tables.site_count() {
            self.sites.push(SiteLives::new(self.tables.site(number as u32)));
        }
    }

    /// Enters operations in their order. Those behind what is read for the window change nothing but ends of lives.
    pub fn enter(&mut self, ops: &[Op]) {
        let last = self.rules.last_read();
        if last < u64::MAX && !self.is_decided {
            if let Some((inside, behind)) =
                ops.iter().position(|op| op.time > last).and_then(|first| ops.split_at_checked(first))
            {
                self.enter_all(inside);
                self.decide();
                return self.enter_all(behind);
            }
        }
        self.enter_all(ops);
    }

    fn enter_all(&mut self, ops: &[Op]) {
        if let Some(election) = &mut self.election {
            election.add(
                ops,
                self.rules.last_read(),
                self.rules.no_frame,
                |number| self.tables.origin(number).origin,
                |number| self.tables.page_site(number).site,
            );
        }
        self.locate(ops);
        if self.ended.len() < ops.len() {
            self.ended.resize(ops.len(), Default::default());
        }
        let wants_allocs = self.interests.intersects(Interests::SLAB_ALLOCS | Interests::SLAB_STACKS);
        let mut index = 0;
        loop {
            if self.is_plain {
                index = self.enter_plain(ops, index);
            }
            let Some(op) = ops.get(index) else { break };
            let mut slot = self.slots.get(index).copied().unwrap_or(SlotLocation::NONE);
            // The fast path has just looked it up.
            if !self.is_plain && op.code.is_slab() && !self.table.is_at(slot, op.value) {
                slot = self.table.locate(op.value);
            }
            if wants_allocs && op.code.kind() == Kind::Alloc {
                self.hand_alloc(op);
            }
            match op.code.kind() {
                Kind::Alloc => self.alloc(op, slot),
                Kind::Kfree | Kind::CacheFree => self.free(op, slot),
                Kind::PageAlloc => self.page_alloc(op),
                Kind::PageFree => self.page_free(op),
                Kind::Stack => self.stack(op),
                Kind::SideEvent => self.side_event(op),
                Kind::FreeRcu => self.free_rcu(op),
                Kind::Other => {}
            }
            index += 1;
        }
        self.close_ended();
    }

    /// Loads slots and pending decisions of the whole batch early, so that cache misses overlap.
    fn locate(&mut self, ops: &[Op]) {
        if self.slots.len() < ops.len() {
            self.slots.resize(ops.len(), SlotLocation::NONE);
        }
        let Self { table, slots, frames, .. } = self;
        table.locate_all(ops, slots, |op| {
            if op.code.is_page() {
                frames.touch(op.value);
            }
        });
    }

    #[inline]
    fn in_window(&self, time: u64) -> bool {
        (self.rules.window.0..=self.rules.window.1).contains(&time)
    }

    /// Passes a slab allocation on before it is entered, if a receiver waits for one of its task.
    fn hand_alloc(&mut self, op: &Op) {
        if self.interests.contains(Interests::SLAB_STACKS) {
            self.slab_stacks.alloc(op);
        }
        if self.awaited.is_empty() {
            return;
        }
        let origin = self.tables.origin(op.origin);
        if self.awaited.contains(&origin.origin.pid) {
            let counted = origin.selected && self.in_window(op.time);
            self.receiver.slab_alloc(op, origin.origin, counted);
            if counted {
                self.awaited.remove(&origin.origin.pid);
            }
        }
    }

    /// The next slab allocation of the task goes to receivers.
    fn awaits_alloc(&mut self, pid: i32) {
        if self.interests.contains(Interests::SLAB_ALLOCS) {
            self.awaited.insert(pid);
        }
    }

    /// Adds the stack of an allocation, unless it may not be read: that depends on what is wanted.
    fn stack(&mut self, op: &Op) {
        if op.time > self.rules.last_read() {
            return;
        }
        match StackOf::of(op.value) {
            StackOf::Slab if self.interests.contains(Interests::SLAB_STACKS) => self.slab_stacks.stack(op),
            StackOf::Slab => {}
            StackOf::Pages => self.frames_stack(op),
            StackOf::Area => self.areas.stack(op),
        }
    }

    /// Passes a side event to the receiver, or enters it into the ledger of areas.
    #[inline(never)]
    fn side_event(&mut self, op: &Op) {
        let Some(kind) = SideEventKind::of(op.code.number()) else { return };
        let numbers = if kind.has_fields() { self.side_numbers.remove(&op.value) } else { None };
        let numbers = numbers.unwrap_or_default();
        let origin = *self.tables.origin(op.origin);
        if kind.is_about_areas() {
            return self.area(kind, &numbers, op, origin.selected);
        }
        if self.interests.intersects(Interests::ANY_SIDE_EVENTS) && origin.selected && self.in_window(op.time)
        {
            self.awaits_alloc(origin.origin.pid);
            self.receiver.side_event(&SideEvent { kind, numbers, time: op.time, origin: origin.origin });
        }
    }

    /// Enters an allocation of 2^order pages.
    fn page_alloc(&mut self, op: &Op) {
        let site = *self.tables.page_site(op.code.number());
        let origin = *self.tables.origin(op.origin);
        let selected = site.selected && origin.selected && self.is_chosen_block(op.value, site.site.order);
        if op.value != self.rules.no_frame {
            self.page_event(op.value, site.site.order, op.time);
        }
        if self.interests.contains(Interests::PAGES) {
            self.awaits_alloc(origin.origin.pid);
            let failed = op.value == self.rules.no_frame;
            let counted = selected && self.in_window(op.time);
            self.receiver.page_alloc(&PageEvent {
                op: *op,
                site: site.site,
                origin: origin.origin,
                failed,
                counted,
            });
        }
        self.frames_alloc(op, site.site, selected);
    }

    /// True if a block of 2^order pages counts by its frames. A failed allocation has none.
    fn is_chosen_block(&self, pfn: u64, order: u8) -> bool {
        let last = pfn.saturating_add((1 << order.min(frames::ORDER_MAX)) - 1);
        self.choice.frames.is_none_or(|counts| pfn != self.rules.no_frame && counts(pfn, last))
    }

    /// Enters a free of 2^order pages.
    fn page_free(&mut self, op: &Op) {
        let order = op.code.number() as u8;
        self.page_event(op.value, order, op.time);
        let origin = *self.tables.origin(op.origin);
        let selected = origin.selected && self.choice.events;
        if self.interests.contains(Interests::PAGES) {
            let site = PageSite { order: order.min(frames::ORDER_MAX), ..PageSite::default() };
            let counted = selected && self.in_window(op.time);
            let origin = origin.origin;
            self.receiver.page_free(&PageEvent { op: *op, site, origin, failed: false, counted });
        }
        self.frames_free(op, order, selected);
    }

    /// Rule R7: ends the lives on these frames.
    fn page_event(&mut self, pfn: u64, order: u8, time: u64) {
        let Some(map) = self.rules.direct_map else { return };
        let bytes = self.rules.block_bytes(order);
        let start = map.base.wrapping_add(pfn.wrapping_mul(self.rules.page_size));
        let mut at = start;
        let mut left = bytes >> table::PAGE_SHIFT;
        while left > 0 {
            let region = (table::REGION_PAGES - (at >> table::PAGE_SHIFT) % table::REGION_PAGES).min(left);
            // In large ranges, regions without births since the last scan are skipped.
            if bytes >> table::PAGE_SHIFT <= FEW_PAGES
                || self.table.may_live_in(at, region == table::REGION_PAGES)
            {
                self.pages_gone(at, region, time);
            }
            at = at.wrapping_add(region << table::PAGE_SHIFT);
            left -= region;
        }
    }

    fn pages_gone(&mut self, start: u64, count: u64, time: u64) {
        for page in 0..count {
            let page = start.wrapping_add(page << table::PAGE_SHIFT) & ADDRESS_BITS;
            for address in self.table.living_in_page(page) {
                self.page_gone(address, time);
            }
        }
    }
}

#[cfg(test)]
mod tests;
