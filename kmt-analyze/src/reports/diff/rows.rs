//! Differences of two sides, by kind and name.
//!
//! Input are profiles of the runs of both sides (`profile`). Of each name and figure, the difference of the means is
//! compared with the variation between the runs of one side (`difference`): smaller ones are noise. Slab objects and
//! pages are never added up. `text` makes the screen.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};

use super::DiffOptions;
use super::difference::{Changes, NameRow};
use super::profile::{ProfileKey, ProfileRow, RunProfile, RunRow};
use crate::reports::diff::difference::{DiffFigure, compare, needed};
use crate::sort_rows::SortRows;

/// Changes below this share of all bytes do not matter: the allocator's own bookkeeping and the like vary by as much
/// with the state of the machine.
const SHARE_MIN: f64 = 0.001;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DiffRows {
    /// The comparison.
    pub diff: DiffRow,
}

/// A comparison of two sides.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DiffRow {
    /// The first side.
    pub before: SideRow,
    /// The second side.
    pub after: SideRow,
    /// Unit of all figures: `bytes` or `bytes per second`.
    pub unit: &'static str,
    /// Source of the noise: `repeated runs` or `16 parts of each run`.
    pub noise_from: &'static str,
    /// True if call sites are compared by function, without the offset: the kernels are different builds.
    pub matched_by_function: bool,
    /// Sum of the growth of live slab bytes in rows that differ beyond noise.
    #[serde(serialize_with = "rounded")]
    pub live_growth_beyond_noise: f64,
    /// Sum of the decrease of live slab bytes in rows that differ beyond noise, as a positive number.
    #[serde(serialize_with = "rounded")]
    pub live_decrease_beyond_noise: f64,
    /// Sum of the growth of live bytes of pages in rows that differ beyond noise.
    #[serde(serialize_with = "rounded")]
    pub live_page_growth_beyond_noise: f64,
    /// Sum of the decrease of live bytes of pages in rows that differ beyond noise, as a positive number.
    #[serde(serialize_with = "rounded")]
    pub live_page_decrease_beyond_noise: f64,
    /// Change of live bytes of reclaimable caches in rows that differ beyond noise, which is in the growth and decrease of slab bytes.
    #[serde(serialize_with = "rounded")]
    pub live_change_reclaimable: f64,
    /// True if memory that the recorder itself allocated is left out of both sides.
    pub without_recorder: bool,
    /// Number of rows, including those beyond the limit.
    pub rows_total: usize,
    /// Number of rows that differ beyond noise.
    pub rows_beyond_noise: usize,
    /// Rows: those that differ beyond noise, then the others, the largest change first.
    pub rows: Vec<NameRow>,
    #[serde(skip)]
    pub shown: DiffShown,
}

/// Rows as the screen has them.
#[derive(Debug)]
pub struct DiffShown {
    /// The row of slab memory with most allocated bytes; `None`: a side has several runs.
    pub largest: Option<NameRow>,
    /// Changes of allocated bytes.
    pub allocated: Changes,
    /// Changes of live bytes.
    pub live: Changes,
}

/// Runs of one side.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SideRow {
    /// Name, as given.
    pub name: String,
    /// Runs.
    pub runs: Vec<RunRow>,
}

impl DiffRow {
    /// True if events of any run were lost.
    pub fn is_lossy(&self) -> bool {
        self.before.is_lossy() || self.after.is_lossy()
    }
}

impl SideRow {
    /// True if events of any of its runs were lost.
    pub fn is_lossy(&self) -> bool {
        self.runs.iter().any(|run| run.lost_events)
    }
}

/// Rows of a comparison of the runs of two sides.
pub fn compute(before: &[RunProfile], after: &[RunProfile], options: &DiffOptions) -> DiffRows {
    let mut rows = compared(before, after, options);
    let [growth, decrease] = live_changes(&rows, false);
    let of_reclaimable = rows.iter().filter(|row| row.is_reclaimable && row.bytes_live.is_real());
    let reclaimable = of_reclaimable.map(|row| row.bytes_live.change()).sum::<f64>();
    let [page_growth, page_decrease] = live_changes(&rows, true);
    let (rows_total, rows_beyond_noise) = (rows.len(), rows.iter().filter(|row| row.is_real()).count());
    let allocated = Changes::of(&rows, |row| &row.bytes_alloc, options);
    let live = Changes::of(&rows, |row| &row.bytes_live, options);
    let bytes = |row: &&NameRow| row.bytes_alloc.before.max(row.bytes_alloc.after);
    let slab = rows.iter().filter(|row| row.kind != "pages" && bytes(row) > 0.0);
    let largest = slab.max_by(|a, b| bytes(a).total_cmp(&bytes(b))).cloned();
    let is_repeated = before.len() + after.len() > 2;
    rows.truncate(options.output.rows());
    let [name_before, name_after] = &options.names;
    DiffRows {
        diff: DiffRow {
            before: side(name_before, before),
            after: side(name_after, after),
            unit: if options.rates { "bytes per second" } else { "bytes" },
            noise_from: if is_repeated { "repeated runs" } else { "16 parts of each run" },
            matched_by_function: options.by_function,
            live_growth_beyond_noise: growth,
            live_decrease_beyond_noise: decrease,
            live_page_growth_beyond_noise: page_growth,
            live_page_decrease_beyond_noise: page_decrease,
            live_change_reclaimable: reclaimable,
            without_recorder: before.iter().chain(after).any(|profile| profile.run.without_recorder),
            rows_total,
            rows_beyond_noise,
            rows,
            shown: DiffShown { largest: largest.filter(|_| !is_repeated), allocated, live },
        },
    }
}

