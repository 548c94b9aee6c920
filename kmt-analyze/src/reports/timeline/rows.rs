//! Live bytes and rates of each line, by step.

use serde::Serialize;

use super::lines::LineRow;
use super::{TimelineReport, lines};
use crate::collect::timeline::TimelineSums;
use crate::reports::common::ReportContext;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TimelineRows {
    /// The timeline.
    pub timeline: TimelineRow,
}

/// Steps of equal length, and the lines.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TimelineRow {
    /// Start of the first step, in the clock's unit.
    pub start: u64,
    /// Length of a step, in the clock's unit.
    pub step: u64,
    /// Number of steps.
    pub steps: usize,
    /// Share of each step, over all CPUs, in which events are missing; `null`: dropped events, which have no position.
    pub lost_percent: Vec<Option<f64>>,
    /// Lines.
    pub lines: Vec<LineRow>,
    /// End of the selected time, in the clock's unit; the last step may reach beyond it.
    #[serde(skip)]
    pub last: u64,
}

/// Sums of all lines of slab objects, by step.
#[derive(Debug)]
pub struct SlabSteps {
    /// Bytes live at the end of the step.
    pub bytes_live: Vec<i64>,
    /// Bytes live at least; `None`: the same, or not computed.
    pub bytes_live_least: Option<Vec<i64>>,
    /// Allocations.
    pub alloc_events: Vec<u64>,
    /// Frees of objects allocated in the trace.
    pub frees_matched: Vec<u64>,
}

impl SlabSteps {
    /// Those of a timeline.
    pub fn of(timeline: &TimelineRow) -> Self {
        let steps = timeline.steps;
        let lines = || timeline.lines.iter().filter(|line| !line.is_pages);
        let levels = |of: fn(&LineRow) -> Option<&[i64]>| -> Vec<i64> {
            let sum =
                |step| lines().filter_map(|line| of(line)?.get(step)).fold(0i64, |a, b| a.saturating_add(*b));
            (0..steps).map(sum).collect()
        };
        let counts = |of: fn(&LineRow) -> &[u64]| -> Vec<u64> {
            let sum =
                |step| lines().filter_map(|line| of(line).get(step)).fold(0u64, |a, b| a.saturating_add(*b));
            (0..steps).map(sum).collect()
        };
        let is_less = |line: &LineRow| {
            line.bytes_live_least.iter().flatten().zip(&line.bytes_live).any(|(least, live)| least < live)
        };
        let has_least = lines().any(is_less);
        Self {
            bytes_live: levels(|line| Some(&line.bytes_live)),
            bytes_live_least: has_least.then(|| levels(|line| line.bytes_live_least.as_deref())),
            alloc_events: counts(|line| &line.alloc_events),
            frees_matched: counts(|line| &line.frees_matched),
        }
    }
}

impl TimelineRow {
    /// Start of the step of that number, which is the end of the step before.
    pub fn start_of(&self, step: usize) -> u64 {
        start_of(self.start, self.step, step)
    }

    /// End of the step of that number, within the selected time.
    pub fn end_of(&self, step: usize) -> u64 {
        self.start_of(step + 1).min(self.last)
    }

    /// Live bytes of pages, if there is a line of pages.
    pub fn pages(&self) -> Option<&[i64]> {
        self.lines.iter().find(|line| line.is_pages).map(|line| line.bytes_live.as_slice())
    }

    /// Times and live bytes at the end of each step of a line; no time is beyond the selected time.
    pub fn points<'r>(&'r self, line: &'r LineRow) -> impl Iterator<Item = (u64, i64)> + 'r {
        let point = |(step, bytes): (usize, &i64)| (self.end_of(step), *bytes);
        line.bytes_live.iter().enumerate().map(point)
    }
}

fn start_of(start: u64, length: u64, step: usize) -> u64 {
    start.saturating_add(length.saturating_mul(step as u64))
}

/// Rows of the lines.
pub fn compute(
    context: &ReportContext<'_, '_>,
    timeline: &TimelineSums,
    options: &TimelineReport,
) -> TimelineRows {
    let session = context.session;
    let steps = &timeline.steps;
    let start_of = |step| start_of(steps.start, steps.step, step);
    let lost = |step| session.losses.missing_share(start_of(step), start_of(step + 1));
    TimelineRows {
        timeline: TimelineRow {
            start: steps.start,
            step: steps.step,
            steps: steps.steps,
            lost_percent: (0..steps.steps).map(|step| lost(step).map(|share| 100.0 * share)).collect(),
            lines: lines::compute(context, timeline, options.by, options.lines_max()),
            last: context.selection.span(session).1,
        },
    }
}
