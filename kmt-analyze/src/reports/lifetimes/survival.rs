//! Survival of the objects of a row: bytes that outlive given times, and the estimated median.

use serde::Serialize;

use super::median::MedianEstimate;
use crate::collect::lifetimes::CallerLives;
use crate::render::screen::{Cell, Column};
use crate::render::words::share;
use crate::reports::common::{Context, View};
use kmt_common::quantity::Span;

/// Survival of the objects that were allocated in the window.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SurvivalRow {
    /// Bytes of all objects allocated in the window.
    pub bytes_allocated: u64,
    /// Bytes of those that live longer than 1 ms; `null`: the length of a tick is not recorded.
    pub outlive_1ms: Option<OutliveRow>,
    /// Bytes of those that live longer than 1 s.
    pub outlive_1s: Option<OutliveRow>,
    /// Bytes of those still allocated at the end of the window.
    pub outlive_trace: OutliveRow,
    /// Estimate of the median lifetime, with objects of which only an age is known.
    pub median_estimate: MedianEstimate,
}

/// Bytes that outlive a time: a range where the end of some objects is unknown.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OutliveRow {
    /// Bytes that certainly do.
    pub bytes_at_least: u64,
    /// Bytes that certainly or possibly do.
    pub bytes_at_most: u64,
    /// The first as a share of the bytes allocated in the window, in percent; `null`: nothing was allocated.
    pub percent_at_least: Option<f64>,
    /// The second.
    pub percent_at_most: Option<f64>,
}

/// 1 ms and 1 s in the clock's unit; `None`: the length of a tick is not recorded.
pub fn bounds(context: &Context<'_, '_>) -> Option<[u64; 2]> {
    let units = |ns| context.session.clock().units(Span::Nanoseconds(ns)).ok();
    Some([units(1_000_000)?, units(1_000_000_000)?])
}

impl SurvivalRow {
    /// Survival of some lives; `is_timed`: false if the length of a tick is not recorded.
    pub fn of(lives: &CallerLives, is_timed: bool) -> Self {
        let survival = &lives.survival;
        let all = survival.bytes;
        let percent = |bytes: u64| (all > 0).then(|| 100.0 * bytes as f64 / all as f64);
        let [ms, second, trace] = survival.outlive.map(|[low, high]| OutliveRow {
            bytes_at_least: low,
            bytes_at_most: high,
            percent_at_least: percent(low),
            percent_at_most: percent(high),
        });
        Self {
            bytes_allocated: all,
            outlive_1ms: is_timed.then_some(ms),
            outlive_1s: is_timed.then_some(second),
            outlive_trace: trace,
            median_estimate: MedianEstimate::of(lives),
        }
    }

    /// One sentence: the estimated median of all objects, and the bytes that outlive the times.
    pub fn sentence(&self, view: &View) -> Option<String> {
        let estimate = &self.median_estimate;
        let median = match (estimate.median, estimate.longer_than) {
            (Some(median), _) => {
                format!("{}{}", view.duration(median), interval(estimate, view, " (95 %: ", ")"))
            }
            (None, Some(age)) => format!("longer than {}", view.duration(age)),
            (None, None) => return None,
        };
        let times = [
            (self.outlive_1ms, "longer than 1 ms"),
            (self.outlive_1s, "longer than 1 s"),
            (Some(self.outlive_trace), "until the end"),
        ];
        let shares = times.iter().filter_map(|(row, name)| Some(format!("{name}: {}", self.range((*row)?))));
        Some(format!(
            "Estimated median of all objects, with those still allocated: {median}. Share of allocated bytes that lived {}.",
            shares.collect::<Vec<String>>().join(", ")
        ))
    }

    fn range(&self, row: OutliveRow) -> String {
        let [low, high] =
            [row.bytes_at_least, row.bytes_at_most].map(|bytes| share(bytes, self.bytes_allocated));
        if low == high { low } else { format!("{} to {high}", low.trim_end_matches(" %")) }
    }
}

/// The interval as text; nothing if neither end is known.
fn interval(estimate: &MedianEstimate, view: &View, before: &str, after: &str) -> String {
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => {
            format!("{before}{} to {}{after}", view.duration(low), view.duration(high))
        }
        (Some(low), None) => format!("{before}{} or more{after}", view.duration(low)),
        _ => String::new(),
    }
}

/// Columns of survival.
pub fn columns() -> [Column; 5] {
    [
        Column::number("est. median").leaves(2),
        Column::whole("95 % interval").leaves(10),
        Column::number("over 1 ms").leaves(10),
        Column::number("over 1 s").leaves(10),
        Column::number("over trace").leaves(10),
    ]
}

/// Cells under [`columns`].
pub fn cells(row: &SurvivalRow, view: &View) -> [Cell; 5] {
    let estimate = &row.median_estimate;
    let median = match (estimate.median, estimate.longer_than) {
        (Some(median), _) => Cell::About(Box::new(Cell::Duration(median, view.unit))),
        (None, Some(age)) => Cell::text(format!("> {}", view.duration(age))),
        (None, None) => Cell::Unknown,
    };
    let of =
        |outlive: Option<OutliveRow>| outlive.map_or(Cell::Unknown, |outlive| Cell::text(row.range(outlive)));
    [
        median,
        Cell::text(interval(estimate, view, "", "")),
        of(row.outlive_1ms),
        of(row.outlive_1s),
        of(Some(row.outlive_trace)),
    ]
}
