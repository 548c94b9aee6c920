//! Lifetimes of the objects of a row: their distribution, their survival, and where they are freed.
//!
//! Survival has the bytes that outlive given times, and the median as `median` estimates it. Columns and cells of both are here,
//! since several tables have them.

use std::collections::BTreeMap;

use kmt_common::quantity::Span;
use serde::Serialize;

use super::median::MedianEstimate;
use crate::collect::histogram::{Histogram, decades};
use crate::collect::lifetimes::CallerLives;
use crate::pass::Analysis;
use crate::render::screen::{Cell, Column};
use crate::render::words::share;
use crate::reports::common::labels::{Labels, Symbol};
use crate::reports::common::rows::Address;
use crate::reports::common::{Context, View};
use crate::sort_rows::SortRows;
use crate::stream::Api;
use crate::trace::names::function_of;

/// Lifetimes of some objects.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LifeRow {
    /// Lifetimes of the objects that were freed.
    pub lifetime: Distribution,
    /// Objects still allocated at the end of the window: their lifetimes are at least their ages.
    pub censored: u64,
    /// Implied frees: the address or page was reused, and no free event was recorded.
    pub freed_unseen: u64,
    /// Lives that cross a loss, or whose free is ambiguous.
    pub uncertain: u64,
    /// Objects allocated before the clock ran: their age is unknown, and they are in no other number but the bytes of the
    /// survival.
    pub unknown_age: u64,
    /// Bytes of the objects that were freed.
    pub bytes_freed: u64,
    /// Sum of bytes x lifetime of the objects that were freed, in bytes x the clock's unit; a decimal number.
    pub byte_time: String,
    /// Survival of the objects allocated in the window.
    pub survival: SurvivalRow,
    /// Call sites and interfaces of the frees, the most frequent first.
    pub freed_by: Vec<FreeRow>,
}

/// Distribution of lifetimes, in the clock's unit; percentiles are exact to 1.6 %.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Distribution {
    /// Number of lifetimes.
    pub n: u64,
    /// Median; `null`: no lifetime.
    pub p50: Option<u64>,
    /// 90th percentile.
    pub p90: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// Longest lifetime, exact.
    pub max: Option<u64>,
    /// Mean, exact.
    pub mean: Option<u64>,
    /// Buckets that are not empty: lowest and highest lifetime, number of lifetimes.
    pub histogram: Vec<[u64; 3]>,
}

/// Frees at one call site and interface.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FreeRow {
    /// Address of the call site of the free.
    pub call_site: Address,
    /// Function and offset, or the address.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// `kmalloc` or `cache`.
    pub api: &'static str,
    /// Objects freed there.
    pub frees: u64,
    /// Mean of their lifetimes, in the clock's unit.
    pub lifetime_mean: u64,
}

impl Distribution {
    /// Number of lifetimes of 1 to 9, 10 to 99, 100 to 999 and so on.
    pub fn decades(&self) -> Vec<u64> {
        decades(self.histogram.iter().copied())
    }
}

impl From<&Histogram> for Distribution {
    fn from(lifetimes: &Histogram) -> Self {
        Self {
            n: lifetimes.count(),
            p50: lifetimes.quantile(500),
            p90: lifetimes.quantile(900),
            p99: lifetimes.quantile(990),
            max: lifetimes.max(),
            mean: lifetimes.mean(),
            histogram: lifetimes.buckets().map(|(low, width, n)| [low, low + (width - 1), n]).collect(),
        }
    }
}

impl LifeRow {
    /// Row of some lives.
    pub fn of(lives: &CallerLives, analysis: &Analysis, labels: &Labels<'_, '_>, is_timed: bool) -> Self {
        Self {
            lifetime: Distribution::from(&lives.freed),
            censored: lives.censored,
            freed_unseen: lives.implied_frees,
            uncertain: lives.uncertain,
            unknown_age: lives.unknown_age,
            bytes_freed: lives.bytes_freed,
            byte_time: lives.byte_time.to_string(),
            survival: SurvivalRow::of(lives, is_timed),
            freed_by: freed_by(lives, analysis, labels),
        }
    }
}

fn freed_by(lives: &CallerLives, analysis: &Analysis, labels: &Labels<'_, '_>) -> Vec<FreeRow> {
    let mut sums: BTreeMap<(Api, u64), (u64, u128)> = BTreeMap::new();
    for (site, &(frees, time)) in lives.freed_by.iter() {
        let Some(site) = analysis.interner.frees.get(site) else { continue };
        let sum = sums.entry((site.api, site.call_site)).or_default();
        *sum = (sum.0 + frees, sum.1 + time);
    }
    let row = |((api, address), (frees, time)): ((Api, u64), (u64, u128))| FreeRow {
        call_site: Address(address),
        symbol: labels.located(address),
        api: api.name(),
        frees,
        lifetime_mean: (time / u128::from(frees.max(1))) as u64,
    };
    let mut rows: Vec<FreeRow> = sums.into_iter().map(row).collect();
    rows.sort_rows_by(|a, b| b.frees.cmp(&a.frees).then_with(|| a.symbol.cmp(&b.symbol)));
    rows
}

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
    /// Bytes that certainly outlive the time.
    pub bytes_at_least: u64,
    /// Bytes that certainly or possibly outlive the time.
    pub bytes_at_most: u64,
    /// `bytes_at_least` as a share of the bytes allocated in the window, in percent; `null`: nothing was allocated.
    pub percent_at_least: Option<f64>,
    /// `bytes_at_most` as a share of the bytes allocated in the window, in percent; `null`: nothing was allocated.
    pub percent_at_most: Option<f64>,
}

/// 1 ms and 1 s in the clock's unit; `None`: the length of a tick is not recorded.
pub fn survival_bounds(context: &Context<'_, '_>) -> Option<[u64; 2]> {
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
pub fn survival_columns() -> [Column; 5] {
    [
        Column::number("est. median").leaves(2),
        Column::whole("95 % interval").leaves(10),
        Column::number("over 1 ms").leaves(10),
        Column::number("over 1 s").leaves(10),
        Column::number("over trace").leaves(10),
    ]
}

/// Cells under [`columns`].
pub fn survival_cells(row: &SurvivalRow, view: &View) -> [Cell; 5] {
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

/// Call sites in the column of the others at most.
const OTHERS: usize = 3;

/// Columns of the call sites that free the objects of a row. Where events were lost they leave before the column of
/// uncertain objects does.
pub fn free_columns(is_lossy: bool) -> [Column; 3] {
    let most = Column::name("freed at").leaves(if is_lossy { 2 } else { 0 });
    [most, Column::number("freed there").leaves(5), Column::text("other free sites").leaves(9)]
}

/// Cells under [`columns`].
pub fn free_cells(row: &LifeRow) -> [Cell; 3] {
    let Some((most, others)) = row.freed_by.split_first() else {
        return [Cell::Empty, Cell::Empty, Cell::Empty];
    };
    let of = |frees: u64| share(frees, row.lifetime.n);
    let mut names: Vec<String> = others
        .iter()
        .take(OTHERS)
        .map(|site| format!("{} {}", function_of(&site.symbol), of(site.frees)))
        .collect();
    let more = others.len().saturating_sub(OTHERS);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    [Cell::from(&most.symbol), Cell::share(most.frees, row.lifetime.n), Cell::text(names.join(", "))]
}
