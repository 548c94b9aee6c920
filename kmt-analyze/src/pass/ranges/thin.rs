//! Thinning a trace at random places, as its own losses did.

use std::collections::{BTreeMap, BTreeSet};

use super::op_sample::Streams;
use super::places::{Cursor, Places};
use crate::stream::op::Op;
use crate::trace::losses::{CpuLosses, Losses};

/// What was lost on one CPU, as far as a thinning needs it. All numbers are of events.
#[derive(Debug, Clone, Default)]
struct CpuLoss {
    /// Share of the CPU's events that were lost.
    share: f64,
    /// Gaps: the event before which each is, and its size.
    gaps: Vec<(f64, f64)>,
    /// Nobody knows where they are.
    anywhere: bool,
    /// Where its operations are among its events.
    places: Places,
}

/// How to thin a trace.
#[derive(Debug)]
pub struct Plan {
    cpus: Vec<CpuLoss>,
    /// Share of all events that were lost.
    pub lost_share: f64,
}

/// How near to the losses thinnings look: so many times the size of a gap, and so many events.
///
/// Near by is what the losses themselves were like where they follow the load, as those of a slow reader do: there the wide
/// look alone was wrong by 0.36 of the logarithm that was lost, the near one by 0.20 (root of the mean square, s390x-6.1 at
/// 20 %). Farther away is what shows how much a trace varies, where gaps are few.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// In the neighbourhood of each gap.
    Near,
    /// In its surroundings.
    Far,
}

impl Look {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Near, Self::Far];

    fn reach(self, gap: f64) -> f64 {
        match self {
            Self::Near => gap + 100.0,
            Self::Far => 8.0 * gap + 1000.0,
        }
    }
}

/// More than this is not taken away again: little would be left to look at.
const SHARE_MAX: f64 = 0.35;
/// Gaps that are assumed on a CPU where nobody knows of any.
const GAPS_ASSUMED: f64 = 16.0;

impl Plan {
    /// For operations of a trace with these losses in the window.
    pub fn new(streams: &Streams, losses: &Losses, window: (u64, u64)) -> Option<Self> {
        let known: BTreeMap<u32, &CpuLosses> = losses.cpus.iter().map(|c| (c.cpu, c)).collect();
        let known: Vec<Option<&CpuLosses>> = streams.cpus.iter().map(|cpu| known.get(cpu).copied()).collect();
        let (mut lost_all, mut kept_all) = (0.0, 0.0);
        let mut cpus = Vec::new();
        for (known, places) in known.iter().zip(Places::of(streams, &known, window)) {
            let lost = known.map_or(Some(0.0), |known| known.lost_between(window))?;
            let kept = places.events();
            lost_all += lost;
            kept_all += kept;
            let share = lost / (lost + kept).max(1.0);
            cpus.push(CpuLoss::new(*known, share, places));
        }
        let left: BTreeSet<u32> = streams.cpus.iter().copied().collect();
        // CPUs of which nothing is left.
        for cpu in losses.cpus.iter().filter(|c| !left.contains(&c.cpu)) {
            lost_all += cpu.lost_between(window)?;
        }
        Some(Self { cpus, lost_share: lost_all / (lost_all + kept_all).max(1.0) })
    }

    /// One thinning; `seed` makes it. It takes `times` as much away as the losses did, as far as that leaves enough.
    pub fn thin(&self, seed: u64, look: Look, times: f64) -> Thinned {
        let mut random = Random(seed);
        Thinned { gaps: self.cpus.iter().map(|cpu| cpu.thin(look, times, &mut random)).collect() }
    }

    /// Calls `enter` with what a thinning leaves, a batch at a time; returns the share of the events that it leaves.
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
            let place = cursor.next();
            while gaps.first().is_some_and(|g| place >= g.1) {
                *gaps = gaps.get(1..).unwrap_or_default();
            }
            if gaps.first().is_some_and(|g| place >= g.0) {
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
    fn new(known: Option<&CpuLosses>, share: f64, places: Places) -> Self {
        let (first, last) = places.range();
        let gaps = known.into_iter().flat_map(CpuLosses::gaps);
        let gaps = gaps.map(|(before, size)| (before as f64, size as f64));
        let mut gaps: Vec<(f64, f64)> = gaps.filter(|gap| gap.0 >= first && gap.0 <= last).collect();
        let anywhere = gaps.is_empty();
        if anywhere && share > 0.0 {
            gaps.push((first, share.min(SHARE_MAX) * places.events() / GAPS_ASSUMED));
        }
        Self { share, gaps, anywhere, places }
    }

    /// Gaps for one thinning, sorted and apart.
    fn thin(&self, look: Look, times: f64, random: &mut Random) -> Vec<(f64, f64)> {
        let (first, last) = self.places.range();
        let target = (self.share.min(SHARE_MAX) * times).min(1.5 * SHARE_MAX) * self.places.events();
        let mut gaps = Vec::new();
        let mut taken = 0.0;
        // Chance decides about the last gap, so that the mean is right also where gaps are few.
        while let Some(&(place, size)) = self.gaps.get(random.below(self.gaps.len())) {
            let size = size.clamp(1.0, target.max(1.0));
            if taken + size > target && random.fraction() * size > target - taken {
                break;
            }
            let start = if self.anywhere {
                first + random.fraction() * (last - first)
            } else {
                place + (2.0 * random.fraction() - 1.0) * look.reach(size) - size / 2.0
            };
            let start = start.clamp(first, last);
            gaps.push((start, (start + size).min(last)));
            taken += size;
            if taken >= target {
                break;
            }
        }
        gaps.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        // Gaps that overlap become one.
        let mut joined: Vec<(f64, f64)> = Vec::with_capacity(gaps.len());
        for gap in gaps {
            match joined.last_mut() {
                Some(last) if gap.0 <= last.1 => last.1 = last.1.max(gap.1),
                _ => joined.push(gap),
            }
        }
        joined
    }
}

/// For each CPU what is taken away: the first event, and that behind the last.
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
        let plan = Plan { cpus: vec![cpu], lost_share: 0.1 };
        let mut kept = 0.0;
        for seed in 0..50 {
            let thinned = plan.thin(seed, Look::Far, 1.0);
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
        // Gaps overlap now and then.
        assert!((kept - 0.9).abs() < 0.01, "{kept}");
    }
}
