//! Samples of each series, thinned with age, in a fixed amount of memory.
//!
//! Of each series: a point every 10 s for 10 minutes, every minute for an hour, every 5 minutes for 10 hours, each the smallest
//! value of its time; and for the level that the series had before, the largest of the 5-minute points of each 6 hours for 8
//! days. That is 272 numbers of 32 bits: 1.1 KiB with the name, 560 KiB for the 512 series that are kept at most.
//!
//! The 6 hours that are open continue over restarts and gaps in the samples. Their largest level from before counts all the while.

use super::sample::{Kind, Sample, Value};

/// Series that are kept; further caches are counted only.
pub const SERIES_MAX: usize = 512;
/// Series that are not of a cache, one of each kind: they always have room.
pub const SUMS: usize = 8;
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
/// The point of 0 KiB: memory in no account can be negative, where accounts overlap.
const ZERO: i64 = 1 << 28;

/// The point of an amount.
pub fn point(kib: i64) -> u32 {
    kib.saturating_add(ZERO).clamp(0, i64::from(UNKNOWN) - 1) as u32
}

/// The amount of a point, in KiB.
pub fn kib(point: u32) -> i64 {
    i64::from(point) - ZERO
}

/// The amount of a point; `None`: it has no value.
fn known(point: u32) -> Option<i64> {
    (point != UNKNOWN).then(|| kib(point))
}

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
    /// The newest point; unknown if the newest sample has none.
    now: u32,
    fine: Points<60>,
    minutes: Points<60>,
    fives: Points<120>,
    peaks: Points<32>,
    /// The largest 5-minute point of the open 6 hours.
    open_peak: Option<u32>,
    /// The part of it from before the samples began; it stays until the next 6 hours are over, too.
    carried: Option<u32>,
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
            carried: None,
        }
    }

    /// The newest amount in KiB; `None`: the newest sample has none.
    pub fn now(&self) -> Option<i64> {
        known(self.now)
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
        largest(fives.iter().chain(minutes).chain(peaks).chain(&self.carried))
    }

    /// Takes one step of 10 s; `steps` counts them, with this one, and `offset` those of the open 6 hours before.
    fn step(&mut self, steps: u64, offset: u64) {
        self.fine.push(self.now);
        if steps % MINUTE == 0 {
            self.minutes.push(smallest(self.fine.newest(MINUTE as usize)));
        }
        if steps % FIVE_MINUTES == 0 {
            let five = smallest(self.minutes.newest((FIVE_MINUTES / MINUTE) as usize));
            self.fives.push(five);
            self.open_peak = largest(self.open_peak.iter().chain([&five]));
        }
        if (steps + offset) % SIX_HOURS == 0 {
            self.end_six_hours(1);
            // A window may reach into those that ended first, whose level does not count then.
            if steps > SIX_HOURS {
                self.carried = None;
            }
        }
    }

    /// Ends the open 6 hours, and further ones without samples.
    fn end_six_hours(&mut self, count: u64) {
        for _ in 0..count.min(self.peaks.0.len() as u64) {
            self.peaks.push(self.open_peak.take().unwrap_or(UNKNOWN));
        }
    }

    /// Begins again, after a time in which 6 hours ended `ended` times. The level of the open 6 hours stays.
    fn begin_again(&mut self, ended: u64) {
        self.end_six_hours(ended);
        self.carried = self.open_peak;
        self.fine = Points::EMPTY;
        self.minutes = Points::EMPTY;
        self.fives = Points::EMPTY;
    }

    /// True if no sample of the last 10 minutes and no level of the last days has it.
    fn is_gone(&self) -> bool {
        let points = self.fine.0.iter().chain(&self.fives.0).chain(&self.peaks.0);
        self.now == UNKNOWN && largest(points.chain(&self.open_peak).chain(&self.carried)).is_none()
    }

    /// Levels of the last 8 days in KiB for a state file, oldest first; the last is that of the open 6 hours.
    pub fn levels(&self) -> Vec<Option<i64>> {
        let levels = self.peaks.0.iter().copied().map(known);
        levels.chain([self.open_peak.map(kib)]).collect()
    }
}

