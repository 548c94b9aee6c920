//! Samples of each series, thinned with age, in a fixed amount of memory.
//!
//! Of each series: a point every 10 s for 10 minutes, every minute for an hour, every 5 minutes for 10 hours, each the smallest
//! value of its time; and for the level that the series had before, the largest of the 5-minute points of each 6 hours for 8
//! days. That is 272 numbers of 32 bits: 1.1 KiB with the name, 560 KiB for the 512 series that are kept at most.

use super::sample::{Kind, Sample, Value};

/// Series that are kept; further ones are counted only.
pub const SERIES_MAX: usize = 512;
/// Bytes of a name that is kept: names of caches are shorter (`SLAB_CACHE_NAME`, mm/slab_common.c has no limit).
const NAME_MAX: usize = 64;
/// Seconds of the shortest step.
pub const STEP: u64 = 10;
/// Seconds without a sample after which the history begins again: the machine or the program was stopped.
const GAP_MAX: u64 = 180;
/// Steps of a minute, of 5 minutes, of 6 hours.
const MINUTE: u64 = 6;
const FIVE_MINUTES: u64 = 5 * MINUTE;
const SIX_HOURS: u64 = 360 * MINUTE;
/// Marks a point without a value.
pub const UNKNOWN: u32 = u32::MAX;

/// The newest points of a series, oldest first.
#[derive(Debug, Clone)]
struct Points<const N: usize>([u32; N]);

impl<const N: usize> Points<N> {
    const EMPTY: Self = Self([UNKNOWN; N]);

    fn push(&mut self, value: u32) {
        self.0.copy_within(1.., 0);
        if let Some(last) = self.0.last_mut() {
            *last = value;
        }
    }

    /// The newest `count` points.
    fn newest(&self, count: usize) -> &[u32] {
        self.0.get(N.saturating_sub(count)..).unwrap_or_default()
    }

    /// Points before the newest `count`.
    fn older(&self, count: usize) -> &[u32] {
        self.0.get(..N.saturating_sub(count)).unwrap_or_default()
    }
}

/// The smallest of some points; unknown only if all are.
fn smallest(points: &[u32]) -> u32 {
    points.iter().copied().min().unwrap_or(UNKNOWN)
}

/// The largest of points that have a value.
fn largest<'p>(points: impl Iterator<Item = &'p u32>) -> Option<u32> {
    points.copied().filter(|point| *point != UNKNOWN).max()
}

/// Length of the points of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// 10 s.
    TenSeconds,
    /// A minute.
    Minute,
    /// 5 minutes.
    FiveMinutes,
}

impl Step {
    /// Length of the step in seconds.
    pub fn seconds(self) -> u64 {
        match self {
            Self::TenSeconds => STEP,
            Self::Minute => MINUTE * STEP,
            Self::FiveMinutes => FIVE_MINUTES * STEP,
        }
    }
}

/// One series.
#[derive(Debug, Clone)]
pub struct Series {
    /// What it counts.
    pub kind: Kind,
    /// Cache.
    pub name: Box<str>,
    /// Bytes of an object.
    pub object_size: u32,
    /// The newest value; unknown if the newest sample has none.
    pub now: u32,
    fine: Points<60>,
    minutes: Points<60>,
    fives: Points<120>,
    peaks: Points<32>,
    /// The largest 5-minute point of the open 6 hours.
    open_peak: Option<u32>,
}

impl Series {
    fn new(kind: Kind, name: &str, object_size: u32) -> Self {
        Self {
            kind,
            name: name.into(),
            object_size,
            now: UNKNOWN,
            fine: Points::EMPTY,
            minutes: Points::EMPTY,
            fives: Points::EMPTY,
            peaks: Points::EMPTY,
            open_peak: None,
        }
    }

    /// The newest `count` points of a step.
    pub fn newest(&self, step: Step, count: usize) -> &[u32] {
        match step {
            Step::TenSeconds => self.fine.newest(count),
            Step::Minute => self.minutes.newest(count),
            Step::FiveMinutes => self.fives.newest(count),
        }
    }

    /// 5-minute points, oldest first.
    pub fn five_minutes(&self) -> &[u32] {
        &self.fives.0
    }

    /// The largest level before the last `minutes`, of the last 8 days. `is_overlapped`: they reach into the newest of the
    /// closed 6 hours, of which the 5-minute points have the part before.
    fn level_before(&self, minutes: usize, is_overlapped: bool) -> Option<u32> {
        let fives = self.fives.older(minutes.div_ceil(5) + 1);
        let minutes = self.minutes.older(minutes + 1);
        let peaks = self.peaks.older(usize::from(is_overlapped));
        largest(fives.iter().chain(minutes).chain(peaks))
    }

    /// Takes one step of 10 s; `steps` counts them, with this one.
    fn step(&mut self, steps: u64) {
        self.fine.push(self.now);
        if steps % MINUTE == 0 {
            self.minutes.push(smallest(self.fine.newest(MINUTE as usize)));
        }
        if steps % FIVE_MINUTES == 0 {
            let five = smallest(self.minutes.newest((FIVE_MINUTES / MINUTE) as usize));
            self.fives.push(five);
            self.open_peak = largest(self.open_peak.iter().chain([&five]));
        }
        if steps % SIX_HOURS == 0 {
            self.peaks.push(self.open_peak.take().unwrap_or(UNKNOWN));
        }
    }

