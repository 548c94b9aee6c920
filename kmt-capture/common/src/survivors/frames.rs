//! Page frames: whether they are allocated, and to a slab, by their events.

use super::pending::PendingTable;

/// log2 of the frames of a chunk.
const CHUNK_LOG2: u32 = 12;
const WORDS: usize = 1 << (CHUNK_LOG2 - 6);
/// log2 of the stamps of frames.
const STAMPS_LOG2: u32 = 16;

/// State of 64 frames: a bit for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Word {
    /// The page is allocated.
    live: u64,
    /// There was no event of a slab object since the last page event.
    clean: u64,
    /// An allocation of a slab object is written since the last page event: it tells what the page is.
    born: u64,
}

/// Bits of a word, of frames that follow each other.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// Number of the chunk.
    chunk: u64,
    /// Index of the word in it.
    at: usize,
    bits: u64,
}

/// The words of a block.
#[inline]
fn parts(first: u64, count: u64) -> impl Iterator<Item = Part> {
    let end = first.saturating_add(count);
    (first / 64..end.div_ceil(64)).map(move |word| {
        let start = word * 64;
        let from = first.saturating_sub(start);
        let len = (end - start).min(64).saturating_sub(from) as u32;
        let bits = u64::MAX.checked_shr(64 - len).unwrap_or(0) << from;
        Part { chunk: word / WORDS as u64, at: word as usize % WORDS, bits }
    })
}

/// Frames, and when they had their last page event. They lie in chunks that are made when a frame in them is first used; of
/// frames beyond the memory limit nothing is known.
#[derive(Debug)]
pub struct Frames {
    /// Index of a chunk by its number.
    index: PendingTable,
    chunks: Vec<[Word; WORDS]>,
    chunks_max: usize,
    /// By the lower bits of a frame, the number of its last page event.
    stamps: Vec<u64>,
}