/// All series.
#[derive(Debug, Clone, Default)]
pub struct History {
    series: Vec<Series>,
    /// Steps since the samples began.
    steps: u64,
    /// Steps that the open 6 hours had then.
    offset: u64,
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
        if let Some(before) = before.filter(|_| !is_continued) {
            self.begin_again(sample.time.saturating_sub(before) / STEP);
        }
        // Each step has the values that were current when it ended; a late sample ends several.
        let ended = match before.filter(|_| is_continued) {
            Some(before) => sample.time / STEP - before / STEP,
            None => 0,
        };
        for _ in 0..ended {
            self.steps += 1;
            let (steps, offset) = (self.steps, self.offset);
            self.series.iter_mut().for_each(|series| series.step(steps, offset));
        }
        self.set(sample, &mut is_watched);
        ended
    }

    /// Begins again after a gap of some steps.
    fn begin_again(&mut self, gap: u64) {
        let open = self.of_open() + gap;
        self.series.iter_mut().for_each(|series| series.begin_again(open / SIX_HOURS));
        (self.steps, self.offset) = (0, open % SIX_HOURS);
    }

    /// Steps of the open 6 hours.
    fn of_open(&self) -> u64 {
        (self.steps + self.offset) % SIX_HOURS
    }

    /// Seconds of the open 6 hours so far.
    pub fn open_seconds(&self) -> u64 {
        self.of_open() * STEP
    }

    fn set(&mut self, sample: &Sample<'_>, is_watched: &mut impl FnMut(&Value<'_>) -> bool) {
        self.series.iter_mut().for_each(|series| series.now = UNKNOWN);
        self.unkept = 0;
        // Series that are new come last: only then those that are gone are known.
        let all = sample.values.iter().enumerate();
        let new: Vec<&Value<'_>> =
            all.filter(|(at, value)| !self.enter(*at, value)).map(|(_, value)| value).collect();
        for value in new {
            if !self.enter(usize::MAX, value) {
                self.add(value, is_watched);
            }
        }
    }

    /// Enters a value into its series, which may be the one at `guess`: samples have their series in one order. False: it has none.
    fn enter(&mut self, guess: usize, value: &Value<'_>) -> bool {
        let is_it = |series: &Series| series.kind == value.kind && *series.name == *value.name;
        let guess = self.series.get(guess).is_some_and(is_it).then_some(guess);
        let found = guess.or_else(|| self.series.iter().position(is_it));
        let Some(series) = found.and_then(|found| self.series.get_mut(found)) else { return false };
        // Caches of one name are one series.
        series.now = point(series.now().unwrap_or(0).saturating_add(value.kib));
        series.object_size = value.object_size;
        true
    }

    fn add(&mut self, value: &Value<'_>, is_watched: &mut impl FnMut(&Value<'_>) -> bool) {
        if value.name.len() > NAME_MAX || !is_watched(value) {
            return;
        }
        if !self.has_room(value.kind) {
            self.series.retain(|series| !series.is_gone());
        }
        if !self.has_room(value.kind) {
            self.unkept += 1;
            return;
        }
        let mut series = Series::new(value.kind, value.name, value.object_size);
        series.now = point(value.kib);
        self.series.push(series);
    }

    /// True if another series of this kind can be kept.
    fn has_room(&self, kind: Kind) -> bool {
        let caches = || self.series.iter().filter(|series| series.kind == Kind::Cache).count();
        self.series.len() < SERIES_MAX && (kind != Kind::Cache || caches() < SERIES_MAX - SUMS)
    }

    /// The largest level of a series before the last `minutes`, in KiB.
    pub fn level_before(&self, series: &Series, minutes: u32) -> Option<i64> {
        let is_overlapped = self.of_open() < u64::from(minutes) * MINUTE;
        series.level_before(minutes as usize, is_overlapped).map(kib)
    }

    /// A load's series.
    pub fn of_kind(&self, kind: Kind) -> Option<&Series> {
        self.series.iter().find(|series| series.kind == kind)
    }

    /// Adds a series with the levels of a state file, the last of which is that of 6 hours that began `since` seconds ago. False:
    /// the series is there already, or cannot be.
    pub fn restore(&mut self, kind: Kind, name: &str, levels: &[Option<i64>], since: u64) -> bool {
        let is_one = if kind == Kind::Cache { name.len() <= NAME_MAX } else { name.is_empty() };
        let is_known = || self.series.iter().any(|series| series.kind == kind && *series.name == *name);
        if kind.is_load() || !is_one || is_known() {
            return false;
        }
        if !self.has_room(kind) {
            return true;
        }
        let mut series = Series::new(kind, name, 0);
        let (open, closed) = levels.split_last().map_or((None, levels), |(open, closed)| (*open, closed));
        closed.iter().for_each(|level| series.peaks.push(level.map_or(UNKNOWN, point)));
        series.open_peak = open.map(point);
        series.begin_again(since / STEP / SIX_HOURS);
        self.offset = since / STEP % SIX_HOURS;
        self.series.push(series);
        true
    }
}
