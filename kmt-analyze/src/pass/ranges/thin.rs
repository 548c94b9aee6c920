//! Thins a trace at random places, by gaps like its own losses.
//!
//! Losses of a CPU give the number and the sizes of the gaps; the same share is removed again near the losses and far
//! from them, several times by fixed seeds. `ranges` replays the thinned operations through a ledger, and `estimate`
//! compares the totals. Losses that are not many gaps between other events are refused.

use std::collections::{BTreeMap, BTreeSet};

use super::estimate::{HOPELESS, Lost};
use super::places::{Cursor, Places, Streams};
use crate::stream::op::Op;
use crate::trace::losses::{CpuLosses, Losses};

/// Losses of one CPU. All numbers are events.
#[derive(Debug, Clone, Default)]
struct CpuLoss {
    /// Share of the CPU's events that were lost.
    share: f64,
    /// Gaps: the event after each, and its size.
    gaps: Vec<(f64, f64)>,
    /// True if their positions are unknown.
    anywhere: bool,
    /// Positions of its operations among its events.
    places: Places,
}

/// Parameters for thinning a trace.
#[derive(Debug)]
pub struct Plan {
    cpus: Vec<CpuLoss>,
    pub lost: Lost,
}

/// Distances of thinnings from the losses: this many times the size of a gap, and this many events.
///
/// Thinnings near by are like losses that follow the load, as those of a slow reader: on these the far ones alone had
/// an error of 0.36 of the lost logarithm, the near ones of 0.20 (root of the mean square, s390x-6.1 at 20 %). Far ones
/// show how much a trace varies, if gaps are few.
pub const DISTANCES: [Distance; 2] = [(1.0, 100.0), (8.0, 1000.0)];

/// One of [`DISTANCES`].
pub type Distance = (f64, f64);

/// Smallest number of gaps, of equal size, whose contents are like the rest.
const GAPS_MIN: f64 = 10.0;
/// Largest part of the lost events at the starts and the ends of the CPUs' streams: what occurs there is not like the rest.
const AT_ENDS_MAX: f64 = 0.15;

/// True if the losses are many gaps between other events, none of which has most of the lost events.
fn is_even(losses: &Losses, window: (u64, u64), lost: f64) -> bool {
    let (mut squares, mut at_ends, mut placed) = (0.0, 0.0, 0.0);
    for (place, size) in losses.cpus.iter().flat_map(CpuLosses::sized_places) {
        if place.reaches(window) {
            let size = size as f64;
            placed += size;
            squares += size * size;
            at_ends += if place.after.is_none() || place.before.is_none() { size } else { 0.0 };
        }
    }
    let unplaced = (lost - placed).max(0.0);
    placed * placed >= GAPS_MIN * squares && at_ends + unplaced <= AT_ENDS_MAX * lost
}

/// Events that a CPU lost in the window. `None`: not counted, missing in the input, or the recording ended unexpectedly
/// in it.
fn lost(cpu: &CpuLosses, window: (u64, u64)) -> Option<f64> {
    let ends = cpu.early_end().is_some_and(|end| end.reaches(window));
    if ends || cpu.lacks_entries { None } else { cpu.lost_between(window) }
}

/// Largest share that is removed again: more would leave too little.
const SHARE_MAX: f64 = 0.35;
/// Assumed number of gaps on a CPU with unknown ones.
const GAPS_ASSUMED: f64 = 16.0;

impl Plan {
    /// A plan for operations of a trace with these losses in the window.
    pub fn new(streams: &Streams, losses: &Losses, window: (u64, u64)) -> Option<Self> {
        let cpu_losses: BTreeMap<u32, &CpuLosses> = losses.cpus.iter().map(|c| (c.cpu, c)).collect();
        let cpu_losses: Vec<Option<&CpuLosses>> =
            streams.cpus.iter().map(|cpu| cpu_losses.get(cpu).copied()).collect();
        let (mut lost_all, mut kept_all) = (0.0, 0.0);
        let mut cpus = Vec::new();
        for (cpu_losses, places) in cpu_losses.iter().zip(Places::of(streams, &cpu_losses, window)) {
            let lost = cpu_losses.map_or(Some(0.0), |cpu_losses| lost(cpu_losses, window))?;
            let kept = places.events();
            lost_all += lost;
            kept_all += kept;
            let share = lost / (lost + kept).max(1.0);
            cpus.push(CpuLoss::new(*cpu_losses, share, places));
        }
        let left: BTreeSet<u32> = streams.cpus.iter().copied().collect();
        // CPUs without operations.
        for cpu in losses.cpus.iter().filter(|c| !left.contains(&c.cpu)) {
            lost_all += lost(cpu, window)?;
            kept_all += Places::chunks(Some(cpu), window).events();
        }
        let share = lost_all / (lost_all + kept_all).max(1.0);
        let is_even = is_even(losses, window, lost_all) && cpus.iter().all(|cpu| cpu.share <= HOPELESS);
        Some(Self { cpus, lost: Lost { share, events: lost_all, is_even } })
    }

    /// One thinning by random seed. It removes `times` as much as the losses, if that leaves enough.
    pub fn thin(&self, seed: u64, distance: Distance, times: f64) -> Thinned {
        let mut random = Random(seed);
        Thinned { gaps: self.cpus.iter().map(|cpu| cpu.thin(distance, times, &mut random)).collect() }
    }

