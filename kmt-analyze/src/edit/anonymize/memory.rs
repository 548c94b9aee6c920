//! New addresses of data: memory is cut into blocks, and each block moves to a place that depends on the key alone.
//!
//! Positions within a block stay, so pages, slabs and pageblocks keep their neighbours. Page frames and the addresses
//! of the direct map move together. All other addresses move page by page: a larger piece of the memory map (vmemmap)
//! would reveal the low bits of its blocks' numbers.

use std::collections::{BTreeSet, HashMap};

use super::keys::{Purpose, SecretKeys};

/// The low 56 bits of an address: arm64 keeps tags above them.
const ADDRESS_BITS: u64 = (1 << 56) - 1;

/// Data addresses of a trace.
#[derive(Debug, Default)]
pub struct DataAddresses {
    /// Addresses of the heap, in units of [`Shape::grain`].
    pub heap: BTreeSet<u64>,
    /// Page frames, in blocks.
    pub frames: BTreeSet<u64>,
    /// Other addresses, in pages.
    pub pages: BTreeSet<u64>,
}

/// Sizes of the target.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Size of `long` in bytes.
    pub long_size: usize,
    /// log2 of the size of a page.
    pub page_shift: u32,
    /// log2 of the size of a block.
    pub block_shift: u32,
    /// Low 56 bits of the address of page frame 0, if known.
    pub base: Option<u64>,
}

impl Shape {
    /// Sizes of a target with such pages; `order` is the largest one of its events or pageblocks.
    pub fn new(long_size: usize, page_size: u64, order: u32, base: Option<u64>) -> Self {
        let page_shift = page_size.trailing_zeros();
        // The buddy allocator's largest blocks: MAX_PAGE_ORDER is 10 with most pages; arm64 has 11 with pages of 16 KiB
        // and 13 with 64 KiB (include/linux/mmzone.h, arch/arm64/Kconfig, 6.12).
        let usual = match page_shift {
            14 => 11,
            16.. => 13,
            _ => 10,
        };
        let block_shift = page_shift + usual.max(order.min(15));
        Self { long_size, page_shift, block_shift, base }
    }

    /// True if a value is an address: not NULL, ZERO_SIZE_PTR, an error or all ones.
    pub fn is_address(&self, value: u64) -> bool {
        let top = if self.long_size == 8 { u64::MAX } else { u32::MAX.into() };
        value > 4096 && value < top - 4096
    }

    /// Number of the block of an address, and the offset in it.
    pub fn block(&self, address: u64) -> (u64, u64) {
        let from = (address & ADDRESS_BITS).wrapping_sub(self.base.unwrap_or(0)) & ADDRESS_BITS;
        (from >> self.block_shift, from & ((1 << self.block_shift) - 1))
    }

    /// Number of the page of an address.
    pub fn page(&self, address: u64) -> u64 {
        (address & ADDRESS_BITS) >> self.page_shift
    }

    /// Number of the block of a frame, and the offset in it.
    pub fn frame(&self, pfn: u64) -> (u64, u64) {
        let shift = self.block_shift - self.page_shift;
        (pfn >> shift, pfn & ((1 << shift) - 1))
    }
}

/// New places.
#[derive(Debug)]
pub struct Memory {
    shape: Shape,
    /// New address of page frame 0.
    base: u64,
    heap: HashMap<u64, u64>,
    frames: HashMap<u64, u64>,
    pages: HashMap<u64, u64>,
}

impl Memory {
    /// New places of these addresses; `None` if there is no room.
    pub fn new(shape: Shape, keys: &SecretKeys, data: &DataAddresses) -> Option<Self> {
        let blocks = |bytes: u64| (bytes >> shape.block_shift).max(1);
        // 64-bit: the heap from 2^52, other pages from 2^53, the text from 2^54. 32-bit: the heap below 3 GiB, the
        // text above it, other pages from 3.5 GiB.
        let is_long = shape.long_size == 8;
        let (base, heap, frames, pages) = if is_long {
            let base = (1 << 52) + ((keys.number(Purpose::DirectMap, 0, 0) % (1 << 18)) << 30);
            (base, 1..blocks(1 << 48), 1..blocks(1 << 48), 1 << 53..(1 << 53) + (1 << 48))
        } else {
            (0, 1..blocks(0xc000_0000), blocks(1 << 32)..blocks(1 << 40), 0xe000_0000..0xffc0_0000u64)
        };
        let pages = pages.start >> shape.page_shift..pages.end >> shape.page_shift;
        let drawn = keys.draw(Purpose::Pages, &data.pages, pages)?;
        if shape.base.is_none() {
            let start = base >> shape.block_shift;
            let heap = keys.draw(Purpose::Heap, &data.heap, start + heap.start..start + heap.end)?;
            let frames = keys.draw(Purpose::Frames, &data.frames, 1..frames.end)?;
            return Some(Self { shape, base, heap, frames, pages: drawn });
        }
        // Frames of the direct map move with it; on 32-bit targets others must not overlap it.
        let mut moved = if is_long {
            let all = data.heap.union(&data.frames).copied().collect();
            keys.draw(Purpose::Frames, &all, heap)?
        } else {
            let others = data.frames.difference(&data.heap).copied().collect();
            let mut moved = keys.draw(Purpose::Heap, &data.heap, heap)?;
            moved.extend(keys.draw(Purpose::Frames, &others, frames)?);
            moved
        };
        moved.shrink_to_fit();
        Some(Self { shape, base, heap: moved.clone(), frames: moved, pages: drawn })
    }

