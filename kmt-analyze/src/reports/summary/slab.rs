//! Totals of slab objects, and facts of a trace that the screen shows beside them.
//!
//! Live objects have a lower bound, of caches in which almost all frees have events, and an upper one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::SummaryRanges;
use crate::collect::sums::Sums;
use crate::ledger::totals::{EventCounts, Totals};
use crate::pass::sum_of;
use crate::reports::common::ReportContext;
use crate::reports::common::rows::{Estimated, RecordedSums};
use crate::reports::common::stated::OlderRow;
use crate::stream::Api;

/// Totals of one interface, or of both; `null`: the events of the number were not recorded.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlabTotals {
    /// Successful allocations; duplicate kmalloc events count once.
    pub alloc_events: Option<u64>,
    /// Frees of objects, matched and unmatched; not those of NULL or of zero-size objects.
    pub free_events: Option<u64>,
    /// Allocations that returned NULL; in none of the other numbers.
    pub alloc_failures: Option<u64>,
    /// Bytes requested.
    pub bytes_req: Option<u64>,
    /// Bytes allocated.
    pub bytes_alloc: Option<u64>,
    /// Bytes of the objects that a free event ended.
    pub bytes_freed: Option<u64>,
    /// Bytes of the live objects.
    pub bytes_live: Option<u64>,
    /// bytes_alloc - bytes_req, over all allocations.
    pub bytes_wasted: Option<u64>,
    /// bytes_alloc - bytes_req, over live objects.
    pub bytes_wasted_live: Option<u64>,
    /// 100 x bytes_wasted / bytes_alloc.
    pub internal_fragmentation_percent: Option<f64>,
    /// Objects allocated in the trace and not freed at the end of the window.
    pub live: Option<u64>,
    /// Frees of objects that were allocated in the trace.
    pub frees_matched: Option<u64>,
    /// frees_allocated_before + frees_untraced_birth.
    pub frees_unmatched: Option<u64>,
    /// Frees of objects that were allocated before the trace.
    pub frees_allocated_before: Option<u64>,
    /// Frees without a traced allocation.
    pub frees_untraced_birth: Option<u64>,
    /// Implied frees: the address was allocated again or the page was freed, without a free event.
    pub freed_unseen: Option<u64>,
    /// Bytes of those objects.
    pub bytes_freed_unseen: Option<u64>,
    /// Late free events: logged after the address was allocated again (before 5.19).
    pub late_frees: Option<u64>,
    /// Duplicate kmalloc events: large objects are reported twice (6.10 and later).
    pub double_reports: Option<u64>,
    /// Frees of NULL.
    pub null_frees: Option<u64>,
    /// Frees of zero-size objects, which kmalloc(0) returns.
    pub zero_size_frees: Option<u64>,
    /// Frees on another CPU than the allocation.
    pub cross_cpu_frees: Option<u64>,
    /// Frees by the other API (kmalloc / kmem_cache_free).
    pub mixed_api_frees: Option<u64>,
    /// Objects that cross a loss, or whose free is ambiguous.
    pub uncertain: Option<u64>,
    /// Bytes of live objects that cross a loss, or whose free is ambiguous.
    pub bytes_live_uncertain: Option<u64>,
}

