//! The allocation that each page frame belongs to: in pieces of 1, 16, 256 or 4096 frames, so that memory follows the
//! number of allocations and not their sizes.
//!
//! A piece is the largest aligned one that an allocation covers whole. No frame is in two pieces; a piece of which a
//! part changes hands becomes sixteen smaller ones.

use std::collections::HashMap;

use crate::int_hash::IntHash;

/// A node has 2^4 pieces.
const BITS: u32 = 4;
const PIECES: usize = 1 << BITS;
/// Sizes of pieces.
const LEVELS: u32 = 4;
/// The largest.
const TOP: u32 = LEVELS - 1;

/// For each frame the number of its allocation and one; 0 for none.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    /// Number of a node and one, by level and first frame.
    index: HashMap<u64, u32, IntHash>,
    nodes: Vec<[u32; PIECES]>,
    /// By level, pieces that have an owner: levels without any are not looked at.
    owned: [u64; LEVELS as usize],
    /// By level and first frame of pieces, how many smaller ones in them have an owner: kept from the first time that one
    /// of the largest pieces is taken.
    small: Option<HashMap<u64, u32, IntHash>>,
}

/// Frames of a piece.
const fn frames(level: u32) -> u64 {
    1 << (BITS * level)
}

fn key(pfn: u64, level: u32) -> u64 {
    // Below the number of the node there is room for the level.
    (pfn >> (BITS * (level + 1))) << BITS | u64::from(level)
}

/// A piece by level and first frame.
const fn whole(pfn: u64, level: u32) -> u64 {
    (pfn >> (BITS * level)) << BITS | level as u64
}

fn piece(pfn: u64, level: u32) -> usize {
    (pfn >> (BITS * level)) as usize & (PIECES - 1)
}

/// The pieces of 2^order frames.
fn pieces(pfn: u64, order: u8) -> impl Iterator<Item = (u64, u32)> {
    let mut left = 1u64 << order;
    let mut at = pfn;
    std::iter::from_fn(move || {
        let fits = |level: &u32| at % frames(*level) == 0 && left >= frames(*level);
        let level = (0..LEVELS).rev().find(fits).filter(|_| left > 0)?;
        let here = at;
        at = at.wrapping_add(frames(level));
        left -= frames(level);
        Some((here, level))
    })
}

impl Owners {
    fn at(&self, pfn: u64, level: u32) -> u32 {
        let node = self.index.get(&key(pfn, level)).and_then(|n| self.nodes.get(*n as usize));
        node.and_then(|n| n.get(piece(pfn, level))).copied().unwrap_or(0)
    }

    /// Whether pieces of that size have owners.
    fn any(&self, level: u32) -> bool {
        self.owned.get(level as usize).is_some_and(|n| *n > 0)
    }

    /// What the frame has.
    #[inline]
    pub fn get(&self, pfn: u64) -> u32 {
        for level in 0..LEVELS {
            if self.any(level) {
                let owner = self.at(pfn, level);
                if owner != 0 {
                    return owner;
                }
            }
        }
        0
    }

    /// Gives 2^order frames an owner; they have none.
    pub fn set(&mut self, pfn: u64, order: u8, owner: u32) {
        for (at, level) in pieces(pfn, order) {
            self.put(at, level, owner);
        }
    }

    fn put(&mut self, pfn: u64, level: u32, owner: u32) {
        let nodes = &mut self.nodes;
        let number = *self.index.entry(key(pfn, level)).or_insert_with(|| {
            nodes.push([0; PIECES]);
            nodes.len() as u32 - 1
        });
        let Some(slot) = self.nodes.get_mut(number as usize).and_then(|n| n.get_mut(piece(pfn, level)))
        else {
            return;
        };
        let (was, is) = (*slot != 0, owner != 0);
        *slot = owner;
        if was == is {
            return;
        }
        if let Some(count) = self.owned.get_mut(level as usize) {
            *count = if is { *count + 1 } else { *count - 1 };
        }
        if let Some(small) = self.small.as_mut() {
            for above in level + 1..LEVELS {
                let count = small.entry(whole(pfn, above)).or_default();
                *count = if is { *count + 1 } else { count.saturating_sub(1) };
            }
        }
    }

    /// Takes 2^order frames from their owners: adds to `runs` who had how many, in the order of frames.
    pub fn take(&mut self, pfn: u64, order: u8, runs: &mut Vec<(u32, u32)>) {
        for (at, level) in pieces(pfn, order) {
            self.split_above(at, level);
            self.take_piece(at, level, runs);
        }
    }

