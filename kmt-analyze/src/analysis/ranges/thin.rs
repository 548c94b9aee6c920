//! Thinning a trace at random places, as its own losses did.

use std::collections::BTreeMap;

use crate::analysis::int_hash::spread;
use crate::analysis::ledger::Rules;
use crate::analysis::ledger::lives::ADDRESS_BITS;
use crate::analysis::losses::{CpuLosses, Losses};
use crate::stream::op::{Kind, Op};
use crate::stream::{Interner, SharedInterner};

/// Operations in their order, and how they spread over the CPUs.
#[derive(Debug, Default)]
pub struct Streams {
    /// The operations.
    pub ops: Vec<Op>,
    /// Of each operation the index of its CPU in `cpus`.
    pub cpu_of: Vec<u16>,
    /// CPUs.
    pub cpus: Vec<u32>,
}

/// Operations that are kept for thinning: all of a small trace, those of some pages of a large one.
///
/// Nothing passes between pages but what a page event does to its own, so that a part of the pages moves as all do.
#[derive(Debug)]
pub struct Kept {
    /// What is kept.
    pub streams: Streams,
    /// One in so many pages.
    one_in: u64,
    page_size: u64,
    base: u64,
    cpus: BTreeMap<u32, u16>,
    origins: Vec<u16>,
}

/// Operations to keep at most, roughly: some 100 MiB.
const KEPT_MAX: u64 = 3_000_000;
/// Pages that go together: slabs have up to so many.
const TOGETHER_LOG2: u32 = 3;

impl Kept {
    /// Of a trace of so many events.
    pub fn new(events: u64, rules: &Rules) -> Self {
        Self {
            streams: Streams::default(),
            one_in: events.div_ceil(KEPT_MAX).max(1),
            page_size: rules.page_size,
            base: rules.direct_map.map_or(0, |m| m.base),
            cpus: BTreeMap::new(),
            origins: Vec::new(),
        }
    }

    /// Looks at operations, in their order.
    pub fn add(&mut self, ops: &[Op], interner: &SharedInterner) {
        let interner = Interner::lock(interner);
        for origin in interner.origins.items().iter().skip(self.origins.len()) {
            let next = self.cpus.len() as u16;
            let cpu = *self.cpus.entry(origin.cpu).or_insert(next);
            if cpu == next {
                self.streams.cpus.push(origin.cpu);
            }
            self.origins.push(cpu);
        }
        drop(interner);
        for op in ops.iter().filter(|op| !matches!(op.what.kind(), Kind::Stack | Kind::Note)) {
            let page = if op.what.is_slab() {
                (op.value & ADDRESS_BITS).wrapping_sub(self.base) / self.page_size.max(1)
            } else {
                op.value
            };
            let group = (page & ADDRESS_BITS) >> TOGETHER_LOG2;
            if self.one_in > 1 && spread(group) % self.one_in != 0 {
                continue;
            }
            self.streams.ops.push(*op);
            self.streams.cpu_of.push(self.origins.get(op.origin as usize).copied().unwrap_or(0));
        }
    }
}

/// What was lost on one CPU, as far as a thinning needs it.
#[derive(Debug, Clone, Default)]
struct CpuLoss {
    /// Share of the CPU's events that were lost.
    share: f64,
    /// Gaps: the operation before which each is, and its size in operations.
    gaps: Vec<(f64, f64)>,
    /// Nobody knows where they are.
    anywhere: bool,
}

/// How to thin a trace.
#[derive(Debug)]
pub struct Plan {
    cpus: Vec<CpuLoss>,
    /// Operations of each CPU.
    counts: Vec<usize>,
    /// Share of all events that were lost.
    pub lost_share: f64,
}

/// Thinnings look at what is this near to the losses: so many times the size of a gap, and so many operations.
const NEAR: (f64, f64) = (8.0, 1000.0);
/// More than this is not taken away again: little would be left to look at.
const SHARE_MAX: f64 = 0.35;
/// Gaps that are assumed on a CPU where nobody knows of any.
const GAPS_ASSUMED: f64 = 16.0;

impl Plan {
    /// For operations of a trace with these losses in the window.
    pub fn new(streams: &Streams, losses: &Losses, window: (u64, u64)) -> Option<Self> {
        let mut counts = vec![0usize; streams.cpus.len()];
        for &cpu in &streams.cpu_of {
            if let Some(count) = counts.get_mut(usize::from(cpu)) {
                *count += 1;
            }
        }
        let known: BTreeMap<u32, &CpuLosses> = losses.cpus.iter().map(|c| (c.cpu, c)).collect();
        let (mut lost_all, mut kept_all) = (0.0, 0.0);
        let mut cpus = Vec::new();
        for (cpu, &count) in streams.cpus.iter().zip(&counts) {
            let Some(losses) = known.get(cpu) else {
                cpus.push(CpuLoss::default());
                continue;
            };
            let lost = losses.lost_between(window)?;
            let kept = losses.events as f64;
            lost_all += lost;
            kept_all += kept;
            let share = lost / (lost + kept).max(1.0);
            let ops_per_event = count as f64 / kept.max(1.0);
            let mut gaps: Vec<(f64, f64)> = losses
                .gaps()
                .map(|(before, size)| (before as f64 * ops_per_event, size as f64 * ops_per_event))
                .collect();
            let anywhere = gaps.is_empty();
            if anywhere && share > 0.0 {
                gaps.push((0.0, share.min(SHARE_MAX) * count as f64 / GAPS_ASSUMED));
            }
            cpus.push(CpuLoss { share, gaps, anywhere });
        }
        // CPUs of which nothing is left.
        for cpu in losses.cpus.iter().filter(|c| !streams.cpus.contains(&c.cpu)) {
            lost_all += cpu.lost_between(window)?;
        }
        Some(Self { cpus, counts, lost_share: lost_all / (lost_all + kept_all).max(1.0) })
    }

