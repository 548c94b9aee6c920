//! Rules on one series: does it grow steadily in a window of 5, 30 or 240 minutes?
//!
//! A window is 10 or 12 blocks; of each the smallest value counts, so that short peaks do not. Memory grows if all of these hold:
//!
//! | rule | why |
//! |---|---|
//! | the growth is at least the floor of the window, a part of MemTotal | small changes are everywhere |
//! | nine of ten pairs of blocks are in rising order, and no block has 40 % of the growth | growth is steady, not a step |
//! | the last third grows at 55 % of the rate of the first half, or faster | a cache that fills saturates |
//! | the growth is four times the noise around the slope (median absolute deviation), or more | noise is not growth |
//! | growth beyond 1.5 times that of anonymous memory or of tasks, and 1/8 of that of reclaimable slab, reaches the floor | that is load |
//! | at least half of the growth is above each level that the series had in the last 8 days | a daily cycle returns |
//!
//! The rule of load delays a verdict: growth at a rate that the load of a morning explains is seen when the load rises no more. So does
//! the rule of levels: growth that begins after a peak is seen when it is above it.
//!
//! The slope is the median of the slopes of all pairs of points (Theil and Sen): at most 1,128 of them. Numbers were chosen with the courses
//! of `growths` and `ordinary`.

use super::history::{History, Series, Step, UNKNOWN, kib};
use super::sample::Kind;

/// A window of judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Length of the window.
    pub minutes: u32,
    step: Step,
    points: usize,
    /// Points of a block.
    block: usize,
    /// Least growth as a part of MemTotal, 1/N.
    part: u64,
    /// Bounds of the least growth, in KiB.
    floor_kib: (u64, u64),
}

/// The windows, the shortest first: it is for fast growth only.
pub const WINDOWS: [Window; 3] = [
    Window {
        minutes: 5,
        step: Step::TenSeconds,
        points: 30,
        block: 3,
        part: 256,
        floor_kib: (1 << 10, 128 << 10),
    },
    Window { minutes: 30, step: Step::Minute, points: 30, block: 3, part: 2048, floor_kib: (256, 16 << 10) },
    Window {
        minutes: 240,
        step: Step::FiveMinutes,
        points: 48,
        block: 4,
        part: 1024,
        floor_kib: (256, 16 << 10),
    },
];

impl Window {
    /// Least growth that counts, in KiB.
    pub fn floor_kib(&self, memory_kib: u64) -> u64 {
        let (least, most) = self.floor_kib;
        (memory_kib / self.part).clamp(least, most)
    }

    /// Change of a series in the window, in KiB; `None`: it has points without a value.
    pub fn change_kib(&self, series: &Series) -> Option<i64> {
        let points = series.newest(self.step, self.points);
        let blocks = if points.contains(&UNKNOWN) { Vec::new() } else { minima(points, self.block) };
        Some(blocks.last()? - blocks.first()?)
    }

    /// True if one of the newest `ended` of all `steps` of the samples completed a point of the window.
    pub fn is_due(&self, steps: u64, ended: u64) -> bool {
        let of_point = self.step.seconds() / Step::TenSeconds.seconds();
        steps / of_point > steps.saturating_sub(ended) / of_point
    }
}

/// Steady growth in a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// The window.
    pub window: Window,
    /// Slope in bytes a second.
    pub bytes_per_second: f64,
    /// Level at the begin of the window, in KiB.
    pub begin_kib: i64,
    /// Level at its end, in KiB.
    pub end_kib: i64,
}

/// Result for one series and window. The order is that of the rules: a later one was closer to growth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// The window has points without a value.
    TooShort,
    /// The growth is below the floor.
    Small,
    /// Most of the growth is in one block, and stays.
    Burst,
    /// Not all blocks rise.
    Unsteady,
    /// The growth slows down.
    Saturating,
    /// The growth is small beside the noise.
    Noisy,
    /// The load grows too.
    Load,
    /// The series had this level before.
    Returning,
    /// Steady growth.
    Growing(Growth),
}

impl Verdict {
    /// Name of the verdict in messages: that of `kmt-analyze leaks`, where it has the same verdict.
    pub fn name(&self) -> &'static str {
        match self {
            Self::TooShort => "window too short",
            Self::Small => "no growth, or below the floor",
            Self::Burst => "burst",
            Self::Unsteady => "not steady",
            Self::Saturating => "warming up",
            Self::Noisy => "within its noise",
            Self::Load => "growing with the load",
            Self::Returning => "back to an earlier level",
            Self::Growing(_) => "growing",
        }
    }
}

