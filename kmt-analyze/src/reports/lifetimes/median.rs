//! Estimate of the median lifetime, with objects of which only an age is known.
//!
//! The survival curve is the product-limit estimator (Kaplan and Meier, 1958): at each lifetime the curve falls by the
//! share of the objects of that age that end there. The interval is that of Brookmeyer and Crowley (1982) with the variance
//! of Greenwood (1926), on the log(-log) scale (Klein and Moeschberger, Survival Analysis, 2nd edition, 4.3 and 4.5): all
//! lifetimes at which the curve does not differ from one half. Lifetimes are in bins of 1/32 of a power of two (3.1 %); the
//! interval includes its bins. It assumes lives that end independently: where many objects are freed at once, it is too
//! narrow.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::collect::histogram::Histogram;
use crate::collect::lifetimes::CallerLives;

/// Fewest ends for an interval: of fewer, the variance is not known well enough.
const ENDS_MIN: u64 = 20;
/// 97.5 % of a normal distribution lie below this number of standard deviations.
const DEVIATIONS: f64 = 1.959_964;

/// Estimate of the median lifetime of all objects allocated in the window, in the clock's unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MedianEstimate {
    /// Always `kaplan-meier`.
    pub method: &'static str,
    /// Estimated median; `null`: the curve does not fall to one half, or no object is in it.
    pub median: Option<u64>,
    /// Where the curve does not fall to one half: the median is longer than this, the longest age in the curve.
    pub longer_than: Option<u64>,
    /// Lower end of the interval; `null`: fewer than 20 ends, or the interval begins beyond the curve.
    pub low: Option<u64>,
    /// Upper end of the interval; `null`: no upper end is known.
    pub high: Option<u64>,
    /// Confidence of the interval in percent.
    pub confidence_percent: u64,
    /// Objects whose free was seen, without a loss in between.
    pub ends: u64,
    /// Objects that were alive at a known age: at the end of the window, or before a loss.
    pub censored: u64,
    /// Objects with an implied free, or allocated before the clock ran: their lifetimes are unknown, and the estimate leaves
    /// them out.
    pub left_out: u64,
}

/// One bin of lifetimes.
#[derive(Default, Clone, Copy)]
struct Bin {
    width: u64,
    ends: u64,
    censored: u64,
}

impl MedianEstimate {
    /// Estimate for some lives.
    pub fn of(lives: &CallerLives) -> Self {
        let survival = &lives.survival;
        let found = estimate(&bins(&lives.freed, &survival.inexact, &survival.censored));
        let longest = lives.freed.max().unwrap_or(u64::MAX);
        Self { median: found.median.map(|m| m.min(longest)), left_out: survival.left_out, ..found }
    }
}

/// Bins by their lowest lifetime: ends are `freed` without `inexact`.
fn bins(freed: &Histogram, inexact: &Histogram, censored: &Histogram) -> BTreeMap<u64, Bin> {
    let mut bins: BTreeMap<u64, Bin> = BTreeMap::new();
    for (low, width, count) in freed.buckets() {
        bins.insert(low, Bin { width, ends: count, censored: 0 });
    }
    for (low, _, count) in inexact.buckets() {
        bins.entry(low).and_modify(|bin| bin.ends = bin.ends.saturating_sub(count));
    }
    for (low, width, count) in censored.buckets() {
        let bin = bins.entry(low).or_default();
        (bin.width, bin.censored) = (width, count);
    }
    bins.retain(|_, bin| bin.ends + bin.censored > 0);
    bins
}

fn estimate(bins: &BTreeMap<u64, Bin>) -> MedianEstimate {
    let ends: u64 = bins.values().map(|bin| bin.ends).sum();
    let censored: u64 = bins.values().map(|bin| bin.censored).sum();
    let mut found = MedianEstimate {
        method: "kaplan-meier",
        median: None,
        longer_than: None,
        low: None,
        high: None,
        confidence_percent: 95,
        ends,
        censored,
        left_out: 0,
    };
    let mut curve = Curve { at_risk: ends + censored, share: 1.0, greenwood: 0.0 };
    for (&low, bin) in bins {
        curve.fall(bin.ends);
        if curve.share <= 0.5 {
            found.median = found.median.or(Some(low + (bin.width - 1) / 2));
        }
        if ends >= ENDS_MIN && bin.ends > 0 {
            let [lower, upper] = curve.interval();
            found.low = found.low.or((lower <= 0.5).then_some(low));
            found.high = found.high.or((upper <= 0.5).then_some(low + (bin.width - 1)));
        }
        curve.at_risk -= bin.ends + bin.censored;
    }
    if found.median.is_none() {
        found.longer_than = bins.keys().next_back().copied();
    }
    found
}