impl SlabTotals {
    /// Totals from sums and counts; `null` where events were not recorded.
    pub fn of(t: &Totals, c: &EventCounts, recorded: RecordedSums) -> Self {
        let alloc = |number: u64| recorded.allocs.then_some(number);
        let free = |number: u64| recorded.frees.then_some(number);
        let life = |number: u64| recorded.lives.then_some(number);
        Self {
            alloc_events: alloc(t.alloc_events),
            free_events: free(t.frees_matched + c.unmatched_frees()),
            alloc_failures: alloc(c.alloc_failures),
            bytes_req: alloc(t.bytes_req),
            bytes_alloc: alloc(t.bytes_alloc),
            bytes_freed: life(t.bytes_freed),
            bytes_live: life(t.bytes_live),
            bytes_wasted: alloc(t.bytes_wasted()),
            bytes_wasted_live: life(t.bytes_wasted_live()),
            internal_fragmentation_percent: recorded.allocs.then(|| t.internal_fragmentation_percent()),
            live: life(t.live),
            frees_matched: life(t.frees_matched),
            frees_unmatched: life(c.unmatched_frees()),
            frees_allocated_before: life(c.allocated_before),
            frees_untraced_birth: life(c.untraced_birth),
            freed_unseen: life(t.implied_frees),
            bytes_freed_unseen: life(t.bytes_freed_implied),
            late_frees: life(c.late_frees),
            double_reports: alloc(c.double_reports),
            null_frees: free(c.null_frees),
            zero_size_frees: free(c.zero_size_frees),
            cross_cpu_frees: life(c.cross_cpu_frees),
            mixed_api_frees: life(c.mixed_api_frees),
            uncertain: life(t.uncertain),
            bytes_live_uncertain: life(t.bytes_live_uncertain),
        }
    }
}

/// Totals of one interface.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InterfaceTotals {
    /// Totals of the interface.
    #[serde(flatten)]
    pub totals: SlabTotals,
    /// Sums that its samples represent; `null`: no sample represents more than one event.
    pub estimated: Option<Estimated>,
    /// For each total the lowest and highest number that it can be with the lost events; `null`: nothing was lost, or
    /// the number of lost events is unknown.
    pub ranges: Option<SummaryRanges>,
    /// Objects live at the end: at least, at most.
    pub live_range: Option<[u64; 2]>,
    /// Bytes live at the end: at least, at most.
    pub bytes_live_range: Option<[u64; 2]>,
}

/// Totals of both interfaces.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BothTotals {
    /// The totals.
    #[serde(flatten)]
    pub totals: SlabTotals,
    /// For each total the lowest and highest number that it can be with the lost events; `null`: nothing was lost, or
    /// the number of lost events is unknown.
    pub ranges: Option<SummaryRanges>,
    /// Objects live at the end: at least, at most.
    pub live_range: Option<[u64; 2]>,
    /// Bytes live at the end: at least, at most.
    pub bytes_live_range: Option<[u64; 2]>,
    /// Of kmalloc.
    pub kmalloc: InterfaceTotals,
    /// Of caches.
    pub cache: InterfaceTotals,
    /// Plain sums over events.
    pub raw: RawTotals,
    /// Slab events that were recorded.
    pub recorded: RecordedEvents,
}

/// Plain sums over slab events.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RawTotals {
    /// Allocations.
    pub alloc_events: Option<u64>,
    /// Frees.
    pub free_events: Option<u64>,
    /// Bytes requested.
    pub bytes_req: Option<u64>,
    /// Bytes allocated.
    pub bytes_alloc: Option<u64>,
    /// Lowest and highest value of each total, including the lost events.
    pub ranges: Option<SummaryRanges>,
}

/// Slab events: `true` if they were recorded; `null`: unknown, and the file has none.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RecordedEvents {
    /// kmem:kmalloc.
    pub kmalloc: Option<bool>,
    /// kmem:kfree.
    pub kfree: Option<bool>,
    /// kmem:kmem_cache_alloc.
    pub kmem_cache_alloc: Option<bool>,
    /// kmem:kmem_cache_free.
    pub kmem_cache_free: Option<bool>,
}

/// Facts that only the screen has.
#[derive(Debug)]
pub struct SummaryShown {
    /// Ranges of totals; `None`: nothing was lost, or the number of lost events is unknown.
    pub ranges: Option<Vec<ShownRange>>,
    /// Other numbers of objects than the live figures can be live, of any interface or of both together.
    pub is_bounded: bool,
    /// Objects and pages older than the window; `None`: no window is selected.
    pub older: Option<OlderRow>,
    /// The call site with most live bytes, and these; ties go to the lowest address.
    pub largest: Option<(String, u64)>,
}

