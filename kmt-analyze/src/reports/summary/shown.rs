//! What the screen shows of a trace beside the rows.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::slab::{BothTotals, InterfaceTotals};
use crate::collect::sums::Sums;
use crate::pass::sum_of;
use crate::reports::common::ReportContext;
use crate::reports::common::rows::Estimated;
use crate::stream::Api;

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

/// Ranges that the screen shows; `None`: nothing was lost, or the number of lost events is unknown.
pub fn ranges(context: &ReportContext<'_, '_>) -> Option<Vec<ShownRange>> {
    let ranges = context.analysis.ranges.as_ref()?;
    let shown = |(title, section, name): (&'static str, &'static str, &'static str)| {
        let range = ranges.get(&(section, name)).copied().flatten()?;
        let is_bytes = name.starts_with("bytes_");
        Some(ShownRange { title, is_bytes, low: range.low as u64, high: range.high.map(|high| high as u64) })
    };
    Some(SHOWN.into_iter().filter_map(shown).collect())
}

/// True if other numbers of objects than the live figures can be live, of any interface or of both together.
pub fn is_bounded(context: &ReportContext<'_, '_>) -> bool {
    let bounds = &context.live_bounds().bounds;
    [None, Some(Api::Kmalloc), Some(Api::Cache)].into_iter().any(|api| {
        bounds.of_api(api).is_some_and(|live| live.objects[1] != sum_of(context.analysis, api).live)
    })
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

/// The call site with most live bytes, and these; ties go to the lowest address.
pub fn largest(context: &ReportContext<'_, '_>) -> Option<(String, u64)> {
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
