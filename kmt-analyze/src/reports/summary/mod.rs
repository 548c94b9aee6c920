//! `summary`: totals of slab objects and pages.
//!
//! Totals are those that each pass has. Where events were lost, each has a range: the lost events are simulated (`pass/ranges`).
//! Rows are made here, the screen in `text`.

mod slab;
mod text;

pub use text::live_least;

use slab::{BothTotals, InterfaceTotals, RawTotals, RecordedEvents, SlabTotals, SummaryShown};

use std::collections::BTreeMap;

use kmt_format::schema::Meaning;
use serde::Serialize;

use crate::collect::Collectors;
use crate::pass::coverage::bounds::LiveSpan;
use crate::pass::ranges::Range;
use crate::pass::weights::Estimate;
use crate::pass::{Analysis, Needs, sum_of};
use crate::render::screen::Screen;
use crate::reports::common::basis::{Basis, Input};
use crate::reports::common::page_sums::PageSums;
use crate::reports::common::rows::{Estimated, RecordedSums};
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::report::Report;
use crate::stream::Api;

/// Totals of slab objects and pages.
#[derive(Debug, clap::Args)]
pub struct Summary;

impl Report for Summary {
    type Handles = ();
    type Rows = SummaryRows;

    const NAME: &'static str = "summary";
    const ABOUT: &'static str = "Slab and page memory: allocated, freed, live";
    const RESTS_ON: Input = Input::Nothing;
    const KEYS: Keys = Keys::All;
    const NEEDS: Needs = Needs::RANGES.union(Needs::CACHE_NAMES);
    const HAS_LINES: bool = false;

    fn adds_sums(&self) -> bool {
        true
    }

    fn collect(&self, _: &Context<'_, '_>, _: &mut Collectors) -> Self::Handles {}

    /// Totals of a trace.
    fn compute(&self, context: &ReportContext<'_, '_>, (): &()) -> SummaryRows {
        let analysis = context.analysis;
        let basis = context.basis();
        let meanings = [Meaning::KMALLOC, Meaning::KFREE, Meaning::CACHE_ALLOC, Meaning::CACHE_FREE];
        let recorded = meanings.map(|meaning| context.recorded(meaning));
        let [kmalloc, kfree, kmem_cache_alloc, kmem_cache_free] = recorded;
        let events = RecordedEvents { kmalloc, kfree, kmem_cache_alloc, kmem_cache_free };
        let bounds = &context.live_bounds().bounds;
        let live = [None, Some(Api::Kmalloc), Some(Api::Cache)].map(|api| bounds.of_api(api));
        let has_slab = recorded.contains(&Some(true));
        let has_pages = [Meaning::PAGE_ALLOC, Meaning::PAGE_FREE]
            .into_iter()
            .any(|meaning| context.recorded(meaning) == Some(true));
        let pages = || PageTotals {
            sums: PageSums::of(analysis, RecordedSums::pages(basis)),
            ranges: ranges(analysis, "pages"),
        };
        SummaryRows {
            slab: has_slab.then(|| slab(analysis, basis, live, events)),
            pages: has_pages.then(pages),
            shown: SummaryShown::of(context),
        }
    }

    fn screen(&self, rows: &SummaryRows, view: &View) -> Screen {
        text::screen(rows, view)
    }
}

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SummaryRows {
    /// Totals of slab objects; `null`: no slab event was recorded.
    pub slab: Option<BothTotals>,
    /// Totals of pages; `null`: no page event was recorded.
    pub pages: Option<PageTotals>,
    #[serde(skip)]
    shown: SummaryShown,
}

/// Totals of pages with their ranges.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageTotals {
    /// Sums of all pages.
    #[serde(flatten)]
    pub sums: PageSums,
    /// For each total the lowest and highest number that it can be with the lost events; `null`: nothing was lost, or
    /// their number is unknown.
    pub ranges: Option<SummaryRanges>,
}

fn slab(
    analysis: &Analysis,
    basis: &Basis,
    live: [Option<LiveSpan>; 3],
    events: RecordedEvents,
) -> BothTotals {
    let [kmalloc, cache] = Api::ALL.map(|api| sum_of(analysis, Some(api)));
    let [kmalloc_counts, cache_counts] = analysis.balance.counts;
    let (mut all, mut counts) = (kmalloc, kmalloc_counts);
    all += &cache;
    counts += &cache_counts;
    let [both_live, kmalloc_live, cache_live] = live;
    let recorded = RecordedSums::slab(basis, None);
    let both_live = both_live.filter(|_| recorded.lives);
    let raw = &analysis.balance.raw;
    let interface = |api, totals, counts, live: Option<LiveSpan>, section| {
        let recorded = RecordedSums::slab(basis, Some(api));
        let live = live.filter(|_| recorded.lives);
        InterfaceTotals {
            totals: SlabTotals::of(totals, counts, recorded),
            estimated: estimate(analysis, api).map(Estimated::from),
            ranges: ranges(analysis, section),
            live_range: live.map(|live| live.objects),
            bytes_live_range: live.map(|live| live.bytes),
        }
    };
    BothTotals {
        totals: SlabTotals::of(&all, &counts, recorded),
        ranges: ranges(analysis, "slab"),
        live_range: both_live.map(|live| live.objects),
        bytes_live_range: both_live.map(|live| live.bytes),
        kmalloc: interface(Api::Kmalloc, &kmalloc, &kmalloc_counts, kmalloc_live, "slab.kmalloc"),
        cache: interface(Api::Cache, &cache, &cache_counts, cache_live, "slab.cache"),
        raw: RawTotals {
            alloc_events: recorded.allocs.then_some(raw.alloc_events),
            free_events: recorded.frees.then_some(raw.free_events),
            bytes_req: recorded.allocs.then_some(raw.bytes_req),
            bytes_alloc: recorded.allocs.then_some(raw.bytes_alloc),
            ranges: ranges(analysis, "slab.raw"),
        },
        recorded: events,
    }
}

/// Sums that the samples of an interface stand for, if it was sampled.
fn estimate(analysis: &Analysis, api: Api) -> Option<Estimate> {
    let mut sum = None;
    let sites = analysis.interner.sites.items().iter().zip(&analysis.balance.sites);
    for (site, by_cache) in sites.filter(|(site, _)| site.api == api) {
        by_cache.iter().for_each(|(_, totals)| analysis.weights.add(site, totals, &mut sum));
    }
    sum
}

/// Lowest and highest value by name of a total; `null`: no range, or no highest value.
pub type SummaryRanges = BTreeMap<&'static str, Option<(RangeEnd, Option<RangeEnd>)>>;

/// End of a range.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum RangeEnd {
    /// A whole number.
    Whole(u64),
    /// Any other.
    Fraction(f64),
}

impl From<f64> for RangeEnd {
    fn from(x: f64) -> Self {
        if x.fract() == 0.0 && x < 1e15 { Self::Whole(x as u64) } else { Self::Fraction(x) }
    }
}

/// Low and high of each total of a section; `None`: nothing was lost, or the number of lost events is unknown.
fn ranges(analysis: &Analysis, section: &str) -> Option<SummaryRanges> {
    let ranges = analysis.ranges.as_ref()?;
    let of_section = ranges.iter().filter(|((s, _), _)| *s == section);
    let ends = |range: Range| (range.low.into(), range.high.map(RangeEnd::from));
    Some(of_section.map(|((_, name), range)| (*name, range.map(ends))).collect())
}
