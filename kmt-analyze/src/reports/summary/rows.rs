//! Totals of slab objects and pages, with their ranges.

use kmt_format::schema::Meaning;
use serde::Serialize;

use super::ranges::{Ranges, ranges};
use super::slab::{BothTotals, InterfaceTotals, RawTotals, RecordedEvents, SlabTotals};
use crate::pass::coverage::bounds::Live;
use crate::pass::weights::Estimate;
use crate::pass::{Analysis, sum_of};
use crate::reports::common::Context;
use crate::reports::common::basis::Basis;
use crate::reports::common::known::Known;
use crate::reports::common::live_bounds::LiveBounds;
use crate::reports::common::page_sums::PageSums;
use crate::reports::common::recorded::recorded;
use crate::reports::common::rows::Estimated;
use crate::stream::Api;
use crate::trace::session::Session;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SummaryRows {
    /// Totals of slab objects; `null`: no slab event was recorded.
    pub slab: Option<BothTotals>,
    /// Totals of pages; `null`: no page event was recorded.
    pub pages: Option<PageTotals>,
    /// Any interface can have more live objects than its events say, or both together.
    #[serde(skip)]
    pub is_bounded: bool,
    /// Ranges that the text shows: title, low, high.
    #[serde(skip)]
    pub shown_ranges: Option<Vec<(&'static str, u64, u64)>>,
}

/// Totals of pages with their ranges.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageTotals {
    /// Sums of all pages.
    #[serde(flatten)]
    pub sums: PageSums,
    /// For each total the lowest and highest number that it can be with the lost events; `null`: nothing was lost, or
    /// nobody knows how much.
    pub ranges: Option<Ranges>,
}

/// Title, section and name of the totals whose ranges the text shows; the JSON has all.
const SHOWN: [(&str, &str, &str); 12] = [
    ("allocations", "slab", "alloc_events"),
    ("  bytes requested", "slab", "bytes_req"),
    ("  bytes allocated", "slab", "bytes_alloc"),
    ("    by kmalloc", "slab.kmalloc", "bytes_alloc"),
    ("    from caches", "slab.cache", "bytes_alloc"),
    ("frees", "slab", "free_events"),
    ("  matched", "slab", "frees_matched"),
    ("  bytes freed", "slab", "bytes_freed"),
    ("bytes live at the end", "slab", "bytes_live"),
    ("freed unseen", "slab", "freed_unseen"),
    ("bytes of pages allocated", "pages", "bytes_alloc"),
    ("bytes of pages live", "pages", "bytes_live"),
];

/// Totals of a trace.
pub fn of(context: &Context<'_, '_>, analysis: &Analysis) -> SummaryRows {
    let session = context.session;
    let basis = Basis::of(session, analysis);
    let events = recorded_events(session, analysis);
    let bounds = LiveBounds::of(context, analysis).bounds;
    let live = [None, Some(Api::Kmalloc), Some(Api::Cache)].map(|api| bounds.of_api(api));
    let totals = [None, Some(Api::Kmalloc), Some(Api::Cache)].map(|api| sum_of(analysis, api));
    let is_bounded = totals
        .iter()
        .zip(&live)
        .any(|(totals, live)| live.is_some_and(|live| live.objects[1] != totals.live));
    let has_slab = events.named().iter().any(|(_, recorded)| *recorded == Some(true));
    let has_pages = [Meaning::PAGE_ALLOC, Meaning::PAGE_FREE]
        .into_iter()
        .any(|meaning| recorded(session, analysis, meaning) == Some(true));
    let pages = || PageTotals {
        sums: PageSums::of(analysis, Known::pages(&basis)),
        ranges: ranges(analysis, "pages"),
    };
    let shown = |(title, section, name): &(&'static str, &'static str, &'static str)| {
        let range = analysis.ranges.as_ref()?.get(&(*section, *name)).copied().flatten()?;
        Some((*title, range.low as u64, range.high as u64))
    };
    SummaryRows {
        slab: has_slab.then(|| slab(analysis, &basis, live, events)),
        pages: has_pages.then(pages),
        is_bounded,
        shown_ranges: analysis.ranges.as_ref().map(|_| SHOWN.iter().filter_map(shown).collect()),
    }
}

fn slab(analysis: &Analysis, basis: &Basis, live: [Option<Live>; 3], recorded: RecordedEvents) -> BothTotals {
    let [kmalloc, cache] = Api::ALL.map(|api| sum_of(analysis, Some(api)));
    let [kmalloc_counts, cache_counts] = analysis.balance.counts;
    let (mut all, mut counts) = (kmalloc, kmalloc_counts);
    all += &cache;
    counts += &cache_counts;
    let [both_live, kmalloc_live, cache_live] = live;
    let known = Known::slab(basis, None);
    let both_live = both_live.filter(|_| known.lives);
    let raw = &analysis.balance.raw;
    let interface = |api, totals, counts, live: Option<Live>, section| {
        let known = Known::slab(basis, Some(api));
        let live = live.filter(|_| known.lives);
        InterfaceTotals {
            totals: SlabTotals::of(totals, counts, known),
            estimated: estimate(analysis, api).map(Estimated::from),
            ranges: ranges(analysis, section),
            live_range: live.map(|live| live.objects),
            bytes_live_range: live.map(|live| live.bytes),
        }
    };
    BothTotals {
        totals: SlabTotals::of(&all, &counts, known),
        ranges: ranges(analysis, "slab"),
        live_range: both_live.map(|live| live.objects),
        bytes_live_range: both_live.map(|live| live.bytes),
        kmalloc: interface(Api::Kmalloc, &kmalloc, &kmalloc_counts, kmalloc_live, "slab.kmalloc"),
        cache: interface(Api::Cache, &cache, &cache_counts, cache_live, "slab.cache"),
        raw: RawTotals {
            alloc_events: known.allocs.then_some(raw.alloc_events),
            free_events: known.frees.then_some(raw.free_events),
            bytes_req: known.allocs.then_some(raw.bytes_req),
            bytes_alloc: known.allocs.then_some(raw.bytes_alloc),
            ranges: ranges(analysis, "slab.raw"),
        },
        recorded,
    }
}

fn recorded_events(session: &Session<'_>, analysis: &Analysis) -> RecordedEvents {
    let of = |meaning| recorded(session, analysis, meaning);
    RecordedEvents {
        kmalloc: of(Meaning::KMALLOC),
        kfree: of(Meaning::KFREE),
        kmem_cache_alloc: of(Meaning::CACHE_ALLOC),
        kmem_cache_free: of(Meaning::CACHE_FREE),
    }
}

/// Sums that the samples of an interface stand for, where it was sampled.
fn estimate(analysis: &Analysis, api: Api) -> Option<Estimate> {
    let mut sum = None;
    let sites = analysis.interner.sites.items().iter().zip(&analysis.balance.sites);
    for (site, by_cache) in sites.filter(|(site, _)| site.api == api) {
        by_cache.iter().for_each(|(_, totals)| analysis.weights.add(site, totals, &mut sum));
    }
    sum
}
