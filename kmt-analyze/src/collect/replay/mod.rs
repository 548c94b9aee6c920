//! Replays the allocations of the trace on a slab allocator with other size classes.
//!
//! The model: an object takes the smallest class that fits, and a slot of the fullest slab of its class with room; an
//! empty slab is freed, except for the number of empty slabs that SLUB keeps (min_partial, mm/slub.c). It counts slabs,
//! so it measures classes by held memory and not by allocated bytes.

mod layout;
mod pool;

use std::collections::HashMap;

use super::collector::{Collector, Route, Share};
use super::sums::{Sums, grown, sums};
use crate::int_hash::IntHash;
use crate::ledger::{Change, Interests, Receiver};
use crate::stream::Api;
pub use layout::{Layout, best_classes};
use pool::Pool;

/// State of one layout.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Played {
    layout: Layout,
    page_size: u64,
    pools: Vec<Pool>,
    /// By size of the class, and a bit for separated call sites.
    pool_of: HashMap<u64, u32, IntHash>,
    /// By address: pool, slab, bytes of the class.
    objects: HashMap<u64, (u32, u32, u64), IntHash>,
    /// Slab bytes held.
    pub bytes_held: u64,
    /// The highest.
    pub bytes_held_max: u64,
    /// Bytes allocated.
    pub bytes_live: u64,
    /// The highest.
    pub bytes_live_max: u64,
    /// Bytes allocated beyond those requested, over all allocations.
    pub bytes_wasted: u64,
    /// Bytes allocated, over all allocations.
    pub bytes_alloc: u64,
    /// Sum over time of held bytes, in bytes x the clock's unit.
    pub held_time: u128,
    /// Requests that no class can serve.
    pub not_served: u64,
    last: Option<u64>,
}