    /// One thinning; `seed` makes it. It takes `times` as much away as the losses did, as far as that leaves enough.
    pub fn thin(&self, seed: u64, times: f64) -> Thinned {
        let mut random = Random(seed);
        let gaps =
            self.cpus.iter().zip(&self.counts).map(|(cpu, &count)| gaps_of(cpu, count, times, &mut random));
        Thinned { gaps: gaps.collect() }
    }
}

fn gaps_of(cpu: &CpuLoss, count: usize, times: f64, random: &mut Random) -> Vec<(usize, usize)> {
    let target = (cpu.share.min(SHARE_MAX) * times).min(1.5 * SHARE_MAX) * count as f64;
    let mut gaps = Vec::new();
    let mut taken = 0.0;
    // Chance decides about the last gap, so that the mean is right also where gaps are few.
    while !cpu.gaps.is_empty() && count > 0 {
        let (place, size) = cpu.gaps.get(random.below(cpu.gaps.len())).copied().unwrap_or_default();
        let size = size.clamp(1.0, target.max(1.0));
        if taken + size > target && random.fraction() * size > target - taken {
            break;
        }
        let near = NEAR.0 * size + NEAR.1;
        let start = if cpu.anywhere {
            random.fraction() * count as f64
        } else {
            (place + (2.0 * random.fraction() - 1.0) * near - size / 2.0).clamp(0.0, count as f64)
        };
        gaps.push((start as usize, (start + size.max(1.0)).round() as usize));
        taken += size;
        if taken >= target {
            break;
        }
    }
    gaps.sort_unstable();
    // Gaps that overlap become one.
    let mut joined: Vec<(usize, usize)> = Vec::with_capacity(gaps.len());
    for gap in gaps {
        match joined.last_mut() {
            Some(last) if gap.0 <= last.1 => last.1 = last.1.max(gap.1),
            _ => joined.push(gap),
        }
    }
    joined
}

/// For each CPU the operations that are taken away: first, and behind the last.
#[derive(Debug)]
pub struct Thinned {
    gaps: Vec<Vec<(usize, usize)>>,
}

impl Thinned {
    /// Nothing taken away.
    pub fn nothing() -> Self {
        Self { gaps: Vec::new() }
    }

    /// Calls `enter` with what is left, a batch at a time; returns the share that is.
    pub fn replay(&self, streams: &Streams, batch: usize, mut enter: impl FnMut(&[Op])) -> f64 {
        let mut at = vec![(0usize, 0usize); streams.cpus.len()];
        let mut buffer = Vec::with_capacity(batch);
        let mut kept = 0usize;
        for (op, &cpu) in streams.ops.iter().zip(&streams.cpu_of) {
            let cpu = usize::from(cpu);
            let Some((index, gap)) = at.get_mut(cpu) else { continue };
            let gaps = self.gaps.get(cpu).map(Vec::as_slice).unwrap_or_default();
            while gaps.get(*gap).is_some_and(|g| *index >= g.1) {
                *gap += 1;
            }
            let is_lost = gaps.get(*gap).is_some_and(|g| *index >= g.0);
            *index += 1;
            if is_lost {
                continue;
            }
            kept += 1;
            buffer.push(*op);
            if buffer.len() == batch {
                enter(&buffer);
                buffer.clear();
            }
        }
        enter(&buffer);
        kept as f64 / streams.ops.len().max(1) as f64
    }
}

/// SplitMix64: the same thinnings in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.fraction() * limit as f64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thinning_takes_its_share_in_gaps_of_the_given_size() {
        let cpu = CpuLoss { share: 0.1, gaps: vec![(0.0, 50.0)], anywhere: true };
        let mut kept = 0.0;
        for seed in 0..50 {
            let gaps = gaps_of(&cpu, 100_000, 1.0, &mut Random(seed));
            assert!(gaps.iter().all(|g| g.1 - g.0 >= 50) && gaps.windows(2).all(|w| w[0].1 < w[1].0));
            let streams =
                Streams { ops: vec![Op::default(); 100_000], cpu_of: vec![0; 100_000], cpus: vec![3] };
            let mut count = 0;
            kept += Thinned { gaps: vec![gaps] }.replay(&streams, 256, |ops| count += ops.len()) / 50.0;
            assert!(count < 93_000 && count > 88_000, "{count}");
        }
        // Gaps overlap now and then.
        assert!((kept - 0.9).abs() < 0.01, "{kept}");
    }
}
