//! Judges all series with each sample, and reports each growth once: again when it has doubled.
//!
//! The first 10 minutes after boot are not judged. A sum (unreclaimable slab) is not reported while caches in it, each near the floor
//! or above it, explain at least half of its growth: they are judged for themselves. A growth is forgotten when its memory is back
//! near the level at which it began.

use super::history::{History, Series, kib};
use super::judge::{Growth, Verdict, WINDOWS, Window, judge};
use super::sample::{Kind, Sample, Value};

/// Seconds after boot of which no window may have a part.
const WARM_UP: u64 = 600;

/// Growth that was reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reported {
    pub kind: Kind,
    pub name: String,
    /// Level at which the growth began, in KiB.
    pub begin_kib: i64,
    /// Growth at the last report, in KiB.
    pub grown_kib: u64,
}

/// Growth to report.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What grows.
    pub kind: Kind,
    /// Cache; empty for other kinds.
    pub name: String,
    /// Bytes of an object of the cache.
    pub object_size: u32,
    /// Growth in the shortest window that shows it.
    pub growth: Growth,
    /// Seconds since when it has grown, at least.
    pub since: u64,
    /// Growth since it began, in KiB.
    pub grown_kib: u64,
    /// True if it was reported before, and has doubled since.
    pub is_again: bool,
}

/// A series with its verdict in each window, for `--dry-run`.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged<'h> {
    /// What it counts.
    pub kind: Kind,
    /// Cache.
    pub name: &'h str,
    /// The newest value in KiB; memory in no account can be negative.
    pub kib: i64,
    /// Verdicts, by window.
    pub verdicts: [(u32, Verdict); 3],
}

/// The watch.
#[derive(Debug, Clone, Default)]
pub struct Watcher {
    pub(super) history: History,
    pub(super) reported: Vec<Reported>,
    memory_kib: u64,
}

impl Watcher {
    /// Takes a sample and returns what grows and was not reported. `is_watched` decides on each series that is new: caches that
    /// the kernel can reclaim are not.
    pub fn take(&mut self, sample: &Sample<'_>, is_watched: impl FnMut(&Value<'_>) -> bool) -> Vec<Finding> {
        self.memory_kib = sample.memory_kib;
        let ended = self.history.push(sample, is_watched);
        if ended == 0 {
            return Vec::new();
        }
        self.forget();
        let growing = self.growing(ended);
        growing.iter().filter_map(|(at, growth)| self.found(*at, growth)).collect()
    }

    /// Number of series that are watched, and of those that found no room.
    pub fn counts(&self) -> (u64, u64) {
        (
            self.history.series().iter().filter(|series| !series.kind.is_load()).count() as u64,
            self.history.unkept(),
        )
    }

    /// Verdicts on all series.
    pub fn judged(&self) -> impl Iterator<Item = Judged<'_>> {
        let series = self.history.series().iter().filter(|series| !series.kind.is_load());
        series.filter_map(|series| {
            let verdicts = WINDOWS.map(|window| (window.minutes, self.verdict(series, &window)));
            Some(Judged { kind: series.kind, name: &series.name, kib: series.now()?, verdicts })
        })
    }

    fn verdict(&self, series: &Series, window: &Window) -> Verdict {
        if self.history.time() < WARM_UP + u64::from(window.minutes) * 60 {
            return Verdict::TooShort;
        }
        judge(&self.history, series, window, self.memory_kib)
    }

    /// Series that grow, with the shortest window that shows it, in windows with a new point: the newest `ended` steps.
    fn growing(&self, ended: u64) -> Vec<(usize, Growth)> {
        let is_due = |window: &&Window| window.is_due(self.history.steps(), ended);
        let mut growing: Vec<(usize, Growth)> = Vec::new();
        for (at, series) in self.history.series().iter().enumerate() {
            let windows = WINDOWS.iter().filter(is_due).filter(|_| !series.kind.is_load());
            let found =
                windows.map(|window| self.verdict(series, window)).find_map(|verdict| match verdict {
                    Verdict::Growing(growth) => Some(growth),
                    _ => None,
                });
            growing.extend(found.map(|growth| (at, growth)));
        }
        growing.retain(|(at, growth)| !self.is_explained(*at, growth));
        growing
    }

    /// True for unreclaimable slab if caches whose growth is judged for itself explain it.
    fn is_explained(&self, at: usize, growth: &Growth) -> bool {
        let series = self.history.series();
        let floor = i64::try_from(growth.window.floor_kib(self.memory_kib)).unwrap_or(i64::MAX);
        let caches = series.iter().filter(|series| series.kind == Kind::Cache);
        let changes = caches.filter_map(|cache| growth.window.change_kib(cache));
        let grown: i64 = changes.filter(|change| *change * 4 >= floor * 3).sum();
        let is_sum = series.get(at).is_some_and(|series| series.kind == Kind::SlabUnreclaimable);
        is_sum && grown * 2 >= growth.end_kib - growth.begin_kib
    }

    /// The finding of a series that grows, unless it was reported; remembers it.
    fn found(&mut self, at: usize, growth: &Growth) -> Option<Finding> {
        let series = self.history.series().get(at)?;
        let known =
            self.reported.iter_mut().find(|known| known.kind == series.kind && known.name == *series.name);
        let (begin_kib, since) = begin(series, growth);
        let is_again = known.is_some();
        let grown_kib = match known {
            Some(known) => {
                let grown = grown_kib(known.begin_kib, growth.end_kib);
                if grown < known.grown_kib.saturating_mul(2) {
                    return None;
                }
                known.grown_kib = grown;
                grown
            }
            None => {
                let grown_kib = grown_kib(begin_kib, growth.end_kib);
                let (kind, name) = (series.kind, series.name.to_string());
                self.reported.push(Reported { kind, name, begin_kib, grown_kib });
                grown_kib
            }
        };
        Some(Finding {
            kind: series.kind,
            name: series.name.to_string(),
            object_size: series.object_size,
            growth: *growth,
            since,
            grown_kib,
            is_again,
        })
    }

    /// Forgets growth whose memory was freed.
    fn forget(&mut self) {
        let series = self.history.series();
        self.reported.retain(|known| {
            let found = series.iter().find(|series| series.kind == known.kind && *series.name == *known.name);
            let Some(now) = found.and_then(Series::now) else { return true };
            grown_kib(known.begin_kib, now) > known.grown_kib / 4
        });
    }
}

/// Growth from one level to another; 0 if it is lower.
fn grown_kib(begin_kib: i64, end_kib: i64) -> u64 {
    u64::try_from(end_kib.saturating_sub(begin_kib)).unwrap_or(0)
}

/// Level at which a growth began, and seconds since then: as long as the 20 minutes before were lower.
fn begin(series: &Series, growth: &Growth) -> (i64, u64) {
    let (mut level, mut seconds) = (growth.begin_kib, u64::from(growth.window.minutes) * 60);
    // Points of 5 minutes that are in the window.
    let inside = growth.window.minutes.div_ceil(5) as usize;
    let points = series.five_minutes();
    let before = points.get(..points.len().saturating_sub(inside)).unwrap_or_default();
    for block in before.rchunks(4) {
        let Some(least) = block.iter().min().map(|least| kib(*least)) else { break };
        if least >= level || block.len() < 4 {
            break;
        }
        level = least;
        seconds += 4 * 300;
    }
    (level, seconds)
}
