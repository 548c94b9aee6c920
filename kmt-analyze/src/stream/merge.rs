//! Merges the operations of all CPUs into the kernel's order, by a tree of two-way merges.
//!
//! The next operation is that of the CPU whose next event is the oldest, the lowest CPU on ties; the order within a CPU
//! never changes. It is the order of [`kmt_format::read::Merge`], which returns runs: under load a run has three
//! events, and mispredicting its end is expensive. Here each event costs one comparison, whose result only moves
//! indices.

use kmt_format::read::Damage;

use super::decode::Decoder;
use super::intern::NewItems;
use super::load::Chunks;
use super::op::Op;
use super::open_chunk::Open;

/// Operations merged at a time: they and their slots stay in a first-level cache.
const BATCH: usize = 256;
/// Largest number of CPUs with a full batch; with more, each has less.
const CPUS: usize = 512;

/// Batch size for this number of CPUs.
fn batch(cpus: usize) -> usize {
    (BATCH * CPUS / cpus.max(CPUS)).max(4)
}

/// A tree of merges.
pub struct Merged<'l, 't, 'd> {
    root: MergeNode<'d>,
    source: OpSource<'l, 't, 'd>,
}

/// Source of the operations of the leaves.
struct OpSource<'l, 't, 'd> {
    chunks: Chunks<'l, 't, 'd>,
    decoder: Decoder<'t>,
    damages: Vec<Damage>,
}

enum MergeNode<'d> {
    Leaf(Box<Leaf<'d>>),
    Pair(Box<Pair<'d>>),
    /// All of its operations are taken: no later batch looks below it.
    Ended,
}

/// One CPU.
struct Leaf<'d> {
    jobs: std::vec::IntoIter<usize>,
    open: Option<Open<'d>>,
    /// True if the chunk before was damaged.
    behind_damage: bool,
    ready: Ready,
}

struct Pair<'d> {
    left: MergeNode<'d>,
    right: MergeNode<'d>,
    ready: Ready,
}

/// Available operations: from `at` to `end`.
struct Ready {
    ops: Vec<Op>,
    at: usize,
    end: usize,
}

impl Ready {
    fn new(batch: usize) -> Self {
        Self { ops: vec![Op::default(); batch], at: 0, end: 0 }
    }
}

impl<'l, 't, 'd> Merged<'l, 't, 'd> {
    /// Merges the chunks of all CPUs.
    pub fn new(chunks: Chunks<'l, 't, 'd>, decoder: Decoder<'t>) -> Self {
        let batch = batch(chunks.streams().len());
        let leaf = |jobs: &Vec<usize>| {
            MergeNode::Leaf(Box::new(Leaf {
                jobs: jobs.clone().into_iter(),
                open: None,
                behind_damage: false,
                ready: Ready::new(batch),
            }))
        };
        let mut nodes: Vec<MergeNode<'d>> = chunks.streams().iter().map(|(_, jobs)| leaf(jobs)).collect();
        // Neighbours are paired, so the lower CPU is always on the left.
        while nodes.len() > 1 {
            let mut next = Vec::with_capacity(nodes.len().div_ceil(2));
            let mut rest = nodes.into_iter();
            while let Some(left) = rest.next() {
                next.push(match rest.next() {
                    Some(right) => MergeNode::Pair(Box::new(Pair { left, right, ready: Ready::new(batch) })),
                    None => left,
                });
            }
            nodes = next;
        }
        let root = nodes.pop().unwrap_or_else(|| leaf(&Vec::new()));
        Self { root, source: OpSource { chunks, decoder, damages: Vec::new() } }
    }

    /// The next operations, none at the end; and the items that they number first.
    pub fn next_batch(&mut self) -> (&[Op], NewItems) {
        let len = self.root.front().len();
        self.root.advance(len);
        self.root.fill(&mut self.source);
        (self.root.front(), self.source.decoder.new_items())
    }

    /// The decoder with its counts, and damaged chunks.
    pub fn finish(self) -> (Decoder<'t>, Vec<Damage>) {
        (self.source.decoder, self.source.damages)
    }
}

impl<'d> MergeNode<'d> {
    /// Available operations.
    #[inline]
    fn front(&self) -> &[Op] {
        let ready = match self {
            Self::Leaf(leaf) => &leaf.ready,
            Self::Pair(pair) => &pair.ready,
            Self::Ended => return &[],
        };
        ready.ops.get(ready.at..ready.end).unwrap_or_default()
    }

    #[inline]
    fn advance(&mut self, by: usize) {
        match self {
            Self::Leaf(leaf) => leaf.ready.at += by,
            Self::Pair(pair) => pair.ready.at += by,
            Self::Ended => {}
        }
    }

