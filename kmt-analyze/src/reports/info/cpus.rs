//! Losses of each CPU.

use kmt_format::kernel::CpuStats;
use serde::Serialize;

use crate::render::head::CpuHead;
use crate::trace::changes::Change;
use crate::trace::losses::{CpuLosses, LossPlace};

/// Events of one CPU, and its losses.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CpuRow {
    /// Counts of all events and of all lost ones.
    #[serde(flatten)]
    pub head: CpuHead,
    /// Counters of the kernel; `null`: not recorded.
    pub stats: Option<StatsRow>,
    /// Lost events that the kernel counted in its sub-buffers.
    pub lost_events_counted_in_place: u64,
    /// Number of places where the kernel did not count.
    pub uncounted_places: usize,
    /// Events lost at these places together, by the overrun counter; `null`: not recorded, or no such place.
    pub lost_events_at_uncounted_places: Option<u64>,
    /// Lost events without a position in the trace: dropped events mark no sub-buffer.
    pub lost_events_unplaced: u64,
    /// Places where events are missing.
    pub losses: Vec<LossRow>,
}

/// Counters of the kernel's ring buffer of one CPU; `null`: not recorded.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StatsRow {
    /// Events not yet read.
    pub entries: Option<u64>,
    /// Events overwritten before they were read.
    pub overrun: Option<u64>,
    /// Events lost in nested interrupts.
    pub commit_overrun: Option<u64>,
    /// Events refused because the buffer was full.
    pub dropped_events: Option<u64>,
    /// Events read.
    pub read_events: Option<u64>,
}

/// A place where events are missing.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LossRow {
    /// Time of the event before it, in the clock's unit; `null`: the start of the trace.
    pub after: Option<u64>,
    /// Time of the event after it; `null`: the end of the trace.
    pub before: Option<u64>,
    /// Events lost there as the kernel counted them; `null`: not counted.
    pub lost_events: Option<u64>,
    /// True if the kernel did not count all of them.
    pub uncounted: bool,
    /// True if part of the input was damaged there.
    pub damaged_input: bool,
    /// Events of chunks that are missing from the file.
    pub events_missing: u64,
    /// True if the recording ended unexpectedly there.
    pub early_end: bool,
    /// True if the kernel lost them before the first event of the file: before the recorded time.
    pub before_first: bool,
}

/// A setting of tracefs that another process wrote while it was recorded.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChangeRow {
    /// It happened after this time, in the clock's unit.
    pub from: u64,
    /// And before this time.
    pub to: u64,
    /// The file, from the directory of the ring buffer on.
    pub file: String,
    /// Value of the setting before.
    pub old_value: String,
    /// Value of the setting after; equal to `old_value` if it was written and had its value again.
    pub new_value: String,
}

impl From<&Change> for ChangeRow {
    fn from(change: &Change) -> Self {
        let Change { from, to, setting } = change.clone();
        Self { from, to, file: setting.file, old_value: setting.before, new_value: setting.after }
    }
}

impl From<&CpuLosses> for CpuRow {
    fn from(losses: &CpuLosses) -> Self {
        Self {
            head: CpuHead::from(losses),
            stats: losses.stats.as_ref().map(StatsRow::from),
            lost_events_counted_in_place: losses.counted(),
            uncounted_places: losses.uncounted_places(),
            lost_events_at_uncounted_places: losses.lost_at_uncounted_places(),
            lost_events_unplaced: losses.unplaced(),
            losses: losses.places.iter().map(LossRow::from).collect(),
        }
    }
}

impl From<&CpuStats> for StatsRow {
    fn from(stats: &CpuStats) -> Self {
        Self {
            entries: stats.entries,
            overrun: stats.overrun,
            commit_overrun: stats.commit_overrun,
            dropped_events: stats.dropped,
            read_events: stats.read,
        }
    }
}

impl From<&LossPlace> for LossRow {
    fn from(loss: &LossPlace) -> Self {
        Self {
            after: loss.after,
            before: loss.before,
            lost_events: (!(loss.uncounted || loss.is_early_end) || loss.counted > 0).then_some(loss.counted),
            uncounted: loss.uncounted,
            damaged_input: loss.damaged_input,
            events_missing: loss.events_missing,
            early_end: loss.is_early_end,
            before_first: loss.is_before_first,
        }
    }
}