    /// If the piece is a part of a larger one that has an owner, that becomes smaller ones.
    fn split_above(&mut self, pfn: u64, level: u32) {
        for above in (level + 1..LEVELS).rev() {
            let owner = if self.any(above) { self.at(pfn, above) } else { 0 };
            if owner == 0 {
                continue;
            }
            self.put(pfn, above, 0);
            let first = pfn & !(frames(above) - 1);
            for part in 0..PIECES as u64 {
                self.put(first + part * frames(above - 1), above - 1, owner);
            }
        }
    }

    fn take_piece(&mut self, pfn: u64, level: u32, runs: &mut Vec<(u32, u32)>) {
        let owner = if self.any(level) { self.at(pfn, level) } else { 0 };
        if owner != 0 {
            self.put(pfn, level, 0);
            match runs.last_mut() {
                Some((last, count)) if *last == owner => *count += frames(level) as u32,
                _ => runs.push((owner, frames(level) as u32)),
            }
            return;
        }
        let Some(below) = level.checked_sub(1).filter(|_| (0..level).any(|l| self.any(l))) else { return };
        if level == TOP {
            self.count_small();
        }
        if self.small.as_ref().is_some_and(|small| small.get(&whole(pfn, level)).is_none_or(|n| *n == 0)) {
            return;
        }
        for part in 0..PIECES as u64 {
            self.take_piece(pfn + part * frames(below), below, runs);
        }
    }

    /// Begins to count how many smaller pieces of a piece have an owner.
    fn count_small(&mut self) {
        let (index, nodes) = (&self.index, &self.nodes);
        self.small.get_or_insert_with(|| {
            let mut small = HashMap::<u64, u32, IntHash>::default();
            for (key, node) in index {
                let level = (key & (PIECES as u64 - 1)) as u32;
                let owned = nodes.get(*node as usize).map_or(0, |n| n.iter().filter(|o| **o != 0).count());
                let first = key >> BITS << (BITS * (level + 1));
                for above in (level + 1..LEVELS).filter(|_| owned > 0) {
                    *small.entry(whole(first, above)).or_default() += owned as u32;
                }
            }
            small
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames one by one.
    #[derive(Default)]
    struct Plain(HashMap<u64, u32>);

    impl Plain {
        fn take(&mut self, pfn: u64, order: u8) -> Vec<(u32, u32)> {
            let mut runs: Vec<(u32, u32)> = Vec::new();
            for frame in (0..1u64 << order).map(|i| pfn.wrapping_add(i)) {
                let Some(owner) = self.0.remove(&frame) else { continue };
                match runs.last_mut() {
                    Some((last, count)) if *last == owner => *count += 1,
                    _ => runs.push((owner, 1)),
                }
            }
            runs
        }
    }

    #[test]
    fn pieces_are_as_frames_one_by_one() {
        let mut random = 0x1234_5678_9abc_def1u64;
        let mut next = move |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        for first in [0u64, 1 << 41, u64::MAX - 40_000] {
            let (mut owners, mut plain) = (Owners::default(), Plain::default());
            for number in 1..1_000u32 {
                let order = [0, 0, 0, 1, 3, 4, 6, 8, 9, 12, 13, 15][next(12) as usize];
                let aligned = next(3) > 0;
                let offset = next(70_000) & if aligned { !((1u64 << order) - 1) } else { !0 };
                let pfn = first.wrapping_add(offset);
                let mut runs = Vec::new();
                owners.take(pfn, order, &mut runs);
                assert_eq!(runs, plain.take(pfn, order), "{number}: {pfn:#x} {order}");
                if next(3) > 0 {
                    owners.set(pfn, order, number);
                    plain.0.extend((0..1u64 << order).map(|i| (pfn.wrapping_add(i), number)));
                }
                for _ in 0..20 {
                    let pfn = first.wrapping_add(next(110_000));
                    assert_eq!(owners.get(pfn), plain.0.get(&pfn).copied().unwrap_or(0), "{pfn:#x}");
                }
            }
        }
    }

    #[test]
    fn memory_follows_allocations_not_their_sizes() {
        let mut owners = Owners::default();
        for number in 0..1000u32 {
            owners.set(u64::from(number) << 15, 15, number + 1);
        }
        assert!(owners.nodes.len() <= 1000, "{} nodes", owners.nodes.len());
        assert_eq!(owners.get(999 << 15 | 0x7fff), 1000);
    }
}
