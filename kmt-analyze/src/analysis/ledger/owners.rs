//! The allocation that each page frame belongs to.

use std::collections::HashMap;

use crate::analysis::int_hash::IntHash;

/// Frames of one table block: 2^9.
const BLOCK_LOG2: u32 = 9;
/// Blocks below this number are found without hashing: 1 TiB of pages of 4 KiB.
const NEAR_BLOCKS: u64 = 1 << 19;

/// For each frame the number of its allocation and one; 0 for none.
#[derive(Debug, Default)]
pub struct Owners {
    near: Vec<u32>,
    far: HashMap<u64, u32, IntHash>,
    blocks: Vec<[u32; 1 << BLOCK_LOG2]>,
}

impl Owners {
    fn block(&self, pfn: u64) -> Option<usize> {
        let number = pfn >> BLOCK_LOG2;
        let block = if number < NEAR_BLOCKS {
            self.near.get(number as usize).copied().unwrap_or(0)
        } else {
            self.far.get(&number).copied().unwrap_or(0)
        };
        (block as usize).checked_sub(1)
    }

    /// What the frame has.
    #[inline]
    pub fn get(&self, pfn: u64) -> u32 {
        let owners = self.block(pfn).and_then(|b| self.blocks.get(b));
        owners.and_then(|o| o.get(pfn as usize & ((1 << BLOCK_LOG2) - 1))).copied().unwrap_or(0)
    }

    /// Gives the frame an owner.
    pub fn set(&mut self, pfn: u64, owner: u32) {
        let block = match self.block(pfn) {
            Some(block) => block,
            None if owner == 0 => return,
            None => {
                self.blocks.push([0; 1 << BLOCK_LOG2]);
                let (number, block) = (pfn >> BLOCK_LOG2, self.blocks.len() as u32);
                if number < NEAR_BLOCKS {
                    if self.near.len() <= number as usize {
                        self.near.resize(number as usize + 1, 0);
                    }
                    if let Some(slot) = self.near.get_mut(number as usize) {
                        *slot = block;
                    }
                } else {
                    self.far.insert(number, block);
                }
                block as usize - 1
            }
        };
        let owners = self.blocks.get_mut(block);
        if let Some(slot) = owners.and_then(|o| o.get_mut(pfn as usize & ((1 << BLOCK_LOG2) - 1))) {
            *slot = owner;
        }
    }
}
