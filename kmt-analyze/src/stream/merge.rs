//! Merges the operations of all CPUs into the kernel's order, in runs.
//!
//! The next operation is that of the CPU whose next event is the oldest, the lowest CPU on ties; the order within a CPU
//! never changes. It is the order of [`kmt_format::read::Merge`]. A CPU continues until its next event is behind that of the
//! CPU that waits with the oldest one: an operation costs one comparison, whatever the number of CPUs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use kmt_format::read::Damage;

use super::decode::Decoder;
use super::intern::NewItems;
use super::load::Chunks;
use super::op::Op;
use super::open_chunk::Open;

/// Operations merged at a time, and decoded at a time of each CPU: they and their slots stay in a first-level cache.
const BATCH: usize = 256;
/// Largest number of CPUs with a full batch; with more, each has less.
const CPUS: usize = 512;

/// Batch size for this number of CPUs.
fn batch(cpus: usize) -> usize {
    (BATCH * CPUS / cpus.max(CPUS)).max(4)
}

/// The merged operations of all CPUs.
pub struct Merged<'l, 't, 'd> {
    cpus: Vec<Cpu<'d>>,
    turns: Turns,
    ops: Vec<Op>,
    source: OpSource<'l, 't, 'd>,
}

/// Source of the operations of all CPUs.
struct OpSource<'l, 't, 'd> {
    chunks: Chunks<'l, 't, 'd>,
    decoder: Decoder<'t>,
    damages: Vec<Damage>,
}

/// Whose turn it is.
struct Turns {
    /// Index of the CPU; `None` at the end.
    current: Option<usize>,
    /// Time of the next operation, and index, of each other CPU that has one; time 0 until the first is decoded.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
}

/// One CPU.
struct Cpu<'d> {
    jobs: std::vec::IntoIter<usize>,
    open: Option<Open<'d>>,
    /// True if the chunk before was damaged.
    behind_damage: bool,
    /// Decoded operations, available from `at` to `end`.
    ops: Vec<Op>,
    at: usize,
    end: usize,
}

impl<'l, 't, 'd> Merged<'l, 't, 'd> {
    /// Merges the chunks of all CPUs.
    pub fn new(chunks: Chunks<'l, 't, 'd>, decoder: Decoder<'t>) -> Self {
        let batch = batch(chunks.streams().len());
        let cpu = |jobs: &Vec<usize>| Cpu {
            jobs: jobs.clone().into_iter(),
            open: None,
            behind_damage: false,
            ops: vec![Op::default(); batch],
            at: 0,
            end: 0,
        };
        let cpus: Vec<Cpu<'d>> = chunks.streams().iter().map(|(_, jobs)| cpu(jobs)).collect();
        let source = OpSource { chunks, decoder, damages: Vec::new() };
        Self { turns: Turns::of(cpus.len()), cpus, ops: vec![Op::default(); BATCH], source }
    }

    /// The next operations, none at the end; and the items that they number first.
    pub fn next_batch(&mut self) -> (&[Op], NewItems) {
        let Self { cpus, turns, ops, source } = self;
        let len = turns.take(cpus, ops, |cpu| cpu.decode(source));
        (ops.get(..len).unwrap_or_default(), source.decoder.new_items())
    }

    /// The decoder with its counts, and damaged chunks.
    pub fn finish(self) -> (Decoder<'t>, Vec<Damage>) {
        (self.source.decoder, self.source.damages)
    }
}

impl Turns {
    /// Of this number of CPUs.
    fn of(cpus: usize) -> Self {
        Self { current: Some(0), waiting: (1..cpus).map(|index| Reverse((0, index))).collect() }
    }

