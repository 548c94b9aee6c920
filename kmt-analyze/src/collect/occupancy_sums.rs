//! Slab pages, who holds them, and when they come and go: sums of [`super::occupancy`].

use std::collections::BTreeMap;

use super::sums::Sums;

/// A page is sparse if its live bytes are at most its highest ones divided by this.
pub const SPARSE: u64 = 4;

/// A page allocation that may be a slab page, or a frame that is older than the trace and holds objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlabPage {
    /// First frame.
    pub pfn: u64,
    /// log2 of its frames; 0 for one that is older than the trace.
    pub order: u8,
    /// Whether it is older than the trace.
    pub is_old: bool,
    /// What is known of its cache.
    pub holds: Holds,
    /// Live objects on it that the trace has seen the birth of.
    pub live: u32,
    /// Their bytes.
    pub live_bytes: u64,
    /// Most bytes that were live at once.
    pub peak_bytes: u64,
}

/// What tells the cache of a slab page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holds {
    /// Nothing yet.
    Nothing,
    /// One large kmalloc, which is no slab.
    Large,
    /// Objects of that site.
    Site(u32),
    /// Objects that were freed at that free site.
    FreeSite(u32),
}

/// Frames of slab pages that came and went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turnover {
    /// Slabs that were allocated.
    pub slabs_born: u64,
    /// Frames of them.
    pub frames_born: u64,
    /// Slabs of those that were freed.
    pub slabs_died: u64,
    /// Frames of them.
    pub frames_died: u64,
    /// Slabs older than the trace that were freed.
    pub old_slabs_died: u64,
    /// Frames of them.
    pub old_frames_died: u64,
}

impl std::ops::AddAssign<&Turnover> for Turnover {
    fn add_assign(&mut self, other: &Turnover) {
        self.slabs_born += other.slabs_born;
        self.frames_born = self.frames_born.saturating_add(other.frames_born);
        self.slabs_died += other.slabs_died;
        self.frames_died = self.frames_died.saturating_add(other.frames_died);
        self.old_slabs_died += other.old_slabs_died;
        self.old_frames_died = self.old_frames_died.saturating_add(other.old_frames_died);
    }
}

/// What one call site's survivors hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pins {
    /// Objects that are live at the end on slab pages of the trace.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// By live objects of their page: objects that share it with so many.
    pages: BTreeMap<u32, SharedPages>,
    /// Ages of objects on sparse pages, summed.
    pub sparse_age: u128,
    /// Objects on sparse pages.
    pub sparse_objects: u64,
}

/// Objects on pages with one number of live objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct SharedPages {
    /// Unused bytes of their pages, the page counted once for each of the objects.
    unused: u64,
    /// The same of sparse pages.
    sparse_unused: u64,
    /// Objects on sparse pages.
    sparse_objects: u64,
}

impl Sums for SharedPages {
    fn absorb(&mut self, other: Self) {
        self.unused.absorb(other.unused);
        self.sparse_unused.absorb(other.sparse_unused);
        self.sparse_objects.absorb(other.sparse_objects);
    }
}

impl Sums for Pins {
    fn absorb(&mut self, other: Self) {
        self.objects.absorb(other.objects);
        self.bytes.absorb(other.bytes);
        self.pages.absorb(other.pages);
        self.sparse_age.absorb(other.sparse_age);
        self.sparse_objects.absorb(other.sparse_objects);
    }
}

impl Pins {
    /// One more object that is live at the end, of that age, on a page with that many unused bytes.
    pub(super) fn survivor(&mut self, bytes_alloc: u64, age: u64, page: &SlabPage, unused: u64) {
        self.objects += 1;
        self.bytes = self.bytes.saturating_add(bytes_alloc);
        let shared = self.pages.entry(page.live).or_default();
        shared.unused = shared.unused.saturating_add(unused);
        if page.live_bytes <= page.peak_bytes / SPARSE {
            shared.sparse_unused = shared.sparse_unused.saturating_add(unused);
            shared.sparse_objects += 1;
            self.sparse_objects += 1;
            self.sparse_age = self.sparse_age.saturating_add(age.into());
        }
    }

    fn share(&self, of: impl Fn(&SharedPages) -> u64) -> f64 {
        self.pages.iter().map(|(&live, pages)| of(pages) as f64 / f64::from(live)).sum()
    }

    /// Bytes of their pages that are not in use, shared equally among the objects of a page.
    pub fn pinned_bytes(&self) -> f64 {
        self.share(|pages| pages.unused)
    }

    /// The same on sparse pages: a quarter or less of the bytes that were once live there is.
    pub fn sparse_bytes(&self) -> f64 {
        self.share(|pages| pages.sparse_unused)
    }

    /// Their share in sparse slabs.
    pub fn sparse_slabs(&self) -> f64 {
        self.share(|pages| pages.sparse_objects)
    }
}

/// A step of time: changes in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepChange {
    /// Bytes of slab pages.
    pub held: i64,
    /// Bytes of live objects on them.
    pub live: i64,
}

impl StepChange {
    pub(super) fn add(&mut self, other: &Self) {
        self.held = self.held.saturating_add(other.held);
        self.live = self.live.saturating_add(other.live);
    }
}

impl Sums for Turnover {
    fn absorb(&mut self, other: Self) {
        *self += &other;
    }
}

/// Slab pages, and what they hold.
#[derive(Debug, PartialEq, Eq)]
pub struct OccupancySums {
    /// Slab pages that are there at the end, by their first frame.
    pub pages: Vec<SlabPage>,
    /// Time of the first step.
    pub start: u64,
    /// Length of a step, in the clock's unit.
    pub step: u64,
    /// Changes of slab pages that are of the trace, in equal steps of time.
    pub steps: Vec<StepChange>,
    /// By site of the first object of a page.
    pub turnover: Vec<Turnover>,
    /// Old pages freed whose objects only frees have told, by free site.
    pub turnover_by_free: Vec<Turnover>,
    /// How long objects were held within the window, all together, in the clock's unit; by site.
    pub object_time: Vec<u128>,
    /// By call site.
    pub pins: Vec<Pins>,
}