impl Played {
    fn new(layout: Layout, page_size: u64) -> Self {
        Self { layout, page_size, ..Self::default() }
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Advances the time; only memory held from `start` on counts.
    fn pass(&mut self, time: u64, start: u64) {
        if let Some(last) = self.last {
            let span = time.max(start).saturating_sub(last.max(start));
            let held = u128::from(self.bytes_held).saturating_mul(span.into());
            self.held_time = self.held_time.saturating_add(held);
        }
        if time >= start {
            // The memory held at the begin of the window may be the peak.
            self.bytes_held_max = self.bytes_held_max.max(self.bytes_held);
            self.bytes_live_max = self.bytes_live_max.max(self.bytes_live);
        }
        self.last = Some(time);
    }

    fn alloc(&mut self, change: &Change<'_>, counts: bool) {
        let req = change.site.bytes_req;
        let Some(size) = self.layout.size(req, change.site.bytes_alloc) else {
            self.not_served += u64::from(counts);
            return;
        };
        let apart = self.layout.apart.contains(&change.site.caller);
        let key = size << 1 | u64::from(apart);
        let (pools, page_size) = (&mut self.pools, self.page_size);
        let number = *self.pool_of.entry(key).or_insert_with(|| {
            pools.push(Pool::new(size, page_size));
            pools.len() as u32 - 1
        });
        let Some(pool) = self.pools.get_mut(number as usize) else { return };
        let (slab, is_new) = pool.take();
        let slab_bytes = pool.slab_bytes;
        self.objects.insert(change.address, (number, slab, size));
        self.bytes_held = self.bytes_held.saturating_add(if is_new { slab_bytes } else { 0 });
        self.bytes_live = self.bytes_live.saturating_add(size);
        if !counts {
            return;
        }
        self.bytes_alloc = self.bytes_alloc.saturating_add(size);
        self.bytes_wasted = self.bytes_wasted.saturating_add(size.saturating_sub(req));
        self.bytes_held_max = self.bytes_held_max.max(self.bytes_held);
        self.bytes_live_max = self.bytes_live_max.max(self.bytes_live);
    }

    fn free(&mut self, address: u64) {
        let Some((pool, slab, size)) = self.objects.remove(&address) else { return };
        self.bytes_live = self.bytes_live.saturating_sub(size);
        if let Some(pool) = self.pools.get_mut(pool as usize) {
            if pool.give(slab) {
                self.bytes_held = self.bytes_held.saturating_sub(pool.slab_bytes);
            }
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
    type Part = ReplayPart;
    type Output = ReplaySums;

    fn interests(&self) -> Interests {
        Interests::CHANGES
    }

    /// A layout needs every object in order; layouts are distributed over parts.
    fn route(&self) -> Route {
        Route::All
    }

    fn partition(&self, share: &Share) -> ReplayPart {
        let rules = &share.rules;
        let layouts = (0u32..).zip(&self.layouts).filter(|(number, _)| number % share.of == share.index);
        let played = layouts.map(|(number, layout)| (number, Played::new(layout.clone(), rules.page_size)));
        ReplayPart {
            share: *share,
            played: played.collect(),
            requests: HashMap::default(),
            callers: Vec::new(),
            births: HashMap::default(),
            window: rules.window,
        }
    }

    fn merge(&self, mut first: ReplayPart, others: Vec<ReplayPart>) -> ReplaySums {
        first.finish(self.end);
        for mut part in others {
            part.finish(self.end);
            first.played.extend(part.played);
            first.requests.absorb(part.requests);
            first.callers.absorb(part.callers);
        }
        first.played.sort_by_key(|(number, _)| *number);
        let played = first.played.into_iter().map(|(_, played)| played).collect();
        ReplaySums { played, requests: first.requests, callers: first.callers }
    }
}

/// States of layouts, and requests.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReplaySums {
    /// Final state of each layout.
    pub played: Vec<Played>,
    /// By bytes requested and bytes allocated.
    pub requests: HashMap<(u64, u64), Requests, IntHash>,
    /// Objects and the sum of their holding times, by number of the call site.
    pub callers: Vec<Requests>,
}

/// Layouts and requests of one part.
#[derive(Debug)]
pub struct ReplayPart {
    share: Share,
    /// With their numbers.
    played: Vec<(u32, Played)>,
    requests: HashMap<(u64, u64), Requests, IntHash>,
    callers: Vec<Requests>,
    /// By address: time of birth; bytes requested, bytes allocated, call site.
    births: HashMap<u64, (u64, (u64, u64, u32)), IntHash>,
    window: (u64, u64),
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

impl Receiver for ReplayPart {
    fn changed(&mut self, change: &Change<'_>) {
        let site = change.site;
        if site.api != Api::Kmalloc || site.is_large || !change.selected || change.time > self.window.1 {
            return;
        }
        // Objects from before the window are live in it, but not counted as its allocations.
        let (start, counts) = (self.window.0, u64::from(change.time >= self.window.0));
        for (_, played) in &mut self.played {
            played.pass(change.time, start);
            if change.is_birth { played.alloc(change, counts == 1) } else { played.free(change.address) }
        }
        if !self.share.owns(change.address) {
            return;
        }
        let requests = self.requests.entry((site.bytes_req, site.bytes_alloc)).or_default();
        let caller = grown(&mut self.callers, site.caller);
        if change.is_birth {
            requests.allocs += counts;
            requests.live += 1;
            caller.allocs += counts;
            caller.live += 1;
            let kind = (site.bytes_req, site.bytes_alloc, site.caller);
            self.births.insert(change.address, (change.time, kind));
        } else {
            requests.live = requests.live.saturating_sub(1);
            caller.live = caller.live.saturating_sub(1);
            let born = self.births.remove(&change.address).map_or(change.time, |b| b.0);
            let held = u128::from(change.time.max(start).saturating_sub(born.max(start)));
            requests.held = requests.held.saturating_add(held);
            caller.held = caller.held.saturating_add(held);
        }
    }
}

impl ReplayPart {
    /// Adds the time of objects that are live at the end.
    fn finish(&mut self, end: u64) {
        let start = self.window.0;
        self.played.iter_mut().for_each(|(_, played)| played.pass(end, start));
        for (born, site) in std::mem::take(&mut self.births).into_values() {
            let held = u128::from(end.saturating_sub(born.max(start)));
            if let Some(requests) = self.requests.get_mut(&(site.0, site.1)) {
                requests.held = requests.held.saturating_add(held);
            }
            let caller = grown(&mut self.callers, site.2);
            caller.held = caller.held.saturating_add(held);
        }
    }
}