/// Least share of pairs of blocks in rising order, in percent.
const RISING_MIN: usize = 90;
/// Largest share of the growth in one block, in percent.
const BLOCK_MAX: i64 = 40;
/// Deepest fall from one block to the next in a burst, as a share of the growth in percent.
const FALL_MAX: i64 = 20;
/// Least rate of the last third, in percent of that of the first half.
const LATE_MIN: i64 = 55;
/// Growth as multiples of the noise.
const NOISE_FACTOR: f64 = 4.0;
/// A median absolute deviation times this is a standard deviation, of normal noise.
const MAD_TO_SIGMA: f64 = 1.4826;
/// Growth by load: this times the relative growth of the load, in percent.
const LOAD_FACTOR: i64 = 150;
/// Least relative growth of a load, in percent: less is noise.
const LOAD_MIN: i64 = 2;
/// Growth by reclaimable slab: vectors of objects for memory cgroups, 8 bytes an object, are in caches of kmalloc.
const OF_RECLAIMABLE: i64 = 8;

/// Judges one series in one window.
pub fn judge(history: &History, series: &Series, window: &Window, memory_kib: u64) -> Verdict {
    let points = series.newest(window.step, window.points);
    if points.len() < window.points || points.contains(&UNKNOWN) {
        return Verdict::TooShort;
    }
    let blocks = minima(points, window.block);
    let (Some(&first), Some(&last)) = (blocks.first(), blocks.last()) else { return Verdict::TooShort };
    let (grown, floor) = (last - first, window.floor_kib(memory_kib) as i64);
    if grown < floor {
        return Verdict::Small;
    }
    if is_burst(&blocks, grown) {
        return Verdict::Burst;
    }
    if !is_steady(&blocks, grown) {
        return Verdict::Unsteady;
    }
    if is_saturating(&blocks) {
        return Verdict::Saturating;
    }
    let slope = slope_of(points);
    if slope * points.len() as f64 <= NOISE_FACTOR * noise(points, slope) {
        return Verdict::Noisy;
    }
    if grown - by_load(history, series, window, first) < floor {
        return Verdict::Load;
    }
    let before = history.level_before(series, window.minutes).unwrap_or(first);
    let above = last - before.max(first);
    if above * 2 < grown {
        return Verdict::Returning;
    }
    // The window may have begun before the growth.
    let late = slope_of(points.get(points.len() / 2..).unwrap_or_default());
    let bytes_per_second = slope.max(late) * 1024.0 / window.step.seconds() as f64;
    Verdict::Growing(Growth { window: *window, bytes_per_second, begin_kib: first, end_kib: last })
}

/// The smallest value of each block, in KiB.
fn minima(points: &[u32], block: usize) -> Vec<i64> {
    points.chunks(block).filter_map(|block| block.iter().min()).map(|point| kib(*point)).collect()
}

/// Changes from one block to the next.
fn changes(blocks: &[i64]) -> impl Iterator<Item = i64> + '_ {
    blocks.iter().zip(blocks.iter().skip(1)).map(|(before, after)| after - before)
}

/// True if one block has most of the growth, and what came before and after it hardly falls.
fn is_burst(blocks: &[i64], grown: i64) -> bool {
    let largest = changes(blocks).max().unwrap_or(0);
    let fall = -changes(blocks).min().unwrap_or(0);
    largest * 100 > grown * BLOCK_MAX && fall * 100 <= grown * FALL_MAX
}

/// True if blocks rise one after the other.
fn is_steady(blocks: &[i64], grown: i64) -> bool {
    let (mut rising, mut pairs) = (0, 0);
    for (at, later) in blocks.iter().enumerate() {
        let earlier = blocks.iter().take(at);
        pairs += at;
        rising += earlier.filter(|earlier| *earlier < later).count();
    }
    let largest = changes(blocks).max().unwrap_or(0);
    rising * 100 >= pairs * RISING_MIN && largest * 100 <= grown * BLOCK_MAX
}

/// True if the last third grows more slowly than the first half.
fn is_saturating(blocks: &[i64]) -> bool {
    let count = blocks.len();
    let (half, third) = (count / 2, count / 3);
    let at = |at: usize| blocks.get(at).copied().unwrap_or(0);
    let early = at(half) - at(0);
    let late = at(count.saturating_sub(1)) - at(count.saturating_sub(1 + third));
    late * half as i64 * 100 < early * third as i64 * LATE_MIN
}

