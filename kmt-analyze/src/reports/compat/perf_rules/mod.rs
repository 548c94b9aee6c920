//! The rules of `perf kmem stat` (tools/perf/builtin-kmem.c, Linux 6.1 to 7.2), with all its errors, so that its output for the
//! same events can be printed.
//!
//! Slab: one row for each pointer, one for each call site. Pages: one row for each frame, order, migrate type and flags; one for
//! each call site and the same. `perf_kmem` prints them.

mod order;

pub use order::{PageQueue, PerfKey, Waiting, sorted_pages, sorted_slab};

use std::collections::BTreeMap;

/// Internal fragmentation in percent.
pub fn fragmentation(bytes_req: u64, bytes_alloc: u64) -> f64 {
    if bytes_alloc == 0 { 0.0 } else { 100.0 - 100.0 * bytes_req as f64 / bytes_alloc as f64 }
}

/// Sums of a pointer or of a call site.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SlabRow {
    /// Bytes handed out.
    pub bytes_alloc: u64,
    /// Bytes asked for.
    pub bytes_req: u64,
    /// Allocations.
    pub hit: u64,
    /// Frees on another CPU than the last allocation, and second frees.
    pub pingpong: u64,
    /// Call site of its last allocation.
    pub call_site: u64,
}

/// Sums of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PerfSlabSums {
    /// Bytes asked for.
    pub requested: u64,
    /// Bytes handed out.
    pub allocated: u64,
    /// Bytes of frees of pointers that were ever allocated.
    pub freed: u64,
    /// Allocations for another node than that of their CPU.
    pub cross: u64,
    /// Allocations.
    pub allocs: u64,
}

#[derive(Debug, Default)]
struct Pointer {
    row: SlabRow,
    last_alloc: u64,
    /// CPU of the last allocation; none after a free.
    cpu: Option<u32>,
}

/// Slab objects as perf knows them.
#[derive(Debug, Default)]
pub struct Slab {
    pointers: BTreeMap<u64, Pointer>,
    callers: BTreeMap<u64, SlabRow>,
    pub sums: PerfSlabSums,
}

impl Slab {
    /// An allocation, also one that failed: NULL is a pointer like any other.
    pub fn alloc(&mut self, ptr: u64, call_site: u64, bytes_req: u64, bytes_alloc: u64, cpu: u32) {
        let pointer = self.pointers.entry(ptr).or_default();
        pointer.last_alloc = bytes_alloc;
        pointer.cpu = Some(cpu);
        let caller = self.callers.entry(call_site).or_default();
        for row in [&mut pointer.row, caller] {
            row.call_site = call_site;
            row.hit += 1;
            row.bytes_req = row.bytes_req.wrapping_add(bytes_req);
            row.bytes_alloc = row.bytes_alloc.wrapping_add(bytes_alloc);
        }
        self.sums.requested = self.sums.requested.wrapping_add(bytes_req);
        self.sums.allocated = self.sums.allocated.wrapping_add(bytes_alloc);
        self.sums.allocs += 1;
    }

    /// A free; of a pointer that was never allocated it is not even counted.
    pub fn free(&mut self, ptr: u64, cpu: u32) {
        let Some(pointer) = self.pointers.get_mut(&ptr) else { return };
        self.sums.freed = self.sums.freed.wrapping_add(pointer.last_alloc);
        if pointer.cpu.replace(cpu) != Some(cpu) {
            pointer.row.pingpong += 1;
            if let Some(caller) = self.callers.get_mut(&pointer.row.call_site) {
                caller.pingpong += 1;
            }
        }
        pointer.cpu = None;
    }

    /// Rows by call site.
    pub fn callers(&self) -> Vec<(u64, SlabRow)> {
        self.callers.iter().map(|(&site, &row)| (site, row)).collect()
    }

    /// Rows by pointer.
    pub fn pointers(&self) -> Vec<(u64, SlabRow)> {
        self.pointers.iter().map(|(&ptr, pointer)| (ptr, pointer.row)).collect()
    }
}

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
    fn second_frees_count_again() {
        let mut slab = Slab::default();
        slab.alloc(0x10, 7, 24, 32, 0);
        slab.free(0x10, 0);
        slab.free(0x10, 0);
        slab.free(0x20, 0);
        assert_eq!(slab.sums, PerfSlabSums { requested: 24, allocated: 32, freed: 64, cross: 0, allocs: 1 });
        let row = SlabRow { bytes_alloc: 32, bytes_req: 24, hit: 1, pingpong: 1, call_site: 7 };
        assert_eq!(slab.callers(), [(7, row)]);
    }

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
