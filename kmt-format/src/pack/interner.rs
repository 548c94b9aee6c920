//! Keys to small numbers, within one chunk.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

/// A key under construction: words, so that it is made, hashed and compared eight bytes at a time.
#[derive(Debug, Default)]
pub(super) struct Key {
    words: Vec<u64>,
}

impl Key {
    /// Starts a key with one word.
    #[inline]
    pub fn start(&mut self, word: u64) {
        self.words.clear();
        self.words.push(word);
    }

    /// Adds words; one reservation for all of them.
    #[inline]
    pub fn extend(&mut self, words: impl Iterator<Item = u64>) {
        self.words.extend(words);
    }

    /// Adds a byte string with its length, so that no two different ones make the same words.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        self.words.push(bytes.len() as u64);
        let chunks = bytes.chunks_exact(8);
        let rest = chunks.remainder();
        self.words.extend(chunks.map(|chunk| chunk.try_into().map_or(0, u64::from_le_bytes)));
        if !rest.is_empty() {
            self.words.push(partial_word(rest));
        }
    }

    pub fn words(&self) -> &[u64] {
        &self.words
    }
}

/// Up to eight bytes as a word, filled up with zeros.
#[inline]
pub(super) fn partial_word(bytes: &[u8]) -> u64 {
    if let Some(all) = bytes.first_chunk::<8>() {
        return u64::from_le_bytes(*all);
    }
    // Two loads that may overlap: where they do, they hold the same bytes.
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u64::from(first) | u64::from(last) << (8 * (bytes.len() - 4));
    }
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// Gives equal keys the same index, counted from 0 in order of first sight.
///
/// Open addressing with linear probing; the keys lie in one arena, so that nothing is allocated for each.
#[derive(Debug)]
pub(crate) struct Interner {
    /// Initial value of the hash: random, since keys are read from files.
    seed: Seed,
    /// Upper half of the hash above the key's place in the arena + 1; 0 if free. A power of two long.
    slots: Vec<u64>,
    /// Hash and place of each key.
    entries: Vec<(u64, u32)>,
    /// Index above length of each key, then its words.
    arena: Vec<u64>,
    /// Place in the arena + 1 of the key that was seen last with this hash of its first two words; 0 if none.
    recent: Vec<u32>,
}

impl Default for Interner {
    fn default() -> Self {
        let (slots, entries, arena, recent) = Default::default();
        Self { seed: Seed::of_run(), slots, entries, arena, recent }
    }
}

/// Result of [`Interner::intern`].
pub(super) struct Interned {
    pub index: usize,
    pub is_new: bool,
}

impl Interner {
    const SLOTS_MIN: usize = 16;
    const RECENT_BITS: u32 = 10;
    /// Keys from which on the last ones are remembered: the table has 4 KiB.
    const RECENT_FROM: usize = 64;

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Forgets everything, keeps the memory, half of it where hardly any was used: that makes the cost one in proportion
    /// to the keys.
    pub fn clear(&mut self) {
        if self.entries.len() < Self::RECENT_FROM {
            self.recent = Vec::new();
        }
        if self.entries.len().saturating_mul(8) < self.slots.len() {
            self.slots.truncate((self.slots.len() / 2).max(Self::SLOTS_MIN));
        }
        self.slots.fill(0);
        self.recent.fill(0);
        self.entries.clear();
        self.arena.clear();
    }

    /// Gives the memory back; nothing may be in it.
    pub fn release_memory(&mut self) {
        if self.entries.is_empty() {
            (self.slots, self.entries, self.arena, self.recent) = Default::default();
        }
    }

    /// [`Self::intern`], faster where keys with the same first two words mostly are the same: an event's
    /// class and call site.
    #[inline]
    pub fn intern_recent(&mut self, key: &[u64]) -> Interned {
        let [first, second, ..] = key else { return self.intern(key) };
        let hint = (first.rotate_left(32) ^ second).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hint = (hint >> (u64::BITS - Self::RECENT_BITS)) as usize;
        if let Some(place) = self.recent.get(hint).and_then(|place| place.checked_sub(1)) {
            if let Some(index) = self.is_at(place, key) {
                return Interned { index, is_new: false };
            }
        }
        let (found, place) = self.find(key);
        if self.recent.is_empty() && self.entries.len() >= Self::RECENT_FROM {
            self.recent.resize(1 << Self::RECENT_BITS, 0);
        }
        if let Some(recent) = self.recent.get_mut(hint) {
            *recent = place + 1;
        }
        found
    }

    /// Index of the key at that place of the arena, if it is this one.
    #[inline]
    fn is_at(&self, place: u32, key: &[u64]) -> Option<usize> {
        let (head, words) = self.arena.get(place as usize..)?.split_first()?;
        let known = words.get(..*head as u32 as usize)?;
        is_same(known, key).then_some((head >> 32) as usize)
    }

    #[inline]
    pub fn intern(&mut self, key: &[u64]) -> Interned {
        self.find(key).0
    }

