//! Files with survivors as events and the other objects as sums: what can be computed of them.
//!
//! A recording of survivors keeps each object that lives long as events, and the others as sums by interval. Numbers of
//! events and objects that are in sums come from the headers of the chunks. Commands that need each event refuse this
//! file, with a hint; windows are rounded to whole intervals.

use std::path::Path;

use kmt_common::shell;
use kmt_format::read::{FoldInfo, Trace};

use crate::failure::{Failure, Result};

/// Reports that add the sums to the events, for hints.
pub const REPORTS: &str = "summary, callers, caches, sizes, lifetimes, leaks, waste, memory, pages, vmalloc, percpu, balance, timeline and diff";

/// The recording that has each event, for hints.
pub const REMEDY: &str = "record without --survivors";

/// Refuses a file of which a command would take a part of the events for all.
pub fn check_all_events(path: &Path, trace: &Trace<'_>) -> Result<()> {
    if !trace.header().folded {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} has the events of survivors alone, and sums of objects that died young: this command needs every event",
        path.display()
    ))
    .hint(format!(
        "{REMEDY}; {REPORTS} add the sums, such as kmt-analyze callers {}",
        shell::path(path)
    )))
}

/// Events of the recording that are in the file or in its sums.
pub fn all_events(trace: &Trace<'_>) -> u64 {
    trace.folds().iter().fold(trace.event_count(), |sum, (_, info)| sum.saturating_add(info.events))
}

/// A window that begins and ends with intervals of sums; an instant is the end of its interval. Times that are in no interval
/// stay as they are.
pub fn whole_intervals(trace: &Trace<'_>, (first, last): (u64, u64), is_instant: bool) -> (u64, u64) {
    let of = |time: u64| {
        let mut infos = trace.folds().iter().map(|(_, info)| info);
        infos.find(|info| info.t_begin <= time && time < info.t_end)
    };
    let end = of(last).map_or(last, |info| info.t_end - 1);
    let begin = if is_instant { end } else { of(first).map_or(first, |info| info.t_begin) };
    (begin, end)
}

/// Events that are in sums of intervals within a window.
pub fn events_within(trace: &Trace<'_>, (first, last): (u64, u64)) -> u64 {
    let is_within = |info: &&FoldInfo| info.t_begin >= first && info.t_end.saturating_sub(1) <= last;
    let infos = trace.folds().iter().map(|(_, info)| info);
    infos.filter(is_within).fold(0, |sum, info| sum.saturating_add(info.events))
}

/// A number of objects that are only in sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoldedLifeCount {
    /// The number.
    pub count: u64,
    /// False if sums are missing or cannot be read: the number is a minimum.
    pub is_exact: bool,
}

/// Objects and pages that are only in sums of intervals within a window.
pub fn lives_within(trace: &Trace<'_>, (first, last): (u64, u64)) -> FoldedLifeCount {
    let mut lives = FoldedLifeCount { count: 0, is_exact: trace.folds_missing() == 0 };
    for (chunk, info) in trace.folds() {
        if info.t_begin < first || info.t_end.saturating_sub(1) > last {
            continue;
        }
        match trace.read_fold(chunk) {
            Ok(fold) => {
                let rows = fold.lives().filter(|row| row.indices().0.is_some());
                let count = rows.fold(0u64, |sum, row| sum.saturating_add(row.sums().count));
                lives.count = lives.count.saturating_add(count);
            }
            Err(_) => lives.is_exact = false,
        }
    }
    lives
}

/// Length of an interval of sums, in the clock's unit: the longest one, since memory may end others early. `None`: there are no
/// sums.
pub fn interval(trace: &Trace<'_>) -> Option<u64> {
    trace.folds().iter().map(|(_, info)| info.t_end.saturating_sub(info.t_begin)).max()
}
