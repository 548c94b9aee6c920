//! Owner of each page frame, in pieces of 1, 16, 256 or 4096 frames, so that memory follows the number of allocations
//! and not their sizes.
//!
//! A piece is the largest aligned one that is in one allocation. A node has sixteen pieces of one size; a piece that
//! changes owner in part gets a node of its own, with sixteen smaller ones. A frame is found from the node of its 65,536
//! frames downwards, at most four nodes of one cache line each.

use std::collections::HashMap;

use crate::int_hash::IntHash;

/// log2 of the pieces of a node.
const BITS: u32 = 4;
const PIECES: usize = 1 << BITS;
/// Number of sizes of pieces.
const LEVELS: u32 = 4;
/// Largest size.
const TOP: u32 = LEVELS - 1;
/// A piece with a node of smaller ones: the bits below are the number of the node.
const DIVIDED: u32 = 1 << 31;

/// Number of its allocation plus 1, below 2^31, for each frame; 0: none. 2^31 live allocations of 40 bytes each would take 86 GB.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    /// Number of the node of 65,536 frames.
    roots: HashMap<u64, u32, IntHash>,
    nodes: Vec<[u32; PIECES]>,
    /// Nodes to be used again.
    unused: Vec<u32>,
    /// Frames with an owner that were looked up, by their low bits: most objects are on few pages.
    recent: Recent,
}

/// Number of remembered frames.
const RECENT: u64 = 1 << 10;

#[derive(Clone, Debug)]
struct Recent(Vec<(u64, u32)>);

impl Default for Recent {
    fn default() -> Self {
        Self(vec![(0, 0); RECENT as usize])
    }
}

impl Recent {
    #[inline]
    fn get(&self, pfn: u64) -> Option<u32> {
        let found = self.0.get((pfn % RECENT) as usize);
        found.filter(|found| found.0 == pfn && found.1 != 0).map(|found| found.1)
    }

    #[inline]
    fn put(&mut self, pfn: u64, owner: u32) {
        if let Some(slot) = self.0.get_mut((pfn % RECENT) as usize) {
            *slot = (pfn, owner);
        }
    }

    /// Forgets 2^order frames.
    fn forget(&mut self, pfn: u64, order: u8) {
        (0..RECENT.min(1 << order)).for_each(|frame| self.put(pfn.wrapping_add(frame), 0));
    }
}

/// Number of frames of a piece.
const fn frames(level: u32) -> u64 {
    1 << (BITS * level)
}

const fn piece(pfn: u64, level: u32) -> usize {
    (pfn >> (BITS * level)) as usize & (PIECES - 1)
}

/// The node of a divided piece.
fn node_of(piece: u32) -> Option<u32> {
    (piece & DIVIDED != 0).then_some(piece & !DIVIDED)
}

/// The pieces of 2^order frames, with their levels.
fn pieces(pfn: u64, order: u8) -> impl Iterator<Item = (u64, u32)> {
    let mut left = 1u64 << order;
    let mut at = pfn;
    std::iter::from_fn(move || {
        let here = at;
        let level = (left.checked_ilog2()? / BITS).min(at.trailing_zeros() / BITS).min(TOP);
        at = at.wrapping_add(frames(level));
        left -= frames(level);
        Some((here, level))
    })
}

impl Owners {
    fn at(&self, node: u32, pfn: u64, level: u32) -> u32 {
        let node = self.nodes.get(node as usize);
        node.and_then(|node| node.get(piece(pfn, level))).copied().unwrap_or(0)
    }

    fn put(&mut self, node: u32, pfn: u64, level: u32, value: u32) {
        let node = self.nodes.get_mut(node as usize);
        if let Some(slot) = node.and_then(|node| node.get_mut(piece(pfn, level))) {
            *slot = value;
        }
    }

    /// Owner of a frame.
    #[inline]
    pub fn get(&mut self, pfn: u64) -> u32 {
        self.recent.get(pfn).unwrap_or_else(|| {
            let owner = self.find(pfn);
            self.recent.put(pfn, owner);
            owner
        })
    }

    /// Owner of a frame, without [`Recent`].
    pub fn find(&self, pfn: u64) -> u32 {
        let Some(mut node) = self.roots.get(&(pfn >> (BITS * LEVELS))).copied() else { return 0 };
        for level in (0..LEVELS).rev() {
            let value = self.at(node, pfn, level);
            let Some(below) = node_of(value) else { return value };
            node = below;
        }
        0
    }

