//! Addresses whose last written event leaves something open: a life that has not ended, or a decision that waits for the next event.
//!
//! An allocation at such an address may end a life that is in the file, so it is written. The set is exact, in fixed memory:
//! groups of an address' own, and a group that is full is from then on treated as if all its addresses were in it. That costs
//! bytes, never truth.

/// What is open at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// A life, and nothing else.
    Live,
    /// A life, and a decision on an older one.
    LiveTangled,
    /// No life, and a decision on an older one.
    Tangled,
    /// Not known: the group of the address is full.
    Unknown,
}

/// Bits of an address: 48, and the lowest three are 0.
const KEY_BITS: u32 = 45;
/// log2 of the number of groups: then the rest of an address and two bits fit into 32.
const GROUPS_LOG2: u32 = 15;
const REST_BITS: u32 = KEY_BITS - GROUPS_LOG2;
const EMPTY: u32 = 0;

/// The open addresses.
#[derive(Debug)]
pub struct WrittenSet {
    /// Groups of `width` entries; an entry has its state in the upper two bits.
    entries: Vec<u32>,
    width: usize,
    /// Full groups.
    full: Vec<bool>,
    /// Upper bits that all addresses have; others are unknown.
    home: Option<u64>,
}

impl WrittenSet {
    /// A set with that much memory, in bytes.
    pub fn new(memory: usize) -> Self {
        let width = (memory / (4 << GROUPS_LOG2)).min(1 << 12);
        Self {
            entries: vec![EMPTY; width << GROUPS_LOG2],
            width,
            full: vec![width == 0; 1 << GROUPS_LOG2],
            home: None,
        }
    }

    /// Group and rest of an address; `None`: it is not like the others.
    #[inline]
    fn split(&mut self, address: u64) -> Option<(usize, u32)> {
        let home = *self.home.get_or_insert(address >> 48);
        if address >> 48 != home || address & 7 != 0 {
            return None;
        }
        // A bijection of 45 bits, so that the rest tells addresses of a group apart.
        const MASK: u64 = (1 << KEY_BITS) - 1;
        let mut key = (address >> 3) & MASK;
        key ^= key >> 23;
        key = key.wrapping_mul(0x0b4e_0ef3_7a2d) & MASK;
        key ^= key >> 22;
        Some(((key >> REST_BITS) as usize, (key & ((1 << REST_BITS) - 1)) as u32))
    }

    #[inline]
    fn group(&mut self, group: usize) -> &mut [u32] {
        let start = group * self.width;
        self.entries.get_mut(start..start + self.width).unwrap_or_default()
    }

    /// What is open at an address.
    #[inline]
    pub fn get(&mut self, address: u64) -> Option<Open> {
        let Some((group, rest)) = self.split(address) else { return Some(Open::Unknown) };
        if self.full.get(group).is_none_or(|full| *full) {
            return Some(Open::Unknown);
        }
        let entries = self.group(group);
        // Of most addresses nothing is open, which takes a few comparisons of several entries at once.
        if !entries.iter().fold(false, |any, &entry| any | (entry & REST_MASK == rest)) {
            return None;
        }
        let found = entries.iter().find(|&&entry| entry != EMPTY && entry & REST_MASK == rest)?;
        Some(match found >> REST_BITS {
            1 => Open::Live,
            2 => Open::LiveTangled,
            _ => Open::Tangled,
        })
    }

    /// Changes what is open at an address.
    pub fn set(&mut self, address: u64, open: Option<Open>) {
        let Some((group, rest)) = self.split(address) else { return };
        if self.full.get(group).is_none_or(|full| *full) {
            return;
        }
        let state = match open {
            None | Some(Open::Unknown) => 0,
            Some(Open::Live) => 1,
            Some(Open::LiveTangled) => 2,
            Some(Open::Tangled) => 3,
        };
        let entries = self.group(group);
        let at = entries.iter().position(|&entry| entry != EMPTY && entry & REST_MASK == rest);
        let at =
            at.or_else(|| if state == 0 { None } else { entries.iter().position(|&entry| entry == EMPTY) });
        match at.and_then(|at| entries.get_mut(at)) {
            Some(entry) => *entry = if state == 0 { EMPTY } else { state << REST_BITS | rest },
            None if state == 0 => {}
            None => {
                if let Some(full) = self.full.get_mut(group) {
                    *full = true;
                }
            }
        }
    }
}

const REST_MASK: u32 = (1 << REST_BITS) - 1;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn it_is_exact_until_a_group_is_full() {
        for memory in [0, 128 << 10, 4 << 20] {
            let (mut set, mut model) = (WrittenSet::new(memory), HashMap::new());
            let mut seed = 3u64;
            for _ in 0..300_000u32 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let address = 0x00ff_8880_0000_0000 | (seed >> 44) << 3;
                let open = [None, Some(Open::Live), Some(Open::LiveTangled), Some(Open::Tangled)]
                    [(seed >> 33 & 3) as usize];
                set.set(address, open);
                model.insert(address, open);
                let found = set.get(address);
                assert!(found == open || found == Some(Open::Unknown), "{address:x}: {found:?} {open:?}");
            }
            let unknown = model.keys().filter(|&&address| set.get(address) == Some(Open::Unknown)).count();
            for (&address, &open) in &model {
                let found = set.get(address);
                assert!(found == open || found == Some(Open::Unknown), "{address:x}: {found:?} {open:?}");
            }
            let share = unknown * 100 / model.len();
            assert!(if memory == 4 << 20 { share < 5 } else { share > 90 }, "{memory}: {share} %");
            assert_eq!(set.get(0x00aa_0000_0000_0008), Some(Open::Unknown), "an address unlike the others");
        }
    }
}
