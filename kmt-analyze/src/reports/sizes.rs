//! `sizes`: sizes requested of kmalloc, and the size classes that serve them.
//!
//! The sums are those that each pass has (`Analysis::balance`), by allocated and requested size. `what-if` simulates other
//! classes.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::collect::Collectors;
use crate::ledger::totals::Totals;
use crate::pass::selection::Selection;
use crate::pass::weights::{Estimate, in_order};
use crate::pass::{Analysis, sum_of};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{count, percent};
use crate::reports::common::basis::Input;
use crate::reports::common::cells::{slab_cells, slab_columns};
use crate::reports::common::lead::{Nouns, lead};
use crate::reports::common::rows::{Estimated, RecordedSums, SlabSums};
use crate::reports::common::sorting::{SortKey, sort_rows};
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::grouped::{Groupable, Only, RowOptions};
use crate::reports::report::Report;
use crate::sort_rows::SortRows;
use crate::stream::Api;

/// Sums by size class, and by requested size in it.
#[derive(Debug, clap::Args)]
pub struct Sizes {
    /// Groups and order.
    #[command(flatten)]
    rows: RowOptions,
}

impl Report for Sizes {
    type Handles = ();
    type Rows = SizeRows;

    const NAME: &'static str = "sizes";
    const ABOUT: &'static str = "Sizes asked of kmalloc against its size classes";
    const RESTS_ON: Input = Input::Kmallocs;

    fn adds_sums(&self) -> bool {
        true
    }

    fn for_selection(self, selection: &Selection) -> Self {
        Self { rows: self.rows.for_selection(selection) }
    }

    fn collect(&self, _: &Context<'_, '_>, _: &mut Collectors) -> Self::Handles {}

    /// Rows of all size classes.
    fn compute(&self, context: &ReportContext<'_, '_>, (): &()) -> SizeRows {
        let analysis = context.analysis;
        let mut all = classes(analysis);
        let number = |class: &Class, key: SortKey| key.number(&in_order(class.estimate, class.totals));
        sort_rows(&mut all, &self.rows.sort, number, |a, b| a.bytes_alloc.cmp(&b.bytes_alloc));
        let recorded = RecordedSums::slab(context.basis(), Some(Api::Kmalloc));
        let request =
            |(size, totals): &(u64, Totals)| RequestRow { sums: SlabSums::of(totals, recorded), size: *size };
        let row = |class: &Class| SizeRow {
            sums: SlabSums::of(&class.totals, recorded),
            estimated: class.estimate.map(Estimated::from),
            size_class: class.bytes_alloc,
            requests: class.requests.iter().map(request).collect(),
        };
        SizeRows {
            sizes_total: all.len(),
            sizes: all.iter().take(context.limit).map(row).collect(),
            all: SlabSums::of(&sum_of(analysis, Some(Api::Kmalloc)), recorded),
        }
    }

    /// The largest size classes, and the requests that waste most in them.
    fn screen(&self, rows: &SizeRows, view: &View) -> Screen {
        let sort = self.rows.first();
        let name = rows.sizes.first().map(|row| format!("kmalloc of {} bytes", count(row.size_class)));
        let first = name.as_deref().zip(rows.sizes.first().map(|row| &row.sums));
        let total = rows.sizes_total;
        let mut screen = Screen::new(lead(sort, total as u64, NOUNS, &rows.all, first, view));
        let is_lossy = view.is_lossy;
        screen.table(
            Table::of_rows("", &rows.sizes)
                .of("size class", "size classes", total)
                .column(Column::number("size class"), |row| Cell::Count(row.size_class))
                .column(Column::number("sizes").leaves(4), |row| Cell::text(range(row)))
                .columns(slab_columns(sort, is_lossy), |r| {
                    slab_cells(&r.sums, r.estimated.as_ref(), is_lossy)
                })
                .column(Column::text("most waste: size x count").leaves(5), |row| Cell::text(worst(row))),
        );
        screen.note("kmalloc rounds each size up to its class. Caches have one size each.");
        screen.next("what-if", "what other size classes would save");
        screen
    }
}

