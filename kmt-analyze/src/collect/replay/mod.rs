//! Replays the allocations of the trace on a slab allocator with other size classes.
//!
//! The model: an object takes the smallest class that fits, and a slot of the fullest slab of its class with room; an
//! empty slab is freed, except for the number of empty slabs that SLUB keeps (min_partial, mm/slub.c). It counts slabs,
//! so it measures classes by held memory and not by allocated bytes.

mod pool;

use std::collections::HashMap;
use std::ops::Range;

use super::collector::{Collector, PassFacts};
use super::sums::{Sums, grown, sums};
use crate::int_hash::IntHash;
use crate::ledger::{Change, Interests, Receiver};
use crate::stream::Api;
pub use pool::{Layout, best_classes};
use pool::{Objects, Pool};

/// State of one layout.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReplayedLayout {
    layout: Layout,
    page_size: u64,
    pools: Vec<Pool>,
    /// By size of the class, and a bit for separated call sites.
    pool_of: HashMap<u64, u32, IntHash>,
    /// Slab bytes held.
    pub bytes_held: u64,
    /// Highest slab bytes held.
    pub bytes_held_max: u64,
    /// Bytes allocated.
    pub bytes_live: u64,
    /// Highest bytes allocated.
    pub bytes_live_max: u64,
    /// Bytes allocated beyond those requested, over all allocations.
    pub bytes_wasted: u64,
    /// Bytes allocated, over all allocations.
    pub bytes_alloc: u64,
    /// Sum over time of held bytes, in bytes x the clock's unit.
    pub held_time: u128,
    /// Requests that no class can serve.
    pub not_served: u64,
    /// Time up to which held bytes are added up.
    last: u64,
}

/// Pool of the objects of a site that has not allocated yet.
const UNKNOWN: u32 = u32::MAX;
/// Pool of objects that no class can serve.
const NOT_SERVED: u32 = u32::MAX - 1;

/// Pool and slab of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    pool: u32,
    slab: u32,
}

impl Slot {
    /// Of an object that no class can serve.
    const NONE: Self = Self { pool: NOT_SERVED, slab: 0 };
}

impl ReplayedLayout {
    fn new(layout: Layout, page_size: u64) -> Self {
        Self { layout, page_size, ..Self::default() }
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Advances the time, before the held bytes change; only memory held from `start` on counts.
    fn pass(&mut self, time: u64, start: u64) {
        let span = time.max(start).saturating_sub(self.last.max(start));
        let held = u128::from(self.bytes_held).saturating_mul(span.into());
        self.held_time = self.held_time.saturating_add(held);
        self.last = self.last.max(time);
    }

    /// Bytes at the begin of the window, or later: they may be the peak.
    fn may_be_peak(&mut self) {
        self.bytes_held_max = self.bytes_held_max.max(self.bytes_held);
        self.bytes_live_max = self.bytes_live_max.max(self.bytes_live);
    }

    /// The pool of a site.
    fn pool(&mut self, change: &Change) -> u32 {
        let size = self.layout.size(change.site.bytes_req, change.site.bytes_alloc);
        let apart = self.layout.apart.contains(&change.site.caller);
        let (pools, page_size) = (&mut self.pools, self.page_size);
        size.map_or(NOT_SERVED, |size| {
            *self.pool_of.entry(size << 1 | u64::from(apart)).or_insert_with(|| {
                pools.push(Pool::new(size, page_size));
                pools.len() as u32 - 1
            })
        })
    }

    fn alloc(&mut self, number: u32, change: &Change, start: u64, slot: &mut Slot) {
        let counts = change.time >= start;
        let Some(pool) = self.pools.get_mut(number as usize) else {
            self.not_served += u64::from(counts);
            return;
        };
        let (slab, is_new) = pool.take();
        let (size, slab_bytes) = (pool.size, pool.slab_bytes);
        *slot = Slot { pool: number, slab };
        if is_new {
            self.pass(change.time, start);
            self.bytes_held = self.bytes_held.saturating_add(slab_bytes);
        }
        self.bytes_live = self.bytes_live.saturating_add(size);
        if !counts {
            return;
        }
        self.bytes_alloc = self.bytes_alloc.saturating_add(size);
        let wasted = size.saturating_sub(change.site.bytes_req);
        self.bytes_wasted = self.bytes_wasted.saturating_add(wasted);
        self.may_be_peak();
    }

    fn free(&mut self, slot: Slot, time: u64, start: u64) {
        let Some(pool) = self.pools.get_mut(slot.pool as usize) else { return };
        self.bytes_live = self.bytes_live.saturating_sub(pool.size);
        if pool.give(slot.slab) {
            let slab_bytes = pool.slab_bytes;
            self.pass(time, start);
            self.bytes_held = self.bytes_held.saturating_sub(slab_bytes);
        }
    }
}

/// Replays kmalloc's objects with several layouts at once, except those of whole pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// Layouts.
    pub layouts: Vec<Layout>,
    /// Time until which live objects are held.
    pub end: u64,
}

impl Collector for Replay {
    type State = ReplayState;
    type Output = ReplaySums;

    const INTERESTS: Interests = Interests::CHANGES;

    /// Each event goes through every layout.
    const IS_HEAVY: bool = true;