/// Survival curve at a lifetime.
struct Curve {
    /// Objects of that age or more.
    at_risk: u64,
    /// Share of the objects that live longer.
    share: f64,
    /// Sum of Greenwood's formula: the variance of the share, divided by its square.
    greenwood: f64,
}

impl Curve {
    fn fall(&mut self, ends: u64) {
        if ends == 0 {
            return;
        }
        let at_risk = self.at_risk as f64;
        // Where all end, half an object stays: the variance of a share of 0 is not defined.
        let ends = if ends == self.at_risk { ends as f64 - 0.5 } else { ends as f64 };
        self.share *= 1.0 - ends / at_risk;
        self.greenwood += ends / (at_risk * (at_risk - ends));
    }

    /// 95 % interval of the share.
    fn interval(&self) -> [f64; 2] {
        let wide = DEVIATIONS * self.greenwood.sqrt() / -self.share.ln();
        [wide, -wide].map(|wide| self.share.powf(wide.exp()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::lifetimes::Horizon;
    use crate::ledger::lives::Life;
    use crate::trace::ages::Ages;

    /// Numbers of a fixed seed.
    struct Random(u64);

    impl Random {
        /// Uniform in 0 to 1, both excluded.
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (((mixed ^ (mixed >> 31)) >> 12) as f64 + 0.5) / (1u64 << 52) as f64
        }

        /// Exponential, with this median.
        fn exponential(&mut self, median: f64) -> f64 {
            -self.uniform().ln() * median / std::f64::consts::LN_2
        }

        /// Log-normal, with this median and a standard deviation of 1.5 of the logarithm.
        fn log_normal(&mut self, median: f64) -> f64 {
            let normal = (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos();
            median * (1.5 * normal).exp()
        }
    }

    const MEDIAN: f64 = 1e6;

    /// A made trace: births at random times of the window, spans of loss, and what a ledger finds of it.
    fn made(seed: u64, objects: u64, window: f64, has_losses: bool, is_normal: bool) -> CallerLives {
        let mut random = Random(seed);
        let spans: Vec<(f64, f64)> = (0..if has_losses { 6 } else { 0 })
            .map(|i| (window * (f64::from(i) + random.uniform()) / 6.0, window / 60.0))
            .map(|(start, length)| (start, start + length))
            .collect();
        let mut lives = CallerLives::default();
        let horizon = Horizon { bounds: [u64::MAX; 2], end: window as u64, ages: Ages::default() };
        for _ in 0..objects {
            let born = random.uniform() * window;
            let lifetime = if is_normal { random.log_normal(MEDIAN) } else { random.exponential(MEDIAN) };
            let end = born + lifetime;
            let is_lost = |time: f64| spans.iter().any(|span| (span.0..span.1).contains(&time));
            if is_lost(born) {
                continue;
            }
            // Where the free is lost, half of the objects seem live, the address of the others is used again.
            let is_reused = is_lost(end) && random.uniform() < 0.5;
            let seen_end = if is_reused { (end + random.exponential(MEDIAN)).min(window) } else { end };
            let crossed = spans.iter().map(|span| span.0).find(|&start| start >= born && start <= seen_end);
            let lost_at = crossed.map(|at| at as u64);
            let life = Life { born: born as u64, site: 0, origin: 0 };
            if is_reused {
                lives.survival.implied(&life, seen_end as u64, 8, lost_at, &horizon);
            } else if end <= window && !is_lost(end) {
                lives.freed.add(end as u64 - born as u64);
                lives.survival.freed(&life, end as u64, 8, lost_at, &horizon);
            } else {
                lives.survival.censored.add(lost_at.unwrap_or(horizon.end).min(horizon.end) - born as u64);
            }
        }
        lives
    }

    /// Trials of 100 whose interval contains the true median.
    fn hits(objects: u64, window: f64, has_losses: bool, is_normal: bool) -> usize {
        let holds = |seed: u64| {
            let found = MedianEstimate::of(&made(seed * 7_919, objects, window, has_losses, is_normal));
            let low = found.low.is_none_or(|low| low as f64 <= MEDIAN);
            low && found.high.is_none_or(|high| high as f64 + 1.0 >= MEDIAN)
        };
        (1..=100).filter(|&seed| holds(seed)).count()
    }

    /// At least 95 of 100, without two standard deviations of a binomial (4.4).
    #[test]
    fn the_true_median_lies_in_the_interval() {
        for objects in [40, 200, 2_000] {
            for window in [1.5e6, 4e6, 40e6] {
                for has_losses in [false, true] {
                    for is_normal in [false, true] {
                        let hits = hits(objects, window, has_losses, is_normal);
                        assert!(hits >= 91, "{objects} {window} {has_losses} {is_normal}: {hits}");
                    }
                }
            }
        }
    }

    /// The median of freed objects alone is far too short there: the trials have something to find.
    #[test]
    fn the_median_of_freed_objects_is_too_short() {
        let lives = made(3, 2_000, 2e6, false, false);
        let found = MedianEstimate::of(&lives);
        assert!(lives.freed.quantile(500).unwrap() as f64 <= 0.6 * MEDIAN, "{found:?}");
        assert!(found.median.unwrap().abs_diff(MEDIAN as u64) as f64 <= 0.15 * MEDIAN, "{found:?}");
    }

    /// The curve by its definition, from the numbers themselves: median, and both ends of the interval.
    fn slow(ends: &[u64], censored: &[u64]) -> [Option<u64>; 3] {
        let mut times = ends.to_vec();
        times.sort_unstable();
        times.dedup();
        let (mut share, mut sum, mut found) = (1.0f64, 0.0, [None; 3]);
        for time in times {
            let ended = ends.iter().filter(|&&end| end == time).count() as f64;
            let at_risk = ends.iter().chain(censored).filter(|&&age| age >= time).count() as f64;
            let is_last = ended == at_risk;
            let ended = if is_last { ended - 0.5 } else { ended };
            share *= 1.0 - ended / at_risk;
            sum += ended / (at_risk * (at_risk - ended));
            // One half lies between the ends of the interval of log(-log share).
            let (middle, wide) = ((-share.ln()).ln(), 1.959_964 * sum.sqrt() / share.ln().abs());
            let half = (-(0.5f64.ln())).ln();
            let reached = [share <= 0.5, middle + wide >= half, middle - wide >= half];
            for (slot, _) in
                found.iter_mut().zip(reached).filter(|(slot, reached)| slot.is_none() && *reached)
            {
                *slot = Some(time);
            }
        }
        found
    }

    #[test]
    fn the_estimate_is_that_of_a_slow_model() {
        for seed in 1..200 {
            let mut random = Random(seed);
            let mut draw = |count: u64, median: f64| -> Vec<u64> {
                (0..count).map(|_| random.exponential(median) as u64).collect()
            };
            let ends = draw(20 + seed % 50, 10_000.0);
            let censored = draw(seed % 70, 9_000.0);
            let mut lives = CallerLives::default();
            ends.iter().for_each(|&end| lives.freed.add(end));
            censored.iter().for_each(|&age| lives.survival.censored.add(age));
            let found = MedianEstimate::of(&lives);
            let near = |found: Option<u64>, expected: Option<u64>| match (found, expected) {
                (Some(found), Some(expected)) => {
                    found.abs_diff(expected) as f64 <= 0.032 * expected as f64 + 1.0
                }
                (found, expected) => found == expected,
            };
            // Bins join times: the model gets the lowest time of each bin.
            let [ends, censored] =
                [&ends, &censored].map(|times| times.iter().map(|&t| binned(t)).collect::<Vec<_>>());
            let expected = slow(&ends, &censored);
            for (found, expected) in [found.median, found.low, found.high].into_iter().zip(expected) {
                assert!(near(found, expected), "{seed}: {found:?} {expected:?}");
            }
        }
    }

    fn binned(time: u64) -> u64 {
        let mut one = Histogram::default();
        one.add(time);
        one.buckets().next().unwrap().0
    }

    #[test]
    fn a_curve_that_does_not_fall_to_one_half_gives_a_bound() {
        let mut lives = CallerLives::default();
        (0..30).for_each(|_| lives.freed.add(10));
        (0..70).for_each(|_| lives.survival.censored.add(30));
        let found = MedianEstimate::of(&lives);
        assert_eq!((found.median, found.longer_than, found.low, found.high), (None, Some(30), None, None));
        assert_eq!((found.ends, found.censored), (30, 70));
        // All end at once: the interval is that bin.
        let mut lives = CallerLives::default();
        (0..40).for_each(|_| lives.freed.add(10));
        let found = MedianEstimate::of(&lives);
        assert_eq!((found.median, found.low, found.high), (Some(10), Some(10), Some(10)));
        // The free of an object allocated before the window does not count as an end.
        lives.survival.inexact.add(10);
        assert_eq!(MedianEstimate::of(&lives).ends, 39);
        assert_eq!(MedianEstimate::of(&CallerLives::default()).longer_than, None);
    }
}