    /// The key, and its place in the arena.
    fn find(&mut self, key: &[u64]) -> (Interned, u32) {
        if self.entries.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let hash = self.seed.hash(key);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots.get(at).copied().unwrap_or(0);
            if slot == 0 {
                break;
            }
            if slot >> 32 == hash >> 32 {
                let place = slot as u32 - 1;
                if let Some(index) = self.is_at(place, key) {
                    return (Interned { index, is_new: false }, place);
                }
            }
            at = (at + 1) & mask;
        }
        let index = self.entries.len();
        let place = self.arena.len() as u32;
        self.arena.push((index as u64) << 32 | key.len() as u64);
        self.arena.extend_from_slice(key);
        self.entries.push((hash, place));
        self.occupy(at, hash, place);
        (Interned { index, is_new: true }, place)
    }

    fn occupy(&mut self, at: usize, hash: u64, place: u32) {
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = hash >> 32 << 32 | (u64::from(place) + 1);
        }
    }

    fn grow(&mut self) {
        let len = (self.slots.len() * 2).max(Self::SLOTS_MIN);
        self.slots.clear();
        self.slots.resize(len, 0);
        let mask = len - 1;
        for index in 0..self.entries.len() {
            let (hash, place) = self.entries.get(index).copied().unwrap_or_default();
            let mut at = hash as usize & mask;
            while self.slots.get(at).copied().unwrap_or(0) != 0 {
                at = (at + 1) & mask;
            }
            self.occupy(at, hash, place);
        }
    }
}

/// Two words that differ from run to run, and from program to program.
#[derive(Debug, Clone, Copy)]
struct Seed(u64, u64);

impl Seed {
    /// That of this run. The numbers of keys do not depend on it.
    fn of_run() -> Self {
        static SEED: OnceLock<Seed> = OnceLock::new();
        *SEED.get_or_init(|| {
            let word = || RandomState::new().build_hasher().finish();
            Self(word(), word())
        })
    }

    /// Multiply and fold, two words at a time and each pair by itself, so that the multiplications overlap. A chunk holds
    /// at most 65,520 keys, also of a hostile target.
    #[inline]
    fn hash(self, key: &[u64]) -> u64 {
        let Self(a, b) = self;
        let mut state = key.len() as u64;
        let mut pairs = key.chunks_exact(2);
        for pair in &mut pairs {
            if let [first, second] = pair {
                state = state.rotate_left(23) ^ fold(a ^ first, b ^ second);
            }
        }
        state.rotate_left(23) ^ fold(a ^ pairs.remainder().first().copied().unwrap_or(0), b)
    }
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Keys are a few words: a loop is faster than a call to memcmp.
#[inline]
fn is_same(a: &[u64], b: &[u64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_share_an_index() {
        let mut interner = Interner::default();
        let mut key = Key::default();
        for round in 0..2 {
            for i in 0..5_000u32 {
                key.start(u64::from(i % 7));
                key.push_bytes(&[&i.to_le_bytes()[..], &[0; 9][..(i % 9) as usize]].concat());
                let found = if i % 2 == 0 {
                    interner.intern(key.words())
                } else {
                    interner.intern_recent(key.words())
                };
                assert_eq!((found.index, found.is_new), (i as usize, round == 0));
                assert_eq!(interner.intern_recent(key.words()).index, i as usize);
            }
        }
        interner.clear();
        assert_eq!(interner.len(), 0);
        assert!(interner.intern(&[]).is_new);
        assert!(!interner.intern(&[]).is_new);
    }

    /// Keys that all hash alike by constants that are known: one factor of each product is 0.
    #[test]
    fn keys_of_a_file_do_not_collide() {
        const A: u64 = 0x9e37_79b9_7f4a_7c15;
        const B: u64 = 0xd6e8_feb8_6659_fd93;
        let mut interner = Interner::default();
        for i in 0..5_000 {
            interner.intern(&[i, B]);
            interner.intern(&[A, i]);
        }
        let mut hashes: Vec<u64> = interner.entries.iter().map(|(hash, _)| *hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert!(hashes.len() > 9_900, "{} hashes of 10,000 keys", hashes.len());
    }

    #[test]
    fn clearing_costs_in_proportion_to_the_keys() {
        let mut interner = Interner::default();
        assert!((0..60_000).all(|i| interner.intern_recent(&[1, i, i]).is_new));
        let mut cleared = 0;
        for round in 0..2_000 {
            cleared += interner.slots.len() + interner.recent.len();
            interner.clear();
            assert!(interner.intern_recent(&[1, round, 0]).is_new);
        }
        assert!(cleared < 500_000, "{cleared} places were cleared");
        assert_eq!(interner.len(), 1);
    }

    #[test]
    fn few_keys_take_little_memory() {
        let mut interner = Interner::default();
        assert!((0..4).all(|i| interner.intern_recent(&[i, i]).is_new));
        assert!(interner.slots.len() * 8 + interner.recent.len() * 4 <= 256);
        interner.clear();
        interner.release_memory();
        assert_eq!(interner.slots.capacity(), 0);
    }

    #[test]
    fn strings_of_zeros_differ_by_their_length() {
        let words = |bytes: &[u8]| {
            let mut key = Key::default();
            key.start(0);
            key.push_bytes(bytes);
            key.words().to_vec()
        };
        assert_ne!(words(&[0; 3]), words(&[0; 4]));
        assert_eq!(partial_word(&[1, 2]), 0x201);
        assert_eq!(partial_word(&[1, 2, 3, 4, 5]), 0x5_0403_0201);
        assert_eq!(partial_word(&[1, 2, 3, 4, 5, 6, 7]), 0x7_0605_0403_0201);
        assert_eq!(partial_word(&[1, 2, 3, 4, 5, 6, 7, 8]), 0x807_0605_0403_0201);
    }
}
