//! Page frames: whether they are allocated, and to a slab, by their events.

use super::pending::PendingTable;

/// log2 of the frames of a chunk.
const CHUNK_LOG2: u32 = 12;
const WORDS: usize = 1 << (CHUNK_LOG2 - 6);
/// log2 of the stamps of frames.
const STAMPS_LOG2: u32 = 16;

/// Frames, and when they had their last page event.
#[derive(Debug)]
pub struct Frames {
    /// Frames of pages that are allocated.
    pub live: FrameBits,
    /// Frames without an event of a slab object since their last page event.
    pub clean: FrameBits,
    /// Frames of which an allocation of a slab object is written since their last page event: it tells what they are.
    pub born: FrameBits,
    /// By the lower bits of a frame, the number of its last page event.
    stamps: Vec<u64>,
}

impl Frames {
    /// Without events; `memory`: of each set of frames, in bytes.
    pub fn new(memory: usize) -> Self {
        Self {
            live: FrameBits::new(memory),
            clean: FrameBits::new(memory),
            born: FrameBits::new(memory),
            stamps: vec![0; 1 << STAMPS_LOG2],
        }
    }

    /// Number of the last page event of a frame, or of one that shares its stamp.
    #[inline]
    pub fn stamp(&self, frame: u64) -> u64 {
        self.stamps.get(frame as usize & (self.stamps.len() - 1)).copied().unwrap_or(u64::MAX)
    }

    /// Enters the number of a page event of a block of 2^`order` frames.
    pub fn set_stamps(&mut self, first: u64, order: u8, seq: u64) {
        let mask = self.stamps.len() - 1;
        let count = (1u64 << order).min(self.stamps.len() as u64);
        for frame in first..first.saturating_add(count) {
            if let Some(stamp) = self.stamps.get_mut(frame as usize & mask) {
                *stamp = seq;
            }
        }
    }
}

/// One bit for each frame, in chunks that are made when a frame in them is first used. Frames beyond the memory limit have
/// none.
#[derive(Debug, Default)]
pub struct FrameBits {
    /// Index of a chunk by its number.
    index: PendingTable,
    chunks: Vec<[u64; WORDS]>,
    chunks_max: usize,
}

/// The words of a block: number of the chunk, index in it, bits.
fn words(first: u64, count: u64) -> impl Iterator<Item = (u64, usize, u64)> {
    let end = first.saturating_add(count);
    (first / 64..end.div_ceil(64)).map(move |word| {
        let start = word * 64;
        let from = first.saturating_sub(start);
        let len = (end - start).min(64).saturating_sub(from) as u32;
        let bits = u64::MAX.checked_shr(64 - len).unwrap_or(0) << from;
        (word / WORDS as u64, word as usize % WORDS, bits)
    })
}

impl FrameBits {
    /// Bits with that much memory, in bytes.
    pub fn new(memory: usize) -> Self {
        let chunks_max = memory / (WORDS * 8 + 64);
        Self { index: PendingTable::default(), chunks: Vec::new(), chunks_max }
    }

    /// A word; `None` if it is beyond the memory limit.
    #[inline]
    fn word(&self, chunk: u64, at: usize) -> Option<u64> {
        match self.index.get(chunk) {
            Some(chunk) => self.chunks.get(chunk as usize)?.get(at).copied(),
            None => (self.chunks.len() < self.chunks_max).then_some(0),
        }
    }

    fn word_mut(&mut self, chunk: u64, at: usize) -> Option<&mut u64> {
        let chunk = match self.index.get(chunk) {
            Some(chunk) => chunk,
            None if self.chunks.len() >= self.chunks_max => return None,
            None => {
                let new = self.chunks.len() as u32;
                self.index.insert(chunk, new);
                self.chunks.push([0; WORDS]);
                new
            }
        };
        self.chunks.get_mut(chunk as usize)?.get_mut(at)
    }

    /// True if the bit of any frame of a block is set, or beyond the memory limit.
    #[inline]
    pub fn any(&self, first: u64, count: u64) -> bool {
        words(first, count).any(|(chunk, at, bits)| self.word(chunk, at).is_none_or(|word| word & bits != 0))
    }

    /// True if the bits of all frames of a block are set.
    #[inline]
    pub fn all(&self, first: u64, count: u64) -> bool {
        words(first, count)
            .all(|(chunk, at, bits)| self.word(chunk, at).is_some_and(|word| word & bits == bits))
    }

    /// Sets the bits of a block.
    #[inline]
    pub fn set(&mut self, first: u64, count: u64, value: bool) {
        for (chunk, at, bits) in words(first, count) {
            if !value && self.word(chunk, at).is_none_or(|word| word & bits == 0) {
                continue;
            }
            if let Some(word) = self.word_mut(chunk, at) {
                *word = if value { *word | bits } else { *word & !bits };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_kept_until_memory_ends() {
        let mut bits = FrameBits::new(3 * (WORDS * 8 + 64));
        bits.set(4_090, 10, true);
        bits.set(4_095, 1, false);
        assert!(bits.all(4_090, 5) && !bits.any(4_095, 1) && bits.all(4_096, 4) && !bits.all(4_090, 10));
        assert!(!bits.any(4_100, 50) && bits.any(4_000, 91) && !bits.any(0, 4_090));
        bits.set(1 << 30, 1, true);
        assert!(bits.all(1 << 30, 1) && !bits.any(0, 1));
        assert!(bits.any(1 << 31, 1) && !bits.all(1 << 31, 1), "beyond the limit it may be either");
        bits.set(1 << 31, 1, false);
        assert!(bits.any(1 << 31, 1));
    }

    #[test]
    fn blocks_are_the_same_as_their_frames() {
        let (mut bits, mut model) = (FrameBits::new(1 << 20), vec![false; 20_000]);
        let mut seed = 7u64;
        for _ in 0..3_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (first, count) = ((seed >> 40) as usize % 15_000, 1usize << (seed >> 33 & 11));
            let block = model.get_mut(first..first + count).unwrap();
            assert_eq!(bits.any(first as u64, count as u64), block.contains(&true));
            assert_eq!(bits.all(first as u64, count as u64), !block.contains(&false));
            block.fill(seed >> 63 != 0);
            bits.set(first as u64, count as u64, seed >> 63 != 0);
        }
        bits.set(u64::MAX - 1, 4, true);
        assert!(bits.all(u64::MAX - 1, 1), "a block that ends beyond all frames");
    }
}
