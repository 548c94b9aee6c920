//! Sums of bytes allocated beyond those requested, by kind and place.

use std::collections::BTreeMap;

use super::traced::Traced;
use crate::collect::sums::{Sums, sums};
use crate::stream::{Api, Site};

/// Cause of waste.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WasteKind {
    /// Bytes that kmalloc adds to reach a size class.
    ClassRounding,
    /// Bytes that kmalloc adds to reach whole pages of an order.
    OrderRounding,
    /// Bytes that a cache adds to its objects.
    CacheAlignment,
    /// Bytes of slabs after the last object.
    SlabTail,
    /// Unused bytes of nearly empty slabs.
    SparseSlabs,
}

impl WasteKind {
    /// Cause of bytes that the objects of a site have beyond those requested.
    pub fn of(site: &Site, page_size: u64) -> Self {
        match site.api {
            // KMALLOC_MAX_CACHE_SIZE is two pages (include/linux/slab.h 4.4 to 7.2).
            Api::Kmalloc if site.bytes_alloc > page_size.saturating_mul(2) => Self::OrderRounding,
            Api::Kmalloc => Self::ClassRounding,
            Api::Cache => Self::CacheAlignment,
        }
    }
}

/// Place of bytes allocated beyond those requested: kmalloc's are charged to the call site, others to the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InternalPlace<'t> {
    /// Address of a call site of kmalloc.
    CallSite(u64),
    /// Name of a cache.
    Cache(&'t str),
}

/// Sums of the objects of one place.
#[derive(Debug, Clone, Copy, Default)]
pub struct InternalSums {
    /// Bytes allocated.
    pub alloc: u64,
    /// Bytes requested.
    pub req: u64,
    /// Bytes live at the end.
    pub live: u64,
    /// Bytes requested of objects live at the end.
    pub req_live: u64,
    /// Live bytes that are certain; `None`: events were lost.
    pub least: Option<u64>,
    /// Bytes of objects that wait for a grace period, so they may still be held.
    pub waiting: u64,
    /// Bytes x time for which objects were held in the window.
    pub byte_time: u128,
    /// Bytes beyond those requested x time for which objects were held in the window.
    pub waste_time: u128,
    /// Allocations whose size was rounded up.
    pub rounded: u64,
    /// Objects of those that are live at the end.
    pub rounded_live: u64,
}

sums!(InternalSums: alloc, req, live, req_live, least, waiting, byte_time, waste_time, rounded, rounded_live);

/// Bytes on average over a window of that length.
pub fn on_average(byte_time: u128, length: u64) -> u64 {
    u64::try_from(byte_time / u128::from(length.max(1))).unwrap_or(u64::MAX)
}

impl InternalSums {
    /// Sums without objects.
    pub fn empty(traced: &Traced<'_, '_, '_>) -> Self {
        Self { least: traced.least(0, 0), ..Self::default() }
    }

    /// Bytes beyond those requested, of all allocations.
    pub fn wasted(&self) -> u64 {
        self.alloc.saturating_sub(self.req)
    }

    /// Bytes beyond those requested, of live objects.
    pub fn wasted_live(&self) -> u64 {
        self.live.saturating_sub(self.req_live)
    }

    /// Bytes wasted on average over a window of that length.
    pub fn wasted_on_average(&self, length: u64) -> u64 {
        on_average(self.waste_time, length)
    }

    /// Sums of one site.
    fn of_site(traced: &Traced<'_, '_, '_>, object_time: &[u128], number: u32, site: &Site) -> Self {
        let held = object_time.get(number as usize).copied().unwrap_or(0);
        let mut sums = Self {
            byte_time: held.saturating_mul(site.bytes_alloc.into()),
            waste_time: held.saturating_mul(site.bytes_alloc.saturating_sub(site.bytes_req).into()),
            ..Self::empty(traced)
        };
        let is_rounded = u64::from(site.bytes_alloc > site.bytes_req);
        for (_, totals) in traced.context.analysis.balance.sites.get(number as usize).into_iter().flatten() {
            sums.alloc = sums.alloc.saturating_add(totals.bytes_alloc);
            sums.req = sums.req.saturating_add(totals.bytes_req);
            sums.live = sums.live.saturating_add(totals.bytes_live);
            sums.req_live = sums.req_live.saturating_add(totals.bytes_req_live);
            sums.waiting = sums.waiting.saturating_add(totals.bytes_waiting);
            sums.rounded = sums.rounded.saturating_add(totals.alloc_events * is_rounded);
            sums.rounded_live = sums.rounded_live.saturating_add(totals.live * is_rounded);
        }
        sums.least = traced.least(number, sums.live);
        sums
    }
}

/// Kind and place of the objects of a site.
pub fn place_of<'t>(
    traced: &'t Traced<'_, '_, '_>,
    number: u32,
    site: &Site,
) -> (WasteKind, InternalPlace<'t>) {
    let place = match site.api {
        Api::Kmalloc => InternalPlace::CallSite(site.call_site),
        Api::Cache => InternalPlace::Cache(traced.cache(number)),
    };
    (WasteKind::of(site, traced.context.analysis.page_size.0), place)
}

/// Sums of all places by kind. `object_time`: see [`OccupancySums`](crate::collect::occupancy::OccupancySums); empty: times
/// are 0.
pub fn by_place<'t>(
    traced: &'t Traced<'_, '_, '_>,
    object_time: &[u128],
) -> BTreeMap<(WasteKind, InternalPlace<'t>), InternalSums> {
    let empty = InternalSums::empty(traced);
    let mut all = BTreeMap::new();
    for (number, site) in (0u32..).zip(traced.context.analysis.interner.sites.items()) {
        let sums = InternalSums::of_site(traced, object_time, number, site);
        all.entry(place_of(traced, number, site)).or_insert(empty).absorb(sums);
    }
    all
}
