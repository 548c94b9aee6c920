//! Growth of memory that the kernel can reclaim: caches of slab objects, and the page cache.
//!
//! It is not a leak, so it has a sentence of its own and no finding. `rows` adds it up from the judged parts; /proc/meminfo of the
//! begin and the end shows whether such memory shrank meanwhile. `leaks` and `findings` show the sentence.

use kmt_format::kernel::ClockUnit;
use kmt_format::read::Metadata;

use super::row::{LeakRow, LeakSum};
use crate::render::words::share;
use crate::reports::common::View;
use crate::trace::meminfo;
use crate::trace::names::function_of;

/// Growth of what the kernel can reclaim when memory is short.
#[derive(Debug, Clone, Default)]
pub struct ReclaimableGrowth {
    /// Growth of reclaimable caches, and of objects that are allocated with theirs.
    pub slab: LeakSum,
    /// The largest call site of that growth.
    pub most: Option<LeakRow>,
    /// Growth of pages that hold data of files and devices.
    pub page_cache: LeakSum,
    /// Bytes by which all that the kernel can reclaim shrank meanwhile, by its own count; 0: it did not, or that is unknown.
    pub shrank: u64,
}

impl ReclaimableGrowth {
    /// True if nothing of it grew.
    pub fn is_none(&self) -> bool {
        self.slab.rows == 0 && self.page_cache.rows == 0
    }

    /// Growth of all parts in bytes per second, or per 10^9 ticks.
    pub fn bytes_per_second(&self) -> u64 {
        self.slab.bytes_per_second.saturating_add(self.page_cache.bytes_per_second)
    }

    /// `What the kernel can reclaim grew by 30.0 MiB/s, old objects only: slab caches by 20.0 MiB/s (82 % of it in ext4_inode_cache at
    /// ext4_alloc_inode), page cache by 10.0 MiB/s.`; empty: nothing of it grew.
    pub fn sentence(&self, view: &View) -> String {
        let grew = self.grew(view);
        match self.shrank {
            _ if grew.is_empty() => grew,
            0 => grew,
            bytes => {
                format!("{grew} Older ones went: by /proc/meminfo there is {} less of it.", view.bytes(bytes))
            }
        }
    }

    fn grew(&self, view: &View) -> String {
        let [slab, pages] = [self.slab, self.page_cache].map(|sum| rate(sum.bytes_per_second, view));
        match (&self.most, self.page_cache.rows) {
            (None, 0) => String::new(),
            (None, _) => {
                format!("Page cache, which the kernel can reclaim, grew by {pages}, old pages only.")
            }
            (Some(most), 0) => {
                format!(
                    "Caches that the kernel can reclaim grew by {slab}, old objects only, {}.",
                    self.in_cache(most)
                )
            }
            (Some(most), _) => format!(
                "What the kernel can reclaim grew by {}, old objects only: slab caches by {slab} ({}), page cache by {pages}.",
                rate(self.bytes_per_second(), view),
                self.in_cache(most)
            ),
        }
    }

    /// Where most of the slab objects are, with their share if there are others.
    fn in_cache(&self, most: &LeakRow) -> String {
        let part = match self.slab.rows {
            1 => String::new(),
            _ => format!("{} of it ", share(most.old_bytes_per_second, self.slab.bytes_per_second)),
        };
        format!("{part}in {} at {}", most.cache, function_of(&most.symbol))
    }
}

/// Bytes by which what the kernel can reclaim shrank in a recording, by /proc/meminfo; 0: it did not, or that is unknown.
pub fn shrank(metadata: &Metadata<'_>) -> u64 {
    let twice = |key| meminfo::twice(metadata, key);
    let (Some(slab), Some(cached)) = (twice("SReclaimable"), twice("Cached")) else { return 0 };
    let (buffers, shmem) = (twice("Buffers").unwrap_or_default(), twice("Shmem").unwrap_or_default());
    let sum = |slab: u64, cached: u64, buffers: u64, shmem: u64| {
        slab.saturating_add(cached).saturating_add(buffers).saturating_sub(shmem)
    };
    sum(slab.0, cached.0, buffers.0, shmem.0).saturating_sub(sum(slab.1, cached.1, buffers.1, shmem.1))
}

/// A rate of growth.
pub fn rate(bytes_per_second: u64, view: &View) -> String {
    let per = if view.unit == ClockUnit::Ticks { " per 10^9 ticks" } else { "/s" };
    format!("{}{per}", view.bytes(bytes_per_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slab_caches_and_page_cache_are_one_sum() {
        let view = View::plain();
        let sum = |rows, bytes_per_second| LeakSum { rows, bytes: 2 << 20, bytes_per_second };
        let most = LeakRow {
            symbol: "ext4_alloc_inode+0x1f".into(),
            cache: "ext4_inode_cache".to_owned(),
            old_bytes: 1 << 10,
            old_bytes_per_second: 10 << 20,
            ..LeakRow::default()
        };
        let mut growth = ReclaimableGrowth {
            slab: sum(3, 20 << 20),
            most: Some(most),
            page_cache: sum(8, 10 << 20),
            shrank: 0,
        };
        assert_eq!(
            growth.sentence(&view),
            "What the kernel can reclaim grew by 30.0 MiB/s, old objects only: slab caches by 20.0 MiB/s (50 % of it in ext4_inode_cache at ext4_alloc_inode), page cache by 10.0 MiB/s."
        );
        growth.shrank = 3 << 20;
        let shrank = growth.sentence(&view);
        assert!(
            shrank.ends_with(". Older ones went: by /proc/meminfo there is 3.00 MiB less of it."),
            "{shrank}"
        );
        growth.shrank = 0;
        growth.page_cache = LeakSum::default();
        growth.slab.rows = 1;
        assert_eq!(
            growth.sentence(&view),
            "Caches that the kernel can reclaim grew by 20.0 MiB/s, old objects only, in ext4_inode_cache at ext4_alloc_inode."
        );
        growth = ReclaimableGrowth { page_cache: sum(1, 10 << 20), ..ReclaimableGrowth::default() };
        assert_eq!(
            growth.sentence(&view),
            "Page cache, which the kernel can reclaim, grew by 10.0 MiB/s, old pages only."
        );
        assert!(
            ReclaimableGrowth::default().is_none() && ReclaimableGrowth::default().sentence(&view).is_empty()
        );
    }
}
