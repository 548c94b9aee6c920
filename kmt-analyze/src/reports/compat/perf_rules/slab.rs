//! Slab: one row a pointer, one row a call site.

use std::collections::BTreeMap;

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
}