/// Median of the slopes of all pairs of points, in KiB a point.
fn slope_of(points: &[u32]) -> f64 {
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    for (at, &later) in points.iter().enumerate() {
        let earlier = points.iter().take(at).enumerate();
        slopes
            .extend(earlier.map(|(before, &kib)| (f64::from(later) - f64::from(kib)) / (at - before) as f64));
    }
    median(&mut slopes)
}

/// Standard deviation around a slope, by the median of the deviations.
fn noise(points: &[u32], slope: f64) -> f64 {
    let rest = |(at, kib): (usize, &u32)| f64::from(*kib) - slope * at as f64;
    let mut rests: Vec<f64> = points.iter().enumerate().map(rest).collect();
    let centre = median(&mut rests);
    let mut deviations: Vec<f64> = rests.iter().map(|rest| (rest - centre).abs()).collect();
    median(&mut deviations) * MAD_TO_SIGMA
}

/// The median; of an even number the larger of the two in the middle.
fn median(numbers: &mut [f64]) -> f64 {
    let middle = numbers.len() / 2;
    if numbers.is_empty() {
        return 0.0;
    }
    *numbers.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// Growth of a series in a window that its load explains, in KiB.
fn by_load(history: &History, series: &Series, window: &Window, first: i64) -> i64 {
    let of_load = |kind: Kind| {
        let load = history.of_kind(kind).filter(|load| load.kind != series.kind)?;
        let grown = window.change_kib(load)?.max(0);
        let first = load.newest(window.step, window.points).iter().take(window.block).min()?;
        Some((kib(*first).max(1), grown))
    };
    let relative = [Kind::Anonymous, Kind::KernelStacks].into_iter().filter_map(of_load);
    let relative =
        relative.filter(|(before, grown)| grown * 100 >= before * LOAD_MIN).map(|(before, grown)| {
            first.max(0).saturating_mul(grown).saturating_mul(LOAD_FACTOR) / before.saturating_mul(100)
        });
    let slab = of_load(Kind::SlabReclaimable).map_or(0, |(_, grown)| grown / OF_RECLAIMABLE);
    relative.max().unwrap_or(0).saturating_add(slab)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_is_that_of_most_points() {
        let mut points: Vec<u32> = (0..30).map(|at| 1000 + 7 * at).collect();
        assert_eq!((slope_of(&points), noise(&points, 7.0)), (7.0, 0.0));
        for at in [3, 4, 20] {
            points[at] += 5000;
        }
        assert!((slope_of(&points) - 7.0).abs() < 0.5, "{}", slope_of(&points));
    }

    #[test]
    fn steps_saturation_and_falls_are_not_steady() {
        let grown = |blocks: &[i64]| is_steady(blocks, blocks[blocks.len() - 1] - blocks[0]);
        assert!(grown(&[0, 10, 20, 30, 40, 50, 60, 70, 80, 90]));
        assert!(grown(&[0, 10, 20, 18, 40, 50, 60, 70, 80, 90]));
        assert!(!grown(&[0, 0, 0, 0, 0, 90, 90, 90, 90, 90]));
        assert!(!grown(&[0, 5, 3, 9, 2, 40, 10, 50, 20, 60]));
        assert!(!is_saturating(&[0, 10, 20, 30, 40, 50, 60, 70, 80, 90]));
        assert!(!is_saturating(&[0, 1, 2, 5, 9, 15, 20, 30, 60, 90]));
        assert!(is_saturating(&[0, 30, 50, 62, 70, 76, 80, 84, 86, 87]));
        let burst = |blocks: &[i64]| is_burst(blocks, blocks[blocks.len() - 1] - blocks[0]);
        assert!(burst(&[0, 0, 0, 0, 0, 90, 90, 90, 90, 90]) && burst(&[0, 5, 3, 50, 55, 52, 60, 62, 60, 61]));
        assert!(
            !burst(&[0, 10, 20, 30, 40, 50, 60, 70, 80, 90])
                && !burst(&[0, 50, 10, 9, 60, 8, 10, 50, 20, 60])
        );
    }

    #[test]
    fn floors_follow_the_size_of_memory() {
        let floors = |gib: u64| WINDOWS.map(|window| window.floor_kib(gib << 20));
        assert_eq!(floors(8), [32 << 10, 4 << 10, 8 << 10]);
        assert_eq!(floors(0), [1 << 10, 256, 256]);
        assert_eq!(floors(1024), [128 << 10, 16 << 10, 16 << 10]);
    }
}
