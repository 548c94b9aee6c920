//! Sums of [`super::occupancy`]: slab pages, call sites that pin them, allocations and frees of pages.
//!
//! `occupancy` follows page and object events and adds to these sums; `reports/fragmentation` makes rows of them. Bytes
//! that several survivors pin together are shared among them equally, so that the parts add up.

use std::collections::BTreeMap;

/// A page is sparse if its live bytes are at most its highest live bytes divided by this.
pub const SPARSE: u64 = 4;

/// A page allocation that may be a slab page, or a frame older than the trace that holds objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlabPage {
    /// First frame.
    pub pfn: u64,
    /// log2 of its frames; 0 for a frame older than the trace.
    pub order: u8,
    /// True if older than the trace.
    pub is_old: bool,
    /// Evidence of its cache.
    pub evidence: CacheEvidence,
    /// Live objects on it, of those allocated in the trace.
    pub live: u32,
    pub live_bytes: u64,
    /// Highest live bytes.
    pub peak_bytes: u64,
}

/// Evidence of the cache of a slab page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheEvidence {
    /// None yet.
    Nothing,
    /// One large kmalloc, not a slab.
    Large,
    /// Objects of that site.
    Site(u32),
    /// Objects that were freed at that free site.
    FreeSite(u32),
}

/// Allocated and freed slab pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turnover {
    /// Slabs allocated in the trace.
    pub slabs_born: u64,
    /// Frames of slabs allocated in the trace.
    pub frames_born: u64,
    /// Slabs allocated in the trace that were freed.
    pub slabs_died: u64,
    /// Frames of slabs allocated in the trace that were freed.
    pub frames_died: u64,
    /// Slabs older than the trace that were freed.
    pub old_slabs_died: u64,
    /// Frames of slabs older than the trace that were freed.
    pub old_frames_died: u64,
}

/// Memory pinned by the survivors of one call site.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pins {
    /// Objects live at the end on slab pages of the trace.
    pub objects: u64,
    pub bytes: u64,
    /// Objects by the number of live objects on their page.
    pages: BTreeMap<u32, SharedPages>,
    /// Known ages of objects on sparse pages, summed.
    pub sparse_age: u128,
    /// Objects on sparse pages whose age is known.
    pub sparse_aged: u64,
    /// Objects on sparse pages.
    pub sparse_objects: u64,
}

/// Objects on pages with the same number of live objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct SharedPages {
    /// Unused bytes of their pages, counted once for each of the objects.
    unused: u64,
    /// Unused bytes of sparse pages, counted once for each of the objects.
    sparse_unused: u64,
    /// Objects on sparse pages.
    sparse_objects: u64,
}

impl Pins {
    /// Adds a survivor of this age, if known, on a page with `unused` bytes.
    pub(super) fn survivor(&mut self, bytes_alloc: u64, age: Option<u64>, page: &SlabPage, unused: u64) {
        self.objects += 1;
        self.bytes = self.bytes.saturating_add(bytes_alloc);
        let shared = self.pages.entry(page.live).or_default();
        shared.unused = shared.unused.saturating_add(unused);
        if page.live_bytes <= page.peak_bytes / SPARSE {
            shared.sparse_unused = shared.sparse_unused.saturating_add(unused);
            shared.sparse_objects += 1;
            self.sparse_objects += 1;
            self.sparse_aged += u64::from(age.is_some());
            self.sparse_age = self.sparse_age.saturating_add(age.unwrap_or(0).into());
        }
    }

    fn share(&self, of: impl Fn(&SharedPages) -> u64) -> f64 {
        self.pages.iter().map(|(&live, pages)| of(pages) as f64 / f64::from(live)).sum()
    }

    /// Unused bytes of their pages, shared equally among the objects of a page.
    pub fn pinned_bytes(&self) -> f64 {
        self.share(|pages| pages.unused)
    }

    /// Unused bytes of sparse pages, those with at most a quarter of their highest live bytes, shared in this way.
    pub fn sparse_bytes(&self) -> f64 {
        self.share(|pages| pages.sparse_unused)
    }

    /// Sparse slabs, each shared equally among its objects.
    pub fn sparse_slabs(&self) -> f64 {
        self.share(|pages| pages.sparse_objects)
    }
}

/// Changes in a time step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepChange {
    /// Bytes of slab pages.
    pub held: i64,
    /// Bytes of live objects on them.
    pub live: i64,
}

/// Slab pages and their occupancy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OccupancySums {
    /// Slab pages at the end, by first frame.
    pub pages: Vec<SlabPage>,
    /// Time of the first step.
    pub start: u64,
    /// Length of a step, in the clock's unit.
    pub step: u64,
    /// Changes of slab pages allocated in the trace, in equal time steps.
    pub steps: Vec<StepChange>,
    /// By site of the first object of a page.
    pub turnover: Vec<Turnover>,
    /// Freed pages older than the trace, of which only frees are recorded, by freeing site.
    pub turnover_by_free: Vec<Turnover>,
    /// Sum of the times for which objects were held in the window, in the clock's unit; by site.
    pub object_time: Vec<u128>,
    /// By call site.
    pub pins: Vec<Pins>,
}