    /// Takes the next operations into `out`, less than fill it at the end; returns their number. `decode` makes more of a
    /// CPU available: false if there are none.
    fn take<'d>(
        &mut self,
        cpus: &mut [Cpu<'d>],
        out: &mut [Op],
        mut decode: impl FnMut(&mut Cpu<'d>) -> bool,
    ) -> usize {
        let mut len = 0;
        while let Some(out) = out.get_mut(len..).filter(|out| !out.is_empty()) {
            let Some(index) = self.current else { break };
            let Some(cpu) = cpus.get_mut(index) else { break };
            if cpu.at == cpu.end && !decode(cpu) {
                self.current = self.waiting.pop().map(|Reverse((_, next))| next);
                continue;
            }
            let last = match self.waiting.peek() {
                // On ties the lower CPU is first.
                Some(&Reverse((time, other))) if other < index => time.checked_sub(1),
                Some(&Reverse((time, _))) => Some(time),
                None => Some(u64::MAX),
            };
            let ready = cpu.ops.get(cpu.at..cpu.end).unwrap_or_default();
            let taken = last.map_or(0, |last| copy_until(last, ready, out));
            cpu.at += taken;
            len += taken;
            // The next one is late, unless `out` is full.
            let late = ready.get(taken).filter(|_| taken < out.len());
            if let Some((op, mut next)) = late.zip(self.waiting.peek_mut()) {
                self.current = Some(next.0.1);
                *next = Reverse((op.time, index));
            }
        }
        len
    }
}

impl<'d> Cpu<'d> {
    /// Makes operations available; false at the end.
    #[inline(never)]
    fn decode(&mut self, source: &mut OpSource<'_, '_, 'd>) -> bool {
        (self.at, self.end) = (0, 0);
        while self.end == 0 {
            if let Some(open) = self.open.as_mut().filter(|o| !o.is_done()) {
                self.end = source.decoder.decode(open, &mut self.ops);
                continue;
            }
            self.open = None;
            let Some(job) = self.jobs.next() else { return false };
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
        true
    }
}

/// Copies operations up to the first one after `last`, or until `out` is full; returns their number.
#[inline]
fn copy_until(last: u64, from: &[Op], out: &mut [Op]) -> usize {
    let mut taken = 0;
    for (to, op) in out.iter_mut().zip(from) {
        let op = *op;
        if op.time > last {
            break;
        }
        *to = op;
        taken += 1;
    }
    taken
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A CPU whose operations have these times.
    fn cpu(times: &[u64], origin: u32) -> Cpu<'static> {
        let ops = times.iter().map(|&time| Op { time, origin, ..Op::default() }).collect();
        Cpu { jobs: Vec::new().into_iter(), open: None, behind_damage: false, ops, at: 0, end: 0 }
    }

    /// Times and CPUs in merged order, in batches of that size; two operations of a CPU are decoded at a time.
    fn merged(times: &[Vec<u64>], batch: usize) -> Vec<(u64, u32)> {
        let mut cpus: Vec<Cpu<'_>> =
            times.iter().zip(0..).map(|(times, number)| cpu(times, number)).collect();
        let (mut turns, mut out) = (Turns::of(cpus.len()), vec![Op::default(); batch]);
        let mut found = Vec::new();
        loop {
            let len = turns.take(&mut cpus, &mut out, |cpu| {
                cpu.end = cpu.ops.len().min(cpu.end + 2);
                cpu.at < cpu.end
            });
            found.extend(out[..len].iter().map(|op| (op.time, op.origin)));
            if len == 0 {
                return found;
            }
        }
    }

    /// One by one, always that of the CPU with the oldest next one.
    fn one_by_one(times: &[Vec<u64>]) -> Vec<(u64, u32)> {
        let mut next = vec![0; times.len()];
        let mut found = Vec::new();
        loop {
            let heads = times.iter().zip(&next).zip(0u32..);
            let heads = heads.filter_map(|((times, &at), number)| Some((*times.get(at)?, number)));
            let Some(oldest) = heads.min() else { return found };
            next[oldest.1 as usize] += 1;
            found.push(oldest);
        }
    }

    #[test]
    fn the_oldest_goes_first_and_the_lower_cpu_wins_ties() {
        let found = merged(&[vec![1, 5, 5, 9], vec![2, 5, 6]], 3);
        assert_eq!(found, [(1, 0), (2, 1), (5, 0), (5, 0), (5, 1), (6, 1), (9, 0)]);
    }

    #[test]
    fn a_clock_that_steps_back_does_not_reorder_its_cpu() {
        let found = merged(&[vec![10, 3, 11], vec![5, 12]], 5);
        assert_eq!(found, [(5, 1), (10, 0), (3, 0), (11, 0), (12, 1)]);
    }

    #[test]
    fn without_cpus_or_operations_there_is_nothing() {
        assert_eq!(merged(&[], 4), []);
        assert_eq!(merged(&[vec![], vec![], vec![7]], 4), [(7, 2)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// Also where clocks step back, at both ends of time, and wherever a batch is full.
        #[test]
        fn runs_are_the_order_of_one_by_one(
            times in proptest::collection::vec(
                proptest::collection::vec(
                    prop_oneof![8 => 0u64..12, 1 => Just(u64::MAX), 1 => Just(u64::MAX - 1)],
                    0..20,
                ),
                0..7,
            ),
            batch in 1usize..9,
            is_ordered in any::<bool>(),
        ) {
            let mut times = times;
            if is_ordered {
                times.iter_mut().for_each(|times| times.sort_unstable());
            }
            prop_assert_eq!(merged(&times, batch), one_by_one(&times));
        }
    }
}
