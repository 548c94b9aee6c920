//! Totals of slab objects and pages, with their ranges.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use kmt_format::schema::Meaning;
use serde::Serialize;

use super::ranges::{SummaryRanges, ranges};
use super::slab::{BothTotals, InterfaceTotals, RawTotals, RecordedEvents, SlabTotals};
use crate::collect::sums::Sums;
use crate::ledger::totals::Totals;
use crate::pass::coverage::bounds::LiveSpan;
use crate::pass::weights::Estimate;
use crate::pass::{Analysis, sum_of};
use crate::render::text::escaped;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Basis;
use crate::reports::common::page_sums::PageSums;
use crate::reports::common::recorded_sums::RecordedSums;
use crate::reports::common::rows::Estimated;
use crate::stream::Api;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SummaryRows {
    /// Totals of slab objects; `null`: no slab event was recorded.
    pub slab: Option<BothTotals>,
    /// Totals of pages; `null`: no page event was recorded.
    pub pages: Option<PageTotals>,
    /// Other numbers of objects than the live figures can be live, of any interface or of both together.
    #[serde(skip)]
    pub is_bounded: bool,
    /// Sums of all events, where events were sampled.
    #[serde(skip)]
    pub estimated: Option<Estimated>,
    /// Call site with most live bytes; `None`: live bytes are unknown, or there are none.
    #[serde(skip)]
    pub largest: Option<Largest>,
    /// Ranges that the text shows.
    #[serde(skip)]
    pub shown_ranges: Option<Vec<ShownRange>>,
}

/// Call site with most live bytes.
#[derive(Debug)]
pub struct Largest {
    /// Function and offset, or the address.
    pub name: String,
    /// Its live bytes.
    pub bytes: u64,
}

/// Range of a total with the lost events.
#[derive(Debug)]
pub struct ShownRange {
    /// The total.
    pub total: Total,
    /// Its lowest number.
    pub low: u64,
    /// Its highest number.
    pub high: u64,
}

/// Total with a range on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Total {
    /// Name for people.
    pub title: &'static str,
    /// Section of the JSON.
    section: &'static str,
    /// Key in it.
    name: &'static str,
    /// It is a size in bytes.
    pub is_bytes: bool,
}

impl Total {
    /// Live bytes of slab objects.
    pub const LIVE: Self = Self::bytes("slab: live bytes", "slab", "bytes_live");

    const fn bytes(title: &'static str, section: &'static str, name: &'static str) -> Self {
        Self { title, section, name, is_bytes: true }
    }

    const fn count(title: &'static str, section: &'static str, name: &'static str) -> Self {
        Self { title, section, name, is_bytes: false }
    }
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

/// Totals with a range on the screen; the JSON has all.
const SHOWN: [Total; 12] = [
    Total::count("slab: allocs", "slab", "alloc_events"),
    Total::bytes("slab: requested", "slab", "bytes_req"),
    Total::bytes("slab: allocated", "slab", "bytes_alloc"),
    Total::bytes("slab: allocated by kmalloc", "slab.kmalloc", "bytes_alloc"),
    Total::bytes("slab: allocated from caches", "slab.cache", "bytes_alloc"),
    Total::count("slab: frees", "slab", "free_events"),
    Total::count("slab: frees of traced allocations", "slab", "frees_matched"),
    Total::bytes("slab: freed", "slab", "bytes_freed"),
    Total::LIVE,
    Total::count("slab: implied frees", "slab", "freed_unseen"),
    Total::bytes("pages: allocated", "pages", "bytes_alloc"),
    Total::bytes("pages: live bytes", "pages", "bytes_live"),
];

/// Totals of a trace.
pub fn of(context: &ReportContext<'_, '_>) -> SummaryRows {
    let analysis = context.analysis;
    let basis = context.basis();
    let events = recorded_events(context);
    let bounds = &context.live_bounds().bounds;
    let live = [None, Some(Api::Kmalloc), Some(Api::Cache)].map(|api| bounds.of_api(api));
    let totals = [None, Some(Api::Kmalloc), Some(Api::Cache)].map(|api| sum_of(analysis, api));
    let is_bounded = totals
        .iter()
        .zip(&live)
        .any(|(totals, live)| live.is_some_and(|live| live.objects[1] != totals.live));
    let has_slab = events.named().iter().any(|(_, recorded)| *recorded == Some(true));
    let has_pages = [Meaning::PAGE_ALLOC, Meaning::PAGE_FREE]
        .into_iter()
        .any(|meaning| context.recorded(meaning) == Some(true));
    let pages = || PageTotals {
        sums: PageSums::of(analysis, RecordedSums::pages(basis)),
        ranges: ranges(analysis, "pages"),
    };
    let shown = |total: Total| {
        let range = analysis.ranges.as_ref()?.get(&(total.section, total.name)).copied().flatten()?;
        Some(ShownRange { total, low: range.low as u64, high: range.high as u64 })
    };
    SummaryRows {
        slab: has_slab.then(|| slab(analysis, basis, live, events)),
        pages: has_pages.then(pages),
        is_bounded,
        estimated: estimated_total(analysis, totals),
        largest: largest(context).filter(|_| RecordedSums::slab(basis, None).lives),
        shown_ranges: analysis.ranges.as_ref().map(|_| SHOWN.into_iter().filter_map(shown).collect()),
    }
}

/// Sums of both interfaces: estimates of those that were sampled, and the numbers of the others.
fn estimated_total(analysis: &Analysis, [_, kmalloc, cache]: [Totals; 3]) -> Option<Estimated> {
    let exact = |totals: &Totals| Estimated {
        alloc_events: totals.alloc_events,
        bytes_req: totals.bytes_req,
        bytes_alloc: totals.bytes_alloc,
        bytes_wasted: totals.bytes_wasted(),
    };
    let of = |api, totals| (estimate(analysis, api).map(Estimated::from), exact(totals));
    let ((kmalloc, of_kmalloc), (cache, of_cache)) = (of(Api::Kmalloc, &kmalloc), of(Api::Cache, &cache));
    kmalloc.or(cache)?;
    let mut sum = kmalloc.unwrap_or(of_kmalloc);
    sum.absorb(cache.unwrap_or(of_cache));
    Some(sum)
}

/// The call site with most live bytes; ties go to the lowest address.
fn largest(context: &ReportContext<'_, '_>) -> Option<Largest> {
    let (session, analysis) = (context.session, context.analysis);
    let mut live: BTreeMap<u64, u64> = BTreeMap::new();
    for (site, by_cache) in analysis.interner.sites.items().iter().zip(&analysis.balance.sites) {
        let bytes = by_cache.iter().fold(0u64, |sum, (_, totals)| sum.saturating_add(totals.bytes_live));
        let sum = live.entry(site.call_site).or_default();
        *sum = sum.saturating_add(bytes);
    }
    let (address, bytes) = live.into_iter().max_by_key(|&(address, bytes)| (bytes, Reverse(address)))?;
    let name = escaped(&session.print_env().symbol_with_offset(address));
    (bytes > 0).then_some(Largest { name, bytes })
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

fn recorded_events(context: &ReportContext<'_, '_>) -> RecordedEvents {
    let of = |meaning| context.recorded(meaning);
    RecordedEvents {
        kmalloc: of(Meaning::KMALLOC),
        kfree: of(Meaning::KFREE),
        kmem_cache_alloc: of(Meaning::CACHE_ALLOC),
        kmem_cache_free: of(Meaning::CACHE_FREE),
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
