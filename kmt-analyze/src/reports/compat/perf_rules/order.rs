//! Orders of rows: the keys of `perf kmem stat --sort`.

use std::cmp::Ordering;

use super::fragmentation;
use super::pages::{PageRow, PerfPageKey};
use super::slab::SlabRow;

/// A key of perf's: the largest value is the first. perf's slab tables and its page tables have different keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PerfKey {
    /// Address of the object
    Ptr,
    /// Frame of the page
    #[value(alias = "pfn")]
    Page,
    /// Address of the call site
    Callsite,
    /// Allocations
    Hit,
    /// Bytes allocated
    Bytes,
    /// Share of the allocated bytes that were not requested
    Frag,
    /// Frees on another CPU
    Pingpong,
    /// Order
    Order,
    /// Migrate type
    #[value(aliases = ["mtype", "migratetype"])]
    Migtype,
    /// Flags
    #[value(alias = "gfp_flags")]
    Gfp,
}

/// Keys of slab tables, if no others are given.
const SLAB: [PerfKey; 3] = [PerfKey::Frag, PerfKey::Hit, PerfKey::Bytes];
/// Keys of page tables, if no others are given.
const PAGES: [PerfKey; 2] = [PerfKey::Bytes, PerfKey::Hit];

impl PerfKey {
    /// True if tables of pages, or of slab objects, have it: by call site, or by frame and pointer.
    pub fn is_of(self, is_page: bool, by_caller: bool) -> bool {
        match self {
            Self::Callsite | Self::Hit | Self::Bytes => true,
            Self::Ptr => !is_page && !by_caller,
            Self::Page => is_page && !by_caller,
            Self::Frag | Self::Pingpong => !is_page,
            Self::Order | Self::Migtype | Self::Gfp => is_page,
        }
    }

    fn of_slab(self, (a_at, a): &(u64, SlabRow), (b_at, b): &(u64, SlabRow)) -> Ordering {
        let frag = |row: &SlabRow| fragmentation(row.bytes_req, row.bytes_alloc);
        match self {
            Self::Ptr => b_at.cmp(a_at),
            Self::Callsite => b.call_site.cmp(&a.call_site),
            Self::Hit => b.hit.cmp(&a.hit),
            Self::Bytes => b.bytes_alloc.cmp(&a.bytes_alloc),
            Self::Frag => frag(b).total_cmp(&frag(a)),
            Self::Pingpong => b.pingpong.cmp(&a.pingpong),
            Self::Page | Self::Order | Self::Migtype | Self::Gfp => Ordering::Equal,
        }
    }

    fn of_page(self, (a_key, a): &(PerfPageKey, PageRow), (b_key, b): &(PerfPageKey, PageRow)) -> Ordering {
        match self {
            Self::Page => b_key.0.cmp(&a_key.0),
            Self::Callsite => b.call_site.cmp(&a.call_site),
            Self::Hit => b.allocs.cmp(&a.allocs),
            Self::Bytes => b.alloc_bytes.cmp(&a.alloc_bytes),
            Self::Order => b_key.1.cmp(&a_key.1),
            Self::Migtype => b_key.2.cmp(&a_key.2),
            Self::Gfp => b_key.3.cmp(&a_key.3),
            Self::Ptr | Self::Frag | Self::Pingpong => Ordering::Equal,
        }
    }
}

/// Rows of slab objects in the order of these keys; what is equal stays in the order of addresses.
pub fn sorted_slab(mut rows: Vec<(u64, SlabRow)>, keys: &[PerfKey]) -> Vec<(u64, SlabRow)> {
    let keys = if keys.is_empty() { &SLAB } else { keys };
    rows.sort_by(|a, b| first(keys, |key| key.of_slab(a, b)));
    rows
}

/// Rows of pages in the order of these keys; what is equal stays in the order of frames or call sites.
pub fn sorted_pages(mut rows: Vec<(PerfPageKey, PageRow)>, keys: &[PerfKey]) -> Vec<(PerfPageKey, PageRow)> {
    let keys = if keys.is_empty() { &PAGES } else { keys };
    rows.sort_by(|a, b| first(keys, |key| key.of_page(a, b)));
    rows
}

fn first(keys: &[PerfKey], order: impl Fn(PerfKey) -> Ordering) -> Ordering {
    keys.iter().map(|&key| order(key)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_key_that_differs_decides() {
        let row = |at: u64, hit, bytes_alloc, pingpong| {
            (at, SlabRow { bytes_alloc, bytes_req: 8, hit, pingpong, call_site: 100 - at })
        };
        let rows = [row(1, 5, 64, 0), row(2, 5, 32, 9), row(3, 7, 16, 0)];
        let order = |keys: &[PerfKey]| {
            let rows = sorted_slab(rows.to_vec(), keys);
            rows.iter().map(|(at, _)| *at).collect::<Vec<_>>()
        };
        assert_eq!(order(&[PerfKey::Ptr]), [3, 2, 1]);
        assert_eq!(order(&[PerfKey::Callsite]), [1, 2, 3]);
        assert_eq!(order(&[PerfKey::Hit, PerfKey::Bytes]), [3, 1, 2]);
        assert_eq!(order(&[PerfKey::Pingpong, PerfKey::Hit]), [2, 3, 1]);
        assert_eq!(order(&[]), [1, 2, 3]);
    }
}
