//! A table from addresses or frames to nodes, with open addressing.
//!
//! Its hashes differ in each run, so that no input can make them collide.

use std::hash::{BuildHasher, RandomState};

/// No node.
pub const NONE: u32 = u32::MAX;

/// Nodes by key. The key `u64::MAX` cannot be stored.
#[derive(Debug)]
pub struct PendingTable {
    slots: Vec<(u64, u32)>,
    len: usize,
    factor: u64,
}

const EMPTY: (u64, u32) = (u64::MAX, NONE);
const SLOTS_MIN: usize = 1_024;

impl Default for PendingTable {
    fn default() -> Self {
        let factor = RandomState::new().hash_one(0u8) | 1;
        Self { slots: vec![EMPTY; SLOTS_MIN], len: 0, factor }
    }
}

impl PendingTable {
    #[inline]
    fn start(&self, key: u64) -> usize {
        let mixed = (key ^ key >> 32).wrapping_mul(self.factor);
        (mixed >> 32) as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn place(&self, key: u64) -> Result<usize, usize> {
        let mut at = self.start(key);
        while let Some(&(found, node)) = self.slots.get(at) {
            if node == NONE {
                return Err(at);
            }
            if found == key {
                return Ok(at);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        Err(0)
    }

    /// The node of a key.
    #[inline]
    pub fn get(&self, key: u64) -> Option<u32> {
        let at = self.place(key).ok()?;
        self.slots.get(at).map(|slot| slot.1)
    }

    /// Stores the node of a key, in place of another one.
    pub fn insert(&mut self, key: u64, node: u32) {
        if self.len * 2 >= self.slots.len() {
            self.grow();
        }
        let at = match self.place(key) {
            Ok(at) => at,
            Err(at) => {
                self.len += 1;
                at
            }
        };
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = (key, node);
        }
    }

    /// Removes a key; returns its node.
    pub fn remove(&mut self, key: u64) -> Option<u32> {
        let mut hole = self.place(key).ok()?;
        let removed = self.slots.get(hole).map(|slot| slot.1);
        self.len -= 1;
        let mask = self.slots.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let Some(&slot) = self.slots.get(at) else { break };
            if slot.1 == NONE {
                break;
            }
            // A slot moves into the hole unless its search would begin behind the hole.
            let distance = at.wrapping_sub(self.start(slot.0)) & mask;
            if distance >= (at.wrapping_sub(hole) & mask) {
                if let Some(place) = self.slots.get_mut(hole) {
                    *place = slot;
                }
                hole = at;
            }
        }
        if let Some(place) = self.slots.get_mut(hole) {
            *place = EMPTY;
        }
        removed
    }

    fn grow(&mut self) {
        let slots = vec![EMPTY; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, slots);
        self.len = 0;
        for (key, node) in old.into_iter().filter(|slot| slot.1 != NONE) {
            self.insert(key, node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn it_is_a_map() {
        let (mut table, mut model) = (PendingTable::default(), HashMap::new());
        let mut seed = 3u64;
        for step in 0..200_000u32 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = 0xffff_8880_0000_0000 | (seed >> 50) << 3;
            match seed >> 33 & 3 {
                0 => assert_eq!(table.remove(key), model.remove(&key)),
                1 => assert_eq!(table.get(key), model.get(&key).copied()),
                _ => {
                    table.insert(key, step);
                    model.insert(key, step);
                }
            }
            assert_eq!(table.len, model.len());
        }
    }
}