/// Growth and decrease of live bytes in rows beyond noise, of slab objects or of pages.
fn live_changes(rows: &[NameRow], is_pages: bool) -> [f64; 2] {
    let rows = rows.iter().filter(|row| (row.kind == "pages") == is_pages && row.bytes_live.is_real());
    let add =
        |[growth, decrease]: [f64; 2], change: f64| [growth + change.max(0.0), decrease + (-change).max(0.0)];
    rows.map(|row| row.bytes_live.change()).fold([0.0, 0.0], add)
}

fn rounded<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(number.round())
}

fn side(name: &str, runs: &[RunProfile]) -> SideRow {
    SideRow { name: name.to_owned(), runs: runs.iter().map(|profile| profile.run.clone()).collect() }
}

/// The row of a name in a run.
fn row_of(profile: &RunProfile, key: &ProfileKey, options: &DiffOptions) -> ProfileRow {
    let row = profile.rows.get(key).copied().unwrap_or_default();
    // `run` refuses rates of runs whose length in seconds is unknown.
    match profile.run.seconds.filter(|_| options.rates) {
        Some(seconds) => row.scaled(1.0 / seconds.max(f64::MIN_POSITIVE)),
        None => row,
    }
}

/// Mean of the runs' sums of a figure. Slab objects and pages are never added up; each kind has shares of its own.
fn mean_total(
    side: &[RunProfile],
    is_pages: bool,
    figure: fn(&ProfileRow) -> DiffFigure,
    options: &DiffOptions,
) -> f64 {
    let of = |profile: &RunProfile| {
        let keys = profile.rows.keys().filter(|key| (key.0 == "pages") == is_pages);
        keys.map(|key| figure(&row_of(profile, key, options)).total.abs()).sum::<f64>()
    };
    side.iter().map(of).sum::<f64>() / side.len().max(1) as f64
}

/// Rows of all names, in their order.
fn compared(before: &[RunProfile], after: &[RunProfile], options: &DiffOptions) -> Vec<NameRow> {
    let keys: BTreeSet<&ProfileKey> =
        before.iter().chain(after).flat_map(|profile| profile.rows.keys()).collect();
    let runs =
        |side: &[RunProfile], key: &ProfileKey, figure: fn(&ProfileRow) -> DiffFigure| -> Vec<DiffFigure> {
            side.iter().map(|profile| figure(&row_of(profile, key, options))).collect()
        };
    let totals = [false, true].map(|is_pages| {
        let total = |side, figure| mean_total(side, is_pages, figure, options);
        let both = |figure| (total(before, figure), total(after, figure));
        [both(|row| row.alloc), both(|row| row.live)]
    });
    // Both figures of every row are compared.
    let needed = needed(before.len(), after.len(), keys.len() * 2);
    let row = |key: &ProfileKey| {
        let [of_alloc, of_live] = totals[usize::from(key.0 == "pages")];
        let difference = |figure: fn(&ProfileRow) -> DiffFigure, (a, b): (f64, f64)| {
            compare(&runs(before, key, figure), &runs(after, key, figure), needed)
                .beyond(a.max(b) * SHARE_MIN)
        };
        let (alloc, live) = (difference(|row| row.alloc, of_alloc), difference(|row| row.live, of_live));
        let share = |part: f64, whole: f64| if whole > 0.0 { 100.0 * part / whole } else { 0.0 };
        NameRow {
            kind: key.0,
            name: key.1.clone(),
            is_reclaimable: before
                .iter()
                .chain(after)
                .any(|run| run.rows.get(key).is_some_and(|row| row.is_reclaimable)),
            share_before_percent: share(alloc.before, of_alloc.0),
            share_after_percent: share(alloc.after, of_alloc.1),
            bytes_alloc: alloc,
            bytes_live: live,
        }
    };
    let mut rows: Vec<NameRow> = keys.into_iter().map(row).collect();
    rows.sort_rows_by(|a, b| {
        let by_weight = b.is_real().cmp(&a.is_real()).then(b.weight().total_cmp(&a.weight()));
        by_weight.then_with(|| (a.kind, &a.name).cmp(&(b.kind, &b.name)))
    });
    rows
}