impl Groupable for Sizes {
    fn options(&self) -> &RowOptions {
        &self.rows
    }

    fn only(&self) -> Only<'_> {
        Only::Kmalloc
    }
}

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SizeRows {
    /// Number of size classes.
    pub sizes_total: usize,
    /// Size classes.
    pub sizes: Vec<SizeRow>,
    /// Sums over all size classes, which the screen has.
    #[serde(skip)]
    all: SlabSums,
}

/// Sums of one size class.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SizeRow {
    /// Sums of its objects.
    #[serde(flatten)]
    pub sums: SlabSums,
    /// Sums that its samples represent; `null`: no sample represents more than one event.
    pub estimated: Option<Estimated>,
    /// Size of the objects of the class, in bytes.
    pub size_class: u64,
    /// Requested sizes, those that waste most first.
    pub requests: Vec<RequestRow>,
}

/// Sums of one requested size.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RequestRow {
    /// Sums of its objects.
    #[serde(flatten)]
    pub sums: SlabSums,
    /// Bytes requested.
    pub size: u64,
}

/// A size class before sorting and limiting.
struct Class {
    bytes_alloc: u64,
    totals: Totals,
    estimate: Option<Estimate>,
    /// Requested sizes, those that waste most first.
    requests: Vec<(u64, Totals)>,
}

/// All size classes that have objects.
fn classes(analysis: &Analysis) -> Vec<Class> {
    let mut classes: BTreeMap<u64, BTreeMap<u64, Totals>> = BTreeMap::new();
    let mut estimates: BTreeMap<u64, Option<Estimate>> = BTreeMap::new();
    for (site, by_cache) in analysis.interner.sites.items().iter().zip(&analysis.balance.sites) {
        if site.api == Api::Kmalloc {
            let sum = classes.entry(site.bytes_alloc).or_default().entry(site.bytes_req).or_default();
            let estimate = estimates.entry(site.bytes_alloc).or_default();
            for (_, totals) in by_cache {
                *sum += totals;
                analysis.weights.add(site, totals, estimate);
            }
        }
    }
    let class = |(bytes_alloc, requests): (u64, BTreeMap<u64, Totals>)| {
        let mut requests: Vec<(u64, Totals)> =
            requests.into_iter().filter(|(_, t)| *t != Totals::default()).collect();
        let mut totals = Totals::default();
        requests.iter().for_each(|(_, t)| totals += t);
        requests.sort_rows_by_key(|(size, t)| (std::cmp::Reverse(t.bytes_wasted()), *size));
        let estimate = estimates.get(&bytes_alloc).copied().flatten();
        Class { bytes_alloc, totals, estimate, requests }
    };
    classes.into_iter().map(class).filter(|class| class.totals != Totals::default()).collect()
}

/// Requested sizes that are named for each class.
const REQUESTS: usize = 3;

const NOUNS: Nouns = Nouns { one: "kmalloc size class", several: "kmalloc size classes" };

/// Smallest and largest requested size.
fn range(row: &SizeRow) -> String {
    let sizes = || row.requests.iter().map(|request| request.size);
    let (smallest, largest) = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
    if smallest == largest { smallest.to_string() } else { format!("{smallest}-{largest}") }
}

/// Requested sizes that waste most.
fn worst(row: &SizeRow) -> String {
    let all = row.sums.bytes_wasted.unwrap_or(0);
    let wasted = row.requests.iter().filter_map(|request| {
        let wasted = request.sums.bytes_wasted.filter(|&wasted| wasted > 0)?;
        let allocs = count(request.sums.alloc_events.unwrap_or(0));
        Some(format!("{} x {allocs} ({})", request.size, percent(wasted, all)))
    });
    wasted.take(REQUESTS).collect::<Vec<_>>().join(", ")
}
