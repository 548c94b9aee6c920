//! Rows of slab pages.

use serde::Serialize;

use super::pinned::PinRow;

/// How full slab pages are.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Occupied {
    /// Share of the votes for the direct map base: pairs of a page allocation and the slab allocation behind it.
    pub direct_map_votes_percent: f64,
    /// Slabs by cache.
    pub caches: Vec<OccupiedCache>,
    /// Slabs of the trace at its end, by their filling.
    pub slabs_by_filling: Filling,
    /// Slabs of the trace over time.
    pub over_time: Vec<OccupiedStep>,
    /// Call sites with survivors on slab pages, in all.
    pub pinned_by_total: usize,
    /// Call sites with survivors on slab pages, those that pin most first.
    pub pinned_by: Vec<PinRow>,
}

impl Occupied {
    /// Sum over all caches.
    pub fn sum(&self, of: fn(&OccupiedCache) -> u64) -> u64 {
        self.caches.iter().map(of).fold(0, u64::saturating_add)
    }
}

/// Slabs of one cache.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OccupiedCache {
    /// Name of the cache.
    pub cache: String,
    /// `all`, `partly`, `none`, `unknown`: how many of its frees have events.
    pub frees_seen: &'static str,
    /// Bytes live at the end: at least, at most; `null` where events were lost.
    pub bytes_live_range: Option<[u64; 2]>,
    /// Slabs of the trace at its end.
    pub slabs: u64,
    /// Slabs without objects.
    pub slabs_empty: u64,
    /// Sparse slabs: at most a quarter of their highest live bytes is live.
    pub slabs_sparse: u64,
    /// Bytes of the slabs.
    pub bytes_held: u64,
    /// Bytes of the objects on them.
    pub bytes_live: u64,
    /// Objects on them.
    pub objects: u64,
    /// Slabs that were allocated.
    pub slabs_born: u64,
    /// Pages of the slabs that were allocated.
    pub pages_born: u64,
    /// Slabs of those that were freed.
    pub slabs_died: u64,
    /// Pages of those slabs that were freed.
    pub pages_died: u64,
    /// Slabs older than the trace that were freed.
    pub older_slabs_died: u64,
    /// Pages of slabs older than the trace that were freed.
    pub older_pages_died: u64,
    /// Pages older than the trace that hold objects of it.
    pub older_pages_in_use: u64,
    /// Bytes of those objects.
    pub older_pages_bytes_live: u64,
}

/// Slabs by their filling.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Filling {
    /// No object.
    pub empty: u64,
    /// Up to a quarter.
    pub to_25_percent: u64,
    /// Up to a half.
    pub to_50_percent: u64,
    /// Up to three quarters.
    pub to_75_percent: u64,
    /// With room for one more object.
    pub below_100_percent: u64,
    /// Without room.
    pub full: u64,
}

/// Slabs of the trace at the end of a step of time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OccupiedStep {
    /// The end of the step.
    pub time: u64,
    /// Bytes of slabs.
    pub bytes_held: u64,
    /// Bytes of objects on them.
    pub bytes_live: u64,
}
