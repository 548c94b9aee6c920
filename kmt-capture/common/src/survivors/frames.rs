//! One bit for each page frame, in chunks that are made when a frame in them is first used.

use std::collections::HashMap;

/// log2 of the frames of a chunk.
const CHUNK_LOG2: u32 = 12;
const WORDS: usize = 1 << (CHUNK_LOG2 - 6);

/// Bits by frame. Frames beyond the limit of memory have none.
#[derive(Debug, Default)]
pub struct FrameBits {
    chunks: HashMap<u64, Box<[u64; WORDS]>>,
    chunks_max: usize,
}

impl FrameBits {
    /// Bits with that much memory, in bytes.
    pub fn new(memory: usize) -> Self {
        Self { chunks: HashMap::new(), chunks_max: memory / (WORDS * 8 + 64) }
    }

    /// The bit of a frame; `None`: there is no memory for it.
    #[inline]
    pub fn get(&self, frame: u64) -> Option<bool> {
        let bit = frame & ((1 << CHUNK_LOG2) - 1);
        match self.chunks.get(&(frame >> CHUNK_LOG2)) {
            Some(chunk) => Some(chunk.get(bit as usize / 64)? >> (bit % 64) & 1 != 0),
            None => (self.chunks.len() < self.chunks_max).then_some(false),
        }
    }

    /// Sets the bit of a frame.
    pub fn set(&mut self, frame: u64, value: bool) {
        let number = frame >> CHUNK_LOG2;
        if !self.chunks.contains_key(&number) && (!value || self.chunks.len() >= self.chunks_max) {
            return;
        }
        let chunk = self.chunks.entry(number).or_insert_with(|| Box::new([0; WORDS]));
        let bit = frame & ((1 << CHUNK_LOG2) - 1);
        if let Some(word) = chunk.get_mut(bit as usize / 64) {
            *word = *word & !(1 << (bit % 64)) | u64::from(value) << (bit % 64);
        }
    }

    /// True if the bit of any frame of a block is set, or there is no memory for one.
    pub fn any(&self, first: u64, count: u64) -> bool {
        (first..first.saturating_add(count)).any(|frame| self.get(frame) != Some(false))
    }

    /// True if the bits of all frames of a block are set.
    pub fn all(&self, first: u64, count: u64) -> bool {
        (first..first.saturating_add(count)).all(|frame| self.get(frame) == Some(true))
    }

    /// Sets the bits of a block.
    pub fn set_all(&mut self, first: u64, count: u64, value: bool) {
        (first..first.saturating_add(count)).for_each(|frame| self.set(frame, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_kept_until_memory_ends() {
        let mut bits = FrameBits::new(3 * (WORDS * 8 + 64));
        bits.set_all(4_090, 10, true);
        bits.set(4_095, false);
        assert!(
            bits.get(4_094) == Some(true) && bits.get(4_095) == Some(false) && bits.get(4_099) == Some(true)
        );
        assert!(!bits.any(4_100, 50) && bits.any(4_000, 91) && !bits.any(0, 4_090));
        bits.set(1 << 30, true);
        assert_eq!((bits.get(1 << 30), bits.get(1 << 31), bits.get(0)), (Some(true), None, Some(false)));
        assert!(bits.any(1 << 31, 1), "what is not known is treated as set");
    }
}