    fn begin(&self, PassFacts { rules, .. }: &PassFacts) -> ReplayState {
        let replayed = self.layouts.iter().map(|layout| ReplayedLayout::new(layout.clone(), rules.page_size));
        ReplayState {
            replayed: replayed.collect(),
            objects: Objects::default(),
            sites: Vec::new(),
            pools: Vec::new(),
            window: rules.window,
            end: self.end,
            has_begun: false,
        }
    }

    fn finish(mut state: ReplayState) -> ReplaySums {
        state.hold_live();
        let mut sums = ReplaySums::default();
        for site in state.sites.iter().flatten() {
            sums.requests.entry((site.bytes_req, site.bytes_alloc)).or_default().absorb(site.sums);
            grown(&mut sums.callers, site.caller).absorb(site.sums);
        }
        ReplaySums { replayed: state.replayed, ..sums }
    }
}

/// States of layouts, and requests.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReplaySums {
    /// Final state of each layout.
    pub replayed: Vec<ReplayedLayout>,
    /// By bytes requested and bytes allocated.
    pub requests: HashMap<(u64, u64), Requests, IntHash>,
    /// Objects and the sum of their holding times, by number of the call site.
    pub callers: Vec<Requests>,
}

/// Layouts, live objects and requests.
#[derive(Debug)]
pub struct ReplayState {
    replayed: Vec<ReplayedLayout>,
    objects: Objects,
    /// By number.
    sites: Vec<Option<SiteRequests>>,
    /// By number of the site, its pool in each layout.
    pools: Vec<u32>,
    window: (u64, u64),
    /// Time until which live objects are held.
    end: u64,
    /// True after the first change in the window.
    has_begun: bool,
}

/// Requests of a site.
#[derive(Debug)]
struct SiteRequests {
    bytes_req: u64,
    bytes_alloc: u64,
    caller: u32,
    sums: Requests,
}

/// Sums of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requests {
    /// Allocations.
    pub allocs: u64,
    /// Live objects.
    pub live: u64,
    /// Object time, in the clock's unit.
    pub held: u128,
}

sums!(Requests: allocs, live, held);

impl Receiver for ReplayState {
    fn changed(&mut self, change: &Change) {
        let site = change.site;
        if site.api != Api::Kmalloc || site.is_large || !change.selected || change.time > self.window.1 {
            return;
        }
        // Objects from before the window are live in it, but not counted as its allocations.
        let (start, counts) = (self.window.0, change.time >= self.window.0);
        let layouts = self.replayed.len();
        if counts && !std::mem::replace(&mut self.has_begun, true) {
            self.replayed.iter_mut().for_each(ReplayedLayout::may_be_peak);
        }
        let born = if change.is_birth {
            let pools = self.pools_of_site(change);
            let slots = self.objects.insert(change.address, change.time, change.life.site, layouts);
            let pools = self.pools.get(pools).unwrap_or_default();
            for ((replayed, slot), pool) in self.replayed.iter_mut().zip(slots).zip(pools) {
                replayed.alloc(*pool, change, start, slot);
            }
            None
        } else {
            let (born, slots) = self.objects.remove(change.address, layouts);
            let replayed = self.replayed.iter_mut().zip(slots);
            replayed.for_each(|(replayed, slot)| replayed.free(*slot, change.time, start));
            born.or(Some(change.time))
        };
        let requests = grown(&mut self.sites, change.life.site).get_or_insert_with(|| SiteRequests {
            bytes_req: site.bytes_req,
            bytes_alloc: site.bytes_alloc,
            caller: site.caller,
            sums: Requests::default(),
        });
        let sums = &mut requests.sums;
        let Some(born) = born else {
            sums.allocs += u64::from(counts);
            sums.live += 1;
            return;
        };
        sums.live = sums.live.saturating_sub(1);
        let held = u128::from(change.time.max(start).saturating_sub(born.max(start)));
        sums.held = sums.held.saturating_add(held);
    }
}

impl ReplayState {
    /// Places in `pools` of the site's pools, which are found at its first allocation.
    fn pools_of_site(&mut self, change: &Change) -> Range<usize> {
        let layouts = self.replayed.len();
        let first = change.life.site as usize * layouts;
        let places = first..first + layouts;
        if self.pools.len() < places.end {
            self.pools.resize(places.end, UNKNOWN);
        }
        let pools = self.pools.get_mut(places.clone()).unwrap_or_default();
        if pools.first() == Some(&UNKNOWN) {
            let found = self.replayed.iter_mut().map(|replayed| replayed.pool(change));
            pools.iter_mut().zip(found).for_each(|(pool, found)| *pool = found);
        }
        places
    }

    /// Adds the time of objects that are live at the end.
    fn hold_live(&mut self) {
        let (start, end) = (self.window.0, self.end);
        for replayed in &mut self.replayed {
            replayed.pass(end, start);
            replayed.may_be_peak();
        }
        for (born, site) in self.objects.iter() {
            if let Some(site) = self.sites.get_mut(site as usize).and_then(Option::as_mut) {
                let held = u128::from(end.saturating_sub(born.max(start)));
                site.sums.held = site.sums.held.saturating_add(held);
            }
        }
    }
}
