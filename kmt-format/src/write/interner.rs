//! Byte strings to small numbers, within one chunk.

/// Gives equal byte strings the same index, counted from 0 in order of first sight.
///
/// Open addressing with linear probing; the strings lie in one arena, so that nothing is allocated per string.
#[derive(Debug, Default)]
pub(super) struct Interner {
    /// Index + 1 of the entry in each slot, 0 if free; a power of two long.
    slots: Vec<u32>,
    entries: Vec<Entry>,
    arena: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    hash: u64,
    start: u32,
    len: u32,
}

/// What [`Interner::intern`] found.
pub(super) struct Interned {
    pub index: usize,
    pub is_new: bool,
}

impl Interner {
    const SLOTS_MIN: usize = 1024;

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        self.slots.fill(0);
        self.entries.clear();
        self.arena.clear();
    }

    #[inline]
    pub fn intern(&mut self, key: &[u8]) -> Interned {
        if self.entries.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let hash = hash(key);
        let mask = self.slots.len() - 1;
        let mut slot = (hash >> 32) as usize & mask;
        loop {
            match self.slots.get(slot).copied().unwrap_or(0) {
                0 => break,
                taken => {
                    let index = taken as usize - 1;
                    if self.entries.get(index).is_some_and(|e| e.hash == hash && self.key_of(e) == key) {
                        return Interned { index, is_new: false };
                    }
                }
            }
            slot = (slot + 1) & mask;
        }
        let index = self.entries.len();
        self.entries.push(Entry { hash, start: self.arena.len() as u32, len: key.len() as u32 });
        self.arena.extend_from_slice(key);
        if let Some(free) = self.slots.get_mut(slot) {
            *free = index as u32 + 1;
        }
        Interned { index, is_new: true }
    }

    /// The string of that index.
    pub fn key(&self, index: usize) -> &[u8] {
        self.entries.get(index).map_or(&[], |e| self.key_of(e))
    }

    fn key_of(&self, entry: &Entry) -> &[u8] {
        let start = entry.start as usize;
        self.arena.get(start..start + entry.len as usize).unwrap_or(&[])
    }

    fn grow(&mut self) {
        let len = (self.slots.len() * 2).max(Self::SLOTS_MIN);
        self.slots.clear();
        self.slots.resize(len, 0);
        let mask = len - 1;
        for (index, entry) in self.entries.iter().enumerate() {
            let mut slot = (entry.hash >> 32) as usize & mask;
            while self.slots.get(slot).copied().unwrap_or(0) != 0 {
                slot = (slot + 1) & mask;
            }
            if let Some(free) = self.slots.get_mut(slot) {
                *free = index as u32 + 1;
            }
        }
    }
}

/// Eight bytes at a time: multiply, fold. Not for hostile keys beyond one chunk: a chunk holds at most 65,520.
#[inline]
fn hash(key: &[u8]) -> u64 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = key.len() as u64 ^ K;
    let (words, rest) = key.as_chunks_compat();
    for word in words {
        state = fold(state ^ u64::from_le_bytes(*word), K);
    }
    let mut tail = [0u8; 8];
    for (to, from) in tail.iter_mut().zip(rest) {
        *to = *from;
    }
    fold(state ^ u64::from_le_bytes(tail), K)
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// `as_chunks` of newer Rust, on 1.85.
trait AsChunks {
    fn as_chunks_compat(&self) -> (&[[u8; 8]], &[u8]);
}

impl AsChunks for [u8] {
    #[inline]
    fn as_chunks_compat(&self) -> (&[[u8; 8]], &[u8]) {
        use zerocopy::FromBytes;
        let words = self.len() / 8;
        match <[[u8; 8]]>::ref_from_prefix_with_elems(self, words) {
            Ok((chunks, rest)) => (chunks, rest),
            Err(_) => (&[], self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_share_an_index() {
        let mut interner = Interner::default();
        for round in 0..2 {
            for i in 0..5_000u32 {
                let key = [&i.to_le_bytes()[..], &[7; 9][..(i % 9) as usize]].concat();
                let found = interner.intern(&key);
                assert_eq!((found.index, found.is_new), (i as usize, round == 0));
                assert_eq!(interner.key(i as usize), key);
            }
        }
        interner.clear();
        assert_eq!(interner.len(), 0);
        assert!(interner.intern(b"").is_new);
        assert!(!interner.intern(b"").is_new);
    }
}