impl Frames {
    /// Without events, with that much memory beside the stamps, in bytes.
    pub fn new(memory: usize) -> Self {
        Self {
            index: PendingTable::default(),
            chunks: Vec::new(),
            chunks_max: memory / (size_of::<[Word; WORDS]>() + 64),
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

    /// Enters an allocation of a slab object that has a frame; true if it must be written: `must` says so, or it is the first
    /// one that tells of the page what it is.
    #[inline]
    pub fn enter_object(&mut self, frame: u64, must: bool) -> bool {
        let bit = 1 << (frame % 64);
        let (chunk, at) = (frame >> CHUNK_LOG2, frame as usize / 64 % WORDS);
        let Some(word) = self.word_mut(chunk, at) else { return true };
        let is_kept = must || word.born & bit == 0;
        word.born |= if is_kept { bit } else { 0 };
        word.clean &= !bit;
        is_kept
    }

    /// True if any page of a block is allocated, or may be.
    pub fn are_any_live(&self, first: u64, count: u64) -> bool {
        parts(first, count).any(|part| self.word(&part).is_none_or(|word| word.live & part.bits != 0))
    }

    /// True if no frame of a block had an event of a slab object since its last page event, and each had that one.
    pub fn are_all_clean(&self, first: u64, count: u64) -> bool {
        parts(first, count)
            .all(|part| self.word(&part).is_some_and(|word| word.clean & part.bits == part.bits))
    }

    /// True if no frame of a block is allocated, or has had an object of a slab since its last page event.
    pub fn are_untouched(&self, first: u64, count: u64) -> bool {
        parts(first, count)
            .all(|part| self.word(&part).is_some_and(|word| (word.live | word.born) & part.bits == 0))
    }

    /// Enters a page event, after which a block is allocated or not. `has_objects`: slab objects are placed on pages.
    pub fn enter_pages(&mut self, first: u64, count: u64, is_live: bool, has_objects: bool) {
        for part in parts(first, count) {
            let bits = part.bits;
            // A chunk for frames that have nothing to remember is not made.
            if !is_live && !has_objects && self.index.get(part.chunk).is_none() {
                continue;
            }
            let Some(word) = self.word_mut(part.chunk, part.at) else { continue };
            word.live = if is_live { word.live | bits } else { word.live & !bits };
            if has_objects {
                word.clean |= bits;
                word.born &= !bits;
            }
        }
    }

    /// A word; `None` if it is beyond the memory limit.
    #[inline]
    fn word(&self, part: &Part) -> Option<Word> {
        match self.index.get(part.chunk) {
            Some(chunk) => self.chunks.get(chunk as usize)?.get(part.at).copied(),
            None => (self.chunks.len() < self.chunks_max).then(Word::default),
        }
    }

    #[inline]
    fn word_mut(&mut self, chunk: u64, at: usize) -> Option<&mut Word> {
        let chunk = match self.index.get(chunk) {
            Some(chunk) => chunk,
            None if self.chunks.len() >= self.chunks_max => return None,
            None => {
                let new = self.chunks.len() as u32;
                self.index.insert(chunk, new);
                self.chunks.push([Word::default(); WORDS]);
                new
            }
        };
        self.chunks.get_mut(chunk as usize)?.get_mut(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_known_until_memory_ends() {
        let mut frames = Frames::new(3 * (size_of::<[Word; WORDS]>() + 64));
        frames.enter_pages(4_090, 10, true, false);
        frames.enter_pages(4_095, 1, false, false);
        assert!(frames.are_any_live(4_090, 5) && !frames.are_any_live(4_095, 1));
        assert!(frames.are_any_live(4_096, 4) && !frames.are_any_live(4_100, 50));
        assert!(!frames.are_all_clean(4_090, 1) && !frames.are_any_live(0, 4_090));
        frames.enter_pages(1 << 30, 1, true, true);
        assert!(frames.are_any_live(1 << 30, 1) && frames.are_all_clean(1 << 30, 1));
        assert!(frames.are_any_live(1 << 31, 1) && !frames.are_all_clean(1 << 31, 1), "may be either");
        frames.enter_pages(1 << 31, 1, false, true);
        assert!(frames.are_any_live(1 << 31, 1) && !frames.are_all_clean(1 << 31, 1));
        assert!(frames.enter_object(1 << 31, false), "beyond the limit each object is written");
    }

    #[test]
    fn the_first_object_of_a_page_is_written() {
        let mut frames = Frames::new(1 << 20);
        frames.enter_pages(70, 2, true, true);
        assert!(frames.enter_object(70, false) && !frames.enter_object(70, false));
        assert!(frames.enter_object(70, true), "what must be is");
        assert!(!frames.are_all_clean(70, 1) && frames.are_all_clean(71, 1));
        frames.enter_pages(70, 2, false, true);
        assert!(frames.are_all_clean(70, 2) && frames.enter_object(70, false));
    }

    #[test]
    fn blocks_are_the_same_as_their_frames() {
        let (mut frames, mut model) = (Frames::new(1 << 20), vec![(false, false); 20_000]);
        let mut seed = 7u64;
        for _ in 0..3_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (first, count) = ((seed >> 40) as usize % 15_000, 1usize << (seed >> 33 & 11));
            let block = model.get_mut(first..first + count).unwrap();
            let (start, len) = (first as u64, count as u64);
            assert_eq!(frames.are_any_live(start, len), block.iter().any(|frame| frame.0));
            assert_eq!(frames.are_all_clean(start, len), block.iter().all(|frame| frame.1));
            if seed >> 60 & 7 == 0 {
                frames.enter_object(start, false);
                block[0].1 = false;
            } else {
                block.fill((seed >> 63 != 0, true));
                frames.enter_pages(start, len, seed >> 63 != 0, true);
            }
        }
        frames.enter_pages(u64::MAX - 1, 4, true, true);
        assert!(frames.are_all_clean(u64::MAX - 1, 1), "a block that ends beyond all frames");
    }
}
