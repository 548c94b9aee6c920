//! Lives that are in the file as sums, in chunks of folded lives (spec section "FOLD").
//!
//! Each of them is plain: it ended by a free event of its own interface, crosses no loss and replaced nothing. All of it lies in
//! one interval, and windows end where intervals do, so that the lives of an interval are in a window or not.

use kmt_format::fold::FoldedSums;

use super::Ledger;
use super::receiver::Receiver;
use super::tables::PageSiteInfo;
use super::totals::{FrameTotals, Totals};
use crate::stream::op::{Kind, OpCode};
use crate::stream::{Api, Interests, NameId, PageSite};

/// Slab objects with one site and one site of their frees.
#[derive(Debug, Clone, Copy)]
pub struct FoldedLives {
    /// Number of the site.
    pub site: u32,
    /// Number of the site of the frees.
    pub free_site: u32,
    /// Cache, if an event names it.
    pub cache: Option<NameId>,
    /// Number of the call site and interface.
    pub caller: u32,
    /// Interface.
    pub api: Api,
    /// Bytes requested for each.
    pub bytes_req: u64,
    /// Bytes allocated for each.
    pub bytes_alloc: u64,
    /// Counts and lengths.
    pub sums: FoldedSums,
    /// Begin of the interval, and its end.
    pub interval: (u64, u64),
}

impl FoldedLives {
    /// Sums of these lives alone.
    pub fn totals(&self) -> Totals {
        let (count, bytes) = (self.sums.count, self.sums.count.saturating_mul(self.bytes_alloc));
        Totals {
            alloc_events: count,
            bytes_req: count.saturating_mul(self.bytes_req),
            bytes_alloc: bytes,
            frees_matched: count,
            bytes_freed: bytes,
            ..Totals::default()
        }
    }
}

/// Allocations of pages of one kind.
#[derive(Debug, Clone, Copy)]
pub struct FoldedPages {
    /// Number of the kind.
    pub site: u32,
    /// Properties of the allocations.
    pub kind: PageSite,
    /// Counts and lengths.
    pub sums: FoldedSums,
    /// Begin of the interval, and its end.
    pub interval: (u64, u64),
}

impl FoldedPages {
    /// Sums of these pages alone.
    pub fn totals(&self) -> FrameTotals {
        let frames = self.sums.count.saturating_mul(1 << self.kind.order);
        FrameTotals {
            alloc_events: self.sums.count,
            frames_alloc: frames,
            frames_freed: frames,
            ..FrameTotals::default()
        }
    }
}

impl<R: Receiver> Ledger<'_, R> {
    /// True if an interval is in the window.
    fn has_interval(&self, (begin, end): (u64, u64)) -> bool {
        let (first, last) = self.rules.window;
        begin >= first && end.saturating_sub(1) <= last
    }

    /// Adds lives with these codes of their allocations and their frees. `buckets` have their lengths.
    pub fn enter_folded(
        &mut self,
        codes: [OpCode; 2],
        sums: &FoldedSums,
        interval: (u64, u64),
        buckets: impl Iterator<Item = (u32, u32)>,
    ) {
        if !self.has_interval(interval) {
            return;
        }
        let [alloc, free] = codes;
        match alloc.kind() {
            Kind::Alloc if free.is_slab_free() && free.is_slab() => {
                self.folded_objects(alloc.number(), free, sums, interval, buckets);
            }
            Kind::PageAlloc if free.kind() == Kind::PageFree => {
                self.folded_pages(alloc.number(), sums, interval, buckets);
            }
            _ => {}
        }
    }

    /// Adds frees of NULL with that code (R3).
    pub fn enter_null_frees(&mut self, free: OpCode, count: u64, interval: (u64, u64)) {
        if !self.choice.events || !free.is_slab() || !free.is_slab_free() || !self.has_interval(interval) {
            return;
        }
        self.raw.free_events = self.raw.free_events.saturating_add(count);
        let api = if free.is_cache_free() { Api::Cache } else { Api::Kmalloc };
        let counts = &mut self.counts[api as usize];
        counts.null_frees = counts.null_frees.saturating_add(count);
    }

    fn folded_objects(
        &mut self,
        site: u32,
        free: OpCode,
        sums: &FoldedSums,
        interval: (u64, u64),
        buckets: impl Iterator<Item = (u32, u32)>,
    ) {
        let info = *self.tables.site(site);
        if self.choice.events {
            self.raw.free_events = self.raw.free_events.saturating_add(sums.count);
        }
        if !info.selected {
            return;
        }
        let cache = info.cache.or_else(|| self.tables.free_site(free.number()).cache);
        if let Some(lives) = self.sites.get_mut(site as usize) {
            let lives = lives.of(cache);
            lives.born = lives.born.saturating_add(sums.count);
            lives.freed = lives.freed.saturating_add(sums.count);
        }
        let counts = &mut self.counts[info.api as usize];
        counts.cross_cpu_frees = counts.cross_cpu_frees.saturating_add(sums.cross_cpu);
        if !self.interests.intersects(Interests::ANY_LIVES) {
            return;
        }
        let lives = FoldedLives {
            site,
            free_site: free.number(),
            cache,
            caller: info.caller,
            api: info.api,
            bytes_req: info.bytes_req,
            bytes_alloc: info.bytes_alloc,
            sums: *sums,
            interval,
        };
        self.receiver.folded(&lives);
        buckets.for_each(|(bucket, count)| self.receiver.folded_bucket(&lives, bucket, count.into()));
    }

    fn folded_pages(
        &mut self,
        site: u32,
        sums: &FoldedSums,
        interval: (u64, u64),
        buckets: impl Iterator<Item = (u32, u32)>,
    ) {
        let PageSiteInfo { site: kind, selected } = *self.tables.page_site(site);
        self.frames.add_folded(site, kind, sums.count, selected);
        if !selected || !self.interests.contains(Interests::FRAMES) {
            return;
        }
        let pages = FoldedPages { site, kind, sums: *sums, interval };
        self.receiver.folded_pages(&pages);
        buckets.for_each(|(bucket, count)| self.receiver.folded_pages_bucket(&pages, bucket, count.into()));
    }
}