    /// Makes operations available, unless this is the end.
    fn fill(&mut self, source: &mut OpSource<'_, '_, 'd>) {
        if !self.front().is_empty() {
            return;
        }
        match self {
            Self::Leaf(leaf) => leaf.fill(source),
            Self::Pair(pair) => pair.fill(source),
            Self::Ended => return,
        }
        if self.front().is_empty() {
            *self = Self::Ended;
        }
    }
}

impl<'d> Leaf<'d> {
    fn fill(&mut self, source: &mut OpSource<'_, '_, 'd>) {
        (self.ready.at, self.ready.end) = (0, 0);
        while self.ready.end == 0 {
            if let Some(open) = self.open.as_mut().filter(|o| !o.is_done()) {
                self.ready.end = source.decoder.decode(open, &mut self.ready.ops);
                continue;
            }
            let Some(job) = self.jobs.next() else { return };
            match source.chunks.take(job) {
                Ok(mut open) => {
                    let behind_damage = std::mem::take(&mut self.behind_damage);
                    open.iter_mut().for_each(|o| o.behind_gap |= behind_damage);
                    self.open = open;
                }
                Err(damage) => {
                    self.behind_damage = true;
                    source.damages.push(damage);
                }
            }
        }
    }
}

impl<'d> Pair<'d> {
    fn fill(&mut self, source: &mut OpSource<'_, '_, 'd>) {
        let mut filled = 0;
        while let Some(out) = self.ready.ops.get_mut(filled..).filter(|o| !o.is_empty()) {
            self.left.fill(source);
            self.right.fill(source);
            let (left, right) = (self.left.front(), self.right.front());
            let (from_left, from_right) = match (left.is_empty(), right.is_empty()) {
                (true, true) => break,
                (false, true) => (copy(left, out), 0),
                (true, false) => (0, copy(right, out)),
                (false, false) => merge(left, right, out),
            };
            self.left.advance(from_left);
            self.right.advance(from_right);
            filled += from_left + from_right;
        }
        (self.ready.at, self.ready.end) = (0, filled);
    }
}

fn copy(from: &[Op], out: &mut [Op]) -> usize {
    let len = from.len().min(out.len());
    out.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
    len
}

/// Merges until one side is empty or `out` is full; returns the numbers taken of each side.
fn merge(left: &[Op], right: &[Op], out: &mut [Op]) -> (usize, usize) {
    let (mut from_left, mut from_right) = (0, 0);
    let mut rest = out;
    loop {
        // This number of steps needs no check for an end.
        let steps = rest.len().min(left.len() - from_left).min(right.len() - from_right);
        if steps == 0 {
            return (from_left, from_right);
        }
        let (now, later) = rest.split_at_mut(steps);
        for slot in now {
            let (Some(a), Some(b)) = (left.get(from_left), right.get(from_right)) else { break };
            // On ties the lower CPU is first.
            let is_right = b.time < a.time;
            // Chosen by index: a branch would be unpredictable.
            *slot = *[a, b][usize::from(is_right)];
            from_right += usize::from(is_right);
            from_left += usize::from(!is_right);
        }
        rest = later;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ops(times: &[u64], origin: u32) -> Vec<Op> {
        times.iter().map(|&time| Op { time, origin, ..Op::default() }).collect()
    }

    #[test]
    fn the_oldest_goes_first_and_the_left_wins_ties() {
        let (left, right) = (ops(&[1, 5, 5, 9], 0), ops(&[2, 5, 6], 1));
        let mut out = vec![Op::default(); 9];
        let (from_left, from_right) = merge(&left, &right, &mut out);
        assert_eq!((from_left, from_right), (3, 3), "it ends when a side is used up");
        let found: Vec<(u64, u32)> = out[..6].iter().map(|o| (o.time, o.origin)).collect();
        assert_eq!(found, [(1, 0), (2, 1), (5, 0), (5, 0), (5, 1), (6, 1)]);
        let (from_left, from_right) = merge(&left, &right, &mut out[..2]);
        assert_eq!((from_left, from_right), (1, 1), "or when the room is");
    }

    #[test]
    fn a_clock_that_steps_back_does_not_reorder_its_cpu() {
        let (left, right) = (ops(&[10, 3, 11], 0), ops(&[5, 12], 1));
        let mut out = vec![Op::default(); 5];
        merge(&left, &right, &mut out);
        let found: Vec<u64> = out.iter().map(|o| o.time).collect();
        assert_eq!(found[..4], [5, 10, 3, 11]);
    }
}