impl SummaryShown {
    /// Those of a trace.
    pub fn of(context: &ReportContext<'_, '_>) -> Self {
        let bounds = &context.live_bounds().bounds;
        let is_bounded = |api| {
            bounds.of_api(api).is_some_and(|live| live.objects[1] != sum_of(context.analysis, api).live)
        };
        Self {
            ranges: ranges(context),
            is_bounded: [None, Some(Api::Kmalloc), Some(Api::Cache)].into_iter().any(is_bounded),
            older: OlderRow::of(context),
            largest: largest(context).filter(|_| RecordedSums::slab(context.basis(), None).lives),
        }
    }
}

/// Range of a total with the lost events.
#[derive(Debug)]
pub struct ShownRange {
    /// Name of the total for people.
    pub title: &'static str,
    /// It is a size in bytes.
    pub is_bytes: bool,
    /// Lowest value of the total.
    pub low: u64,
    /// Highest value of the total; `None`: nothing bounds it.
    pub high: Option<u64>,
}

/// Live bytes of slab objects.
pub const LIVE: &str = "slab: live bytes";

/// Totals with a range on the screen, by section and key of the JSON, which has all.
const SHOWN: [(&str, &str, &str); 12] = [
    ("slab: allocs", "slab", "alloc_events"),
    ("slab: requested", "slab", "bytes_req"),
    ("slab: allocated", "slab", "bytes_alloc"),
    ("slab: allocated by kmalloc", "slab.kmalloc", "bytes_alloc"),
    ("slab: allocated from caches", "slab.cache", "bytes_alloc"),
    ("slab: frees", "slab", "free_events"),
    ("slab: frees of traced allocations", "slab", "frees_matched"),
    ("slab: freed", "slab", "bytes_freed"),
    (LIVE, "slab", "bytes_live"),
    ("slab: implied frees", "slab", "freed_unseen"),
    ("pages: allocated", "pages", "bytes_alloc"),
    ("pages: live bytes", "pages", "bytes_live"),
];

fn ranges(context: &ReportContext<'_, '_>) -> Option<Vec<ShownRange>> {
    let ranges = context.analysis.ranges.as_ref()?;
    let shown = |(title, section, name): (&'static str, &'static str, &'static str)| {
        let range = ranges.get(&(section, name)).copied().flatten()?;
        let is_bytes = name.starts_with("bytes_");
        Some(ShownRange { title, is_bytes, low: range.low as u64, high: range.high.map(|high| high as u64) })
    };
    Some(SHOWN.into_iter().filter_map(shown).collect())
}

/// Sums of both interfaces: estimates of those that were sampled, and the numbers of the others; `None`: neither was.
pub fn estimated(slab: &BothTotals) -> Option<Estimated> {
    let exact = |InterfaceTotals { totals, .. }: &InterfaceTotals| Estimated {
        alloc_events: totals.alloc_events.unwrap_or(0),
        bytes_req: totals.bytes_req.unwrap_or(0),
        bytes_alloc: totals.bytes_alloc.unwrap_or(0),
    };
    let (kmalloc, cache) = (&slab.kmalloc, &slab.cache);
    kmalloc.estimated.or(cache.estimated)?;
    let mut sum = kmalloc.estimated.unwrap_or_else(|| exact(kmalloc));
    sum.absorb(cache.estimated.unwrap_or_else(|| exact(cache)));
    Some(sum)
}

fn largest(context: &ReportContext<'_, '_>) -> Option<(String, u64)> {
    let analysis = context.analysis;
    let mut live: BTreeMap<u64, u64> = BTreeMap::new();
    for (site, by_cache) in analysis.interner.sites.items().iter().zip(&analysis.balance.sites) {
        let bytes = by_cache.iter().fold(0u64, |sum, (_, totals)| sum.saturating_add(totals.bytes_live));
        let sum = live.entry(site.call_site).or_default();
        *sum = sum.saturating_add(bytes);
    }
    let (address, bytes) = live.into_iter().max_by_key(|&(address, bytes)| (bytes, Reverse(address)))?;
    let name = context.symbols().shown(address);
    (bytes > 0).then_some((name, bytes))
}