    /// Begins again. The level of the open 6 hours stays.
    fn forget_samples(&mut self) {
        let open = self.open_peak.take();
        let newest = largest(self.peaks.newest(1).iter().chain(&open));
        if let (Some(last), Some(newest)) = (self.peaks.0.last_mut(), newest) {
            *last = newest;
        }
        self.fine = Points::EMPTY;
        self.minutes = Points::EMPTY;
        self.fives = Points::EMPTY;
    }

    /// True if no sample of the last 10 minutes and no level of the last days has it.
    fn is_gone(&self) -> bool {
        self.now == UNKNOWN && largest(self.fine.0.iter().chain(&self.fives.0).chain(&self.peaks.0)).is_none()
    }

    /// Levels of the last 8 days for a state file, oldest first; the last is that of the open 6 hours.
    pub fn levels(&self) -> Vec<u32> {
        self.peaks.0.iter().copied().chain([self.open_peak.unwrap_or(UNKNOWN)]).collect()
    }
}

/// All series.
#[derive(Debug, Clone, Default)]
pub struct History {
    series: Vec<Series>,
    /// Steps since the samples began.
    steps: u64,
    /// Time of the newest sample.
    time: Option<u64>,
    /// Series that found no room.
    unkept: u64,
}

impl History {
    /// Series.
    pub fn series(&self) -> &[Series] {
        &self.series
    }

    /// Steps of 10 s since the samples began.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Time of the newest sample, in seconds since boot.
    pub fn time(&self) -> u64 {
        self.time.unwrap_or(0)
    }

    /// Number of series that found no room.
    pub fn unkept(&self) -> u64 {
        self.unkept
    }

    /// Takes a sample and returns the number of steps that it completed. `is_watched` decides on each series that is new.
    pub fn push(&mut self, sample: &Sample<'_>, mut is_watched: impl FnMut(&Value<'_>) -> bool) -> u64 {
        let before = self.time.replace(sample.time);
        let is_continued =
            before.is_some_and(|before| sample.time >= before && sample.time - before <= GAP_MAX);
        if before.is_some() && !is_continued {
            self.series.iter_mut().for_each(Series::forget_samples);
            self.steps = 0;
        }
        // Each step has the values that were current when it ended; a late sample ends several.
        let ended = match before.filter(|_| is_continued) {
            Some(before) => sample.time / STEP - before / STEP,
            None => 0,
        };
        for _ in 0..ended {
            self.steps += 1;
            let steps = self.steps;
            self.series.iter_mut().for_each(|series| series.step(steps));
        }
        self.set(sample, &mut is_watched);
        ended
    }

    fn set(&mut self, sample: &Sample<'_>, is_watched: &mut impl FnMut(&Value<'_>) -> bool) {
        self.series.iter_mut().for_each(|series| series.now = UNKNOWN);
        self.unkept = 0;
        for (at, value) in sample.values.iter().enumerate() {
            // Samples have their series in one order.
            let is_it = |series: &Series| series.kind == value.kind && *series.name == *value.name;
            let guess = self.series.get(at).is_some_and(is_it).then_some(at);
            let Some(found) = guess.or_else(|| self.series.iter().position(is_it)) else {
                self.add(value, is_watched);
                continue;
            };
            if let Some(series) = self.series.get_mut(found) {
                // Caches of one name are one series.
                series.now =
                    if series.now == UNKNOWN { value.kib } else { series.now.saturating_add(value.kib) };
                series.object_size = value.object_size;
            }
        }
    }

    fn add(&mut self, value: &Value<'_>, is_watched: &mut impl FnMut(&Value<'_>) -> bool) {
        if value.name.len() > NAME_MAX || !is_watched(value) {
            return;
        }
        if self.series.len() >= SERIES_MAX {
            self.series.retain(|series| !series.is_gone());
        }
        if self.series.len() >= SERIES_MAX {
            self.unkept += 1;
            return;
        }
        let mut series = Series::new(value.kind, value.name, value.object_size);
        series.now = value.kib;
        self.series.push(series);
    }

    /// The largest level of a series before the last `minutes`.
    pub fn level_before(&self, series: &Series, minutes: u32) -> Option<u32> {
        let is_overlapped = self.steps % SIX_HOURS < u64::from(minutes) * MINUTE;
        series.level_before(minutes as usize, is_overlapped)
    }

    /// A load's series.
    pub fn of_kind(&self, kind: Kind) -> Option<&Series> {
        self.series.iter().find(|series| series.kind == kind)
    }

    /// Adds a series with the levels of a state file, which is `ago` seconds old.
    pub fn restore(&mut self, kind: Kind, name: &str, levels: &[u32], ago: u64) {
        if self.series.len() >= SERIES_MAX || name.len() > NAME_MAX {
            return;
        }
        let mut series = Series::new(kind, name, 0);
        let passed = (ago / (SIX_HOURS * STEP)).min(32);
        // The last level is that of the open 6 hours.
        let (open, closed) = levels.split_last().map_or((UNKNOWN, levels), |(open, closed)| (*open, closed));
        closed.iter().for_each(|level| series.peaks.push(*level));
        match passed {
            0 => series.open_peak = Some(open).filter(|open| *open != UNKNOWN),
            _ => series.peaks.push(open),
        }
        (1..passed).for_each(|_| series.peaks.push(UNKNOWN));
        self.series.push(series);
    }
}
