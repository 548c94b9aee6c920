//! Live objects, each with its slot in every layout.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use super::Slot;
use crate::int_hash::IntHash;

/// Live objects.
#[derive(Debug, Default)]
pub struct Objects {
    by_address: HashMap<u64, Object, IntHash>,
    /// Slots of all objects, one for each layout, in blocks.
    slots: Vec<Slot>,
    /// Blocks of no object.
    unused: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Object {
    born: u64,
    site: u32,
    block: u32,
}

impl Objects {
    /// Adds an object, and returns its slots. An object at the same address loses its time and site, and its slots where a
    /// layout gives others.
    pub fn insert(&mut self, address: u64, born: u64, site: u32, layouts: usize) -> &mut [Slot] {
        let (block, is_new) = match self.by_address.entry(address) {
            Entry::Occupied(mut entry) => {
                let object = entry.get_mut();
                (object.born, object.site) = (born, site);
                (object.block, false)
            }
            Entry::Vacant(entry) => {
                let slots = &mut self.slots;
                let block = self.unused.pop().unwrap_or_else(|| {
                    let block = slots.len().checked_div(layouts).unwrap_or(0);
                    slots.resize(slots.len().saturating_add(layouts), Slot::NONE);
                    block as u32
                });
                entry.insert(Object { born, site, block });
                (block, true)
            }
        };
        let slots = self.slots.get_mut(range(block, layouts)).unwrap_or_default();
        if is_new {
            slots.fill(Slot::NONE);
        }
        slots
    }

    /// Removes an object, and returns its time of birth and its slots; there are none without such an object.
    pub fn remove(&mut self, address: u64, layouts: usize) -> (Option<u64>, &[Slot]) {
        let Some(object) = self.by_address.remove(&address) else { return (None, &[]) };
        self.unused.push(object.block);
        let slots = self.slots.get(range(object.block, layouts)).unwrap_or_default();
        (Some(object.born), slots)
    }

    /// Time of birth and site of all objects.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.by_address.values().map(|object| (object.born, object.site))
    }
}

/// Places of the slots of a block.
fn range(block: u32, layouts: usize) -> Range<usize> {
    let first = (block as usize).saturating_mul(layouts);
    first..first.saturating_add(layouts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_used_again_without_the_slots_of_the_object_before() {
        let mut objects = Objects::default();
        let at = |pool| Slot { pool, slab: 7 };
        objects.insert(0x10, 100, 1, 2).fill(at(3));
        // The same address again: a layout that gives no slot leaves the old one.
        objects.insert(0x10, 200, 2, 2)[0] = at(4);
        assert_eq!(objects.remove(0x10, 2), (Some(200), &[at(4), at(3)][..]));
        assert_eq!(objects.remove(0x10, 2), (None, &[][..]));
        assert_eq!(*objects.insert(0x20, 300, 1, 2), [Slot::NONE; 2]);
        assert_eq!(objects.slots.len(), 2);
        assert_eq!(objects.iter().collect::<Vec<_>>(), [(300, 1)]);
    }
}