    /// Sets the owner of 2^order frames without owners.
    pub fn set(&mut self, pfn: u64, order: u8, owner: u32) {
        self.recent.forget(pfn, order);
        for (at, level) in pieces(pfn, order) {
            let mut node = self.root(at);
            for above in (level + 1..LEVELS).rev() {
                let value = self.at(node, at, above);
                node = node_of(value).unwrap_or_else(|| self.divide(node, at, above));
            }
            if let Some(below) = node_of(self.at(node, at, level)) {
                self.drop_node(below, level, &mut Vec::new());
            }
            self.put(node, at, level, owner);
        }
    }

    /// Removes 2^order frames from their owners; appends each owner and its number of frames to `runs`, in frame order.
    pub fn take(&mut self, pfn: u64, order: u8, runs: &mut Vec<(u32, u32)>) {
        self.recent.forget(pfn, order);
        for (at, level) in pieces(pfn, order) {
            let Some((node, value)) = self.owned(at, level) else { continue };
            self.put(node, at, level, 0);
            match node_of(value) {
                Some(below) => self.drop_node(below, level, runs),
                None => append(runs, value, level),
            }
        }
    }

    /// Node and value of a piece with an owner or smaller pieces; a larger piece around it is divided.
    fn owned(&mut self, pfn: u64, level: u32) -> Option<(u32, u32)> {
        let mut node = self.roots.get(&(pfn >> (BITS * LEVELS))).copied()?;
        let mut value = self.at(node, pfn, TOP);
        for above in (level + 1..LEVELS).rev() {
            if value == 0 {
                return None;
            }
            node = node_of(value).unwrap_or_else(|| self.divide(node, pfn, above));
            value = self.at(node, pfn, above - 1);
        }
        (value != 0).then_some((node, value))
    }

    fn root(&mut self, pfn: u64) -> u32 {
        let key = pfn >> (BITS * LEVELS);
        if let Some(node) = self.roots.get(&key) {
            return *node;
        }
        let node = self.new_node(0);
        self.roots.insert(key, node);
        node
    }

    /// Divides a piece into sixteen of its owner.
    fn divide(&mut self, node: u32, pfn: u64, level: u32) -> u32 {
        let below = self.new_node(self.at(node, pfn, level));
        self.put(node, pfn, level, DIVIDED | below);
        below
    }

    fn new_node(&mut self, owner: u32) -> u32 {
        let node = self.unused.pop().unwrap_or(self.nodes.len() as u32);
        match self.nodes.get_mut(node as usize) {
            Some(used) => *used = [owner; PIECES],
            None => self.nodes.push([owner; PIECES]),
        }
        node
    }

    /// Removes the node of a piece; appends its owners to `runs`.
    fn drop_node(&mut self, node: u32, level: u32, runs: &mut Vec<(u32, u32)>) {
        let Some(values) = self.nodes.get(node as usize).copied() else { return };
        self.unused.push(node);
        let Some(smaller) = level.checked_sub(1) else { return };
        for value in values.into_iter().filter(|value| *value != 0) {
            match node_of(value) {
                Some(below) => self.drop_node(below, smaller, runs),
                None => append(runs, value, smaller),
            }
        }
    }
}

/// Appends a piece to the runs of owners.
fn append(runs: &mut Vec<(u32, u32)>, owner: u32, level: u32) {
    match runs.last_mut() {
        Some((last, count)) if *last == owner => *count += frames(level) as u32,
        _ => runs.push((owner, frames(level) as u32)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference implementation: frames one by one.
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
        assert!(owners.nodes.len() <= 500, "{} nodes", owners.nodes.len());
        assert_eq!(owners.get(999 << 15 | 0x7fff), 1000);
    }

    #[test]
    fn nodes_of_pieces_that_are_whole_again_are_used_again() {
        let mut owners = Owners::default();
        for number in 1..100u32 {
            for frame in 0..4096 {
                owners.set(frame, 0, number);
            }
            let mut runs = Vec::new();
            owners.take(0, 12, &mut runs);
            assert_eq!(runs, [(number, 4096)]);
        }
        assert_eq!(owners.nodes.len(), 1 + 1 + 16 + 256);
    }
}
