//! Pages: one row a frame, order, migrate type and flags; one a call site and the same.

use std::collections::BTreeMap;

/// Sums of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PageRow {
    /// Allocations.
    pub allocs: u64,
    /// Bytes allocated.
    pub alloc_bytes: u64,
    /// Call site of its last allocation.
    pub call_site: u64,
}

/// Frame or call site, order, migrate type, flags.
pub type PerfPageKey = (u64, u32, u32, u32);

/// Sums of all: counts and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PerfPageSums {
    /// Allocations, failed ones too.
    pub allocs: (u64, u64),
    pub frees: (u64, u64),
    /// Frees of frames that no allocation was seen of.
    pub no_match: (u64, u64),
    /// Failed allocations.
    pub fails: (u64, u64),
    /// Frees whose order is not that of the allocation: perf gives up there.
    pub other_order: u64,
}

/// Flags by number, with their text.
pub type Gfp = BTreeMap<u32, String>;

/// Pages as perf knows them.
#[derive(Debug, Default)]
pub struct PerfPages {
    /// Orders of the frames that seem to be live.
    live: BTreeMap<u64, u32>,
    by_frame: BTreeMap<PerfPageKey, PageRow>,
    by_caller: BTreeMap<PerfPageKey, PageRow>,
    /// Allocations by order and migrate type.
    pub orders: BTreeMap<(u32, u32), u64>,
    pub sums: PerfPageSums,
}

impl PerfPages {
    /// An allocation of 2^order pages of that size; `None` is a failed one.
    pub fn alloc(&mut self, pfn: Option<u64>, key: (u32, u32, u32), call_site: u64, page_size: u64) {
        let (order, migratetype, gfp_flags) = key;
        let bytes = bytes(order, page_size);
        add(&mut self.sums.allocs, bytes);
        let Some(pfn) = pfn else {
            add(&mut self.sums.fails, bytes);
            return;
        };
        // A frame that seems to be live keeps the order that it had.
        self.live.entry(pfn).or_insert(order);
        let frame = self.by_frame.entry((pfn, order, migratetype, gfp_flags)).or_default();
        let caller = self.by_caller.entry((call_site, order, migratetype, gfp_flags)).or_default();
        for row in [frame, caller] {
            row.allocs += 1;
            row.alloc_bytes = row.alloc_bytes.wrapping_add(bytes);
            row.call_site = call_site;
        }
        *self.orders.entry((order, migratetype)).or_default() += 1;
    }

    /// A free of 2^order pages of that size.
    pub fn free(&mut self, pfn: u64, order: u32, page_size: u64) {
        let bytes = bytes(order, page_size);
        add(&mut self.sums.frees, bytes);
        let Some(live) = self.live.remove(&pfn) else {
            add(&mut self.sums.no_match, bytes);
            return;
        };
        self.sums.other_order += u64::from(live != order);
    }

    /// Rows by frame.
    pub fn frames(&self) -> Vec<(PerfPageKey, PageRow)> {
        self.by_frame.iter().map(|(&key, &row)| (key, row)).collect()
    }

    /// Rows by call site.
    pub fn callers(&self) -> Vec<(PerfPageKey, PageRow)> {
        self.by_caller.iter().map(|(&key, &row)| (key, row)).collect()
    }
}

fn bytes(order: u32, page_size: u64) -> u64 {
    page_size.checked_shl(order).unwrap_or(0)
}

fn add(sum: &mut (u64, u64), bytes: u64) {
    sum.0 += 1;
    sum.1 = sum.1.wrapping_add(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_of_another_order_is_counted_and_gone_on_from() {
        let mut pages = PerfPages::default();
        pages.alloc(Some(8), (3, 0, 0xcc0), 7, 4096);
        pages.alloc(None, (0, 0, 0xcc0), 7, 4096);
        pages.free(8, 0, 4096);
        pages.free(9, 0, 4096);
        let sums = pages.sums;
        assert_eq!((sums.allocs, sums.fails), ((2, 36_864), (1, 4096)));
        assert_eq!((sums.frees, sums.no_match, sums.other_order), ((2, 8192), (1, 4096), 1));
        assert_eq!(
            pages.callers(),
            [((7, 3, 0, 0xcc0), PageRow { allocs: 1, alloc_bytes: 32_768, call_site: 7 })]
        );
    }
}