    /// New value of a heap address; 0 if it is not in the trace.
    pub fn heap(&self, address: u64) -> u64 {
        if !self.shape.is_address(address) {
            return address;
        }
        let (block, offset) = self.shape.block(address);
        let start = if self.shape.base.is_some() { self.base } else { 0 };
        let moved = self.heap.get(&block).map(|new| start + (new << self.shape.block_shift) + offset);
        self.whole(address, moved)
    }

    /// New value of any data address.
    pub fn address(&self, address: u64) -> u64 {
        if !self.shape.is_address(address) {
            return address;
        }
        if self.heap.contains_key(&self.shape.block(address).0) {
            return self.heap(address);
        }
        let offset = address & ((1 << self.shape.page_shift) - 1);
        let moved = self.pages.get(&self.shape.page(address));
        self.whole(address, moved.map(|new| (new << self.shape.page_shift) + offset))
    }

    /// New value of a page frame; `size` of its field in bytes: all ones stand for no frame.
    pub fn frame(&self, pfn: u64, size: usize) -> u64 {
        if pfn == all_ones(size) {
            return pfn;
        }
        let (block, offset) = self.shape.frame(pfn);
        let shift = self.shape.block_shift - self.shape.page_shift;
        self.frames.get(&block).map_or(0, |new| (new << shift) + offset)
    }

    /// New base of the direct map; `None`: the old one is unknown.
    pub fn map(&self) -> Option<u64> {
        self.shape.base.map(|_| self.base)
    }

    /// Number of moved blocks.
    pub fn blocks(&self) -> usize {
        // If the direct map is known, both are the same.
        let heap = if self.shape.base.is_some() { 0 } else { self.heap.len() };
        self.frames.len() + heap
    }

    /// Number of other moved pages.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// The new address with the tag of the old one.
    fn whole(&self, address: u64, moved: Option<u64>) -> u64 {
        moved.map_or(0, |moved| (address & !ADDRESS_BITS) | (moved & ADDRESS_BITS))
    }
}

/// Value of a field of `size` bytes without a frame.
pub fn all_ones(size: usize) -> u64 {
    u64::MAX >> (64 - 8 * size.clamp(1, 8) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_move_with_the_direct_map_and_keep_their_neighbours() {
        let base = 0xffff_8880_0000_0000u64;
        let shape = Shape::new(8, 4096, 0, Some(base & ADDRESS_BITS));
        let mut data = DataAddresses::default();
        for pfn in [5u64, 1500, 90_000] {
            data.frames.insert(shape.frame(pfn).0);
            data.heap.insert(shape.block(base + (pfn << 12)).0);
        }
        data.pages.insert(shape.page(0xffff_c900_0000_1234));
        let memory = Memory::new(shape, &SecretKeys::new(Some(1)).unwrap(), &data).unwrap();
        for pfn in [5u64, 1500, 90_000] {
            let (frame, address) = (memory.frame(pfn, 8), memory.heap(base + (pfn << 12) + 64));
            assert_ne!(frame >> 10, pfn >> 10);
            assert_eq!(address & ADDRESS_BITS, memory.base + (frame << 12) + 64);
            assert_eq!(memory.frame(pfn ^ 1, 8), frame ^ 1, "a neighbour");
            assert_eq!(memory.address(base + (pfn << 12)), memory.heap(base + (pfn << 12)));
        }
        let other = memory.address(0xffff_c900_0000_1234);
        assert!(other & 0xfff == 0x234 && other >> 12 != 0xffff_c900_0000_1234 >> 12);
        assert_eq!(memory.address(16), 16);
        assert_eq!(memory.frame(u64::MAX, 8), u64::MAX);
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let shape = Shape::new(4, 4096, 0, None);
        let data = DataAddresses { heap: (0..1000).collect(), ..DataAddresses::default() };
        assert!(Memory::new(shape, &SecretKeys::new(Some(1)).unwrap(), &data).is_none());
    }
}