    /// Calls `enter` with the operations of a thinned trace, in batches; returns the share of kept events.
    pub fn replay(
        &self,
        streams: &Streams,
        thinned: &Thinned,
        batch: usize,
        mut enter: impl FnMut(&[Op]),
    ) -> f64 {
        let mut at: Vec<(Cursor<'_>, &[(f64, f64)])> = self
            .cpus
            .iter()
            .enumerate()
            .map(|(cpu, c)| (c.places.cursor(), thinned.gaps.get(cpu).map_or(&[][..], Vec::as_slice)))
            .collect();
        let mut buffer = Vec::with_capacity(batch);
        for (op, &cpu) in streams.ops.iter().zip(&streams.cpu_of) {
            let Some((cursor, gaps)) = at.get_mut(usize::from(cpu)) else { continue };
            let position = cursor.next();
            while gaps.first().is_some_and(|g| position >= g.1) {
                *gaps = gaps.get(1..).unwrap_or_default();
            }
            if gaps.first().is_some_and(|g| position >= g.0) {
                continue;
            }
            buffer.push(*op);
            if buffer.len() == batch {
                enter(&buffer);
                buffer.clear();
            }
        }
        enter(&buffer);
        let all: f64 = self.cpus.iter().map(|c| c.places.events()).sum();
        let taken: f64 = thinned.gaps.iter().flatten().map(|g| g.1 - g.0).sum();
        1.0 - taken / all.max(1.0)
    }
}

impl CpuLoss {
    fn new(cpu_losses: Option<&CpuLosses>, share: f64, places: Places) -> Self {
        let (first, last) = places.range();
        let gaps = cpu_losses.into_iter().flat_map(CpuLosses::gaps);
        let gaps = gaps.map(|(before, size)| (before as f64, size as f64));
        let mut gaps: Vec<(f64, f64)> = gaps.filter(|gap| gap.0 >= first && gap.0 <= last).collect();
        let anywhere = gaps.is_empty();
        if anywhere && share > 0.0 {
            gaps.push((first, share.min(SHARE_MAX) * places.events() / GAPS_ASSUMED));
        }
        Self { share, gaps, anywhere, places }
    }

    /// Gaps of one thinning, sorted and disjoint.
    fn thin(&self, distance: Distance, times: f64, random: &mut Random) -> Vec<(f64, f64)> {
        let (first, last) = self.places.range();
        let target = (self.share.min(SHARE_MAX) * times).min(1.5 * SHARE_MAX) * self.places.events();
        let mut gaps = Vec::new();
        let mut taken = 0.0;
        // The last gap is taken at random, so that the mean is right also with few gaps.
        while let Some(&(position, size)) = self.gaps.get(random.below(self.gaps.len())) {
            let size = size.clamp(1.0, target.max(1.0));
            if taken + size > target && random.fraction() * size > target - taken {
                break;
            }
            let start = if self.anywhere {
                first + random.fraction() * (last - first)
            } else {
                position + (2.0 * random.fraction() - 1.0) * (distance.0 * size + distance.1) - size / 2.0
            };
            let start = start.clamp(first, last);
            gaps.push((start, (start + size).min(last)));
            taken += size;
            if taken >= target {
                break;
            }
        }
        gaps.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        // Overlapping gaps are merged.
        let mut merged: Vec<(f64, f64)> = Vec::with_capacity(gaps.len());
        for gap in gaps {
            match merged.last_mut() {
                Some(last) if gap.0 <= last.1 => last.1 = last.1.max(gap.1),
                _ => merged.push(gap),
            }
        }
        merged
    }
}

/// Removed ranges of each CPU: the first event, and that after the last.
#[derive(Debug, Default)]
pub struct Thinned {
    gaps: Vec<Vec<(f64, f64)>>,
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
        let streams = Streams { ops: vec![Op::default(); 100_000], cpu_of: vec![0; 100_000], cpus: vec![3] };
        let places = Places::of(&streams, &[None], (0, u64::MAX)).remove(0);
        let cpu = CpuLoss { share: 0.1, gaps: vec![(0.0, 50.0)], anywhere: true, places };
        let plan = Plan { cpus: vec![cpu], lost: Lost { share: 0.1, events: 1e4, is_even: true } };
        let mut kept = 0.0;
        for seed in 0..50 {
            let thinned = plan.thin(seed, DISTANCES[1], 1.0);
            let gaps = &thinned.gaps[0];
            let is_cut = |g: &(f64, f64)| g.1 >= 100_000.0;
            assert!(
                gaps.iter().all(|g| g.1 - g.0 > 49.9 || is_cut(g))
                    && gaps.windows(2).all(|w| w[0].1 < w[1].0)
            );
            let mut count = 0;
            let share = plan.replay(&streams, &thinned, 256, |ops| count += ops.len());
            assert!(count < 93_000 && count > 88_000, "{count}");
            assert!((share - count as f64 / 100_000.0).abs() < 0.001, "{share} {count}");
            kept += share / 50.0;
        }
        // Gaps overlap sometimes.
        assert!((kept - 0.9).abs() < 0.01, "{kept}");
    }
}
