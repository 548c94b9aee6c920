//! Sums by size class, and by requested size in it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::ledger::totals::Totals;
use crate::pass::weights::{Estimate, in_order};
use crate::pass::{Analysis, sum_of};
use crate::reports::common::ReportContext;
use crate::reports::common::recorded_sums::RecordedSums;
use crate::reports::common::rows::{Estimated, SlabSums};
use crate::reports::common::sorting::{SortKey, sort_rows};
use crate::stream::Api;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SizeRows {
    /// Number of size classes.
    pub sizes_total: usize,
    /// Size classes.
    pub sizes: Vec<SizeRow>,
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

/// Rows of all size classes.
pub fn compute(context: &ReportContext<'_, '_>, sort: &[SortKey]) -> SizeRows {
    let analysis = context.analysis;
    let mut all = classes(analysis);
    let number = |class: &Class, key: SortKey| key.number(&in_order(class.estimate, class.totals));
    sort_rows(&mut all, sort, number, |a, b| a.bytes_alloc.cmp(&b.bytes_alloc));
    let recorded = RecordedSums::slab(context.basis(), Some(Api::Kmalloc));
    let request =
        |(size, totals): &(u64, Totals)| RequestRow { sums: SlabSums::of(totals, recorded), size: *size };
    let row = |class: &Class| SizeRow {
        sums: SlabSums::of(&class.totals, recorded),
        estimated: class.estimate.map(Estimated::from),
        size_class: class.bytes_alloc,
        requests: class.requests.iter().map(request).collect(),
    };
    SizeRows { sizes_total: all.len(), sizes: all.iter().take(context.limit).map(row).collect() }
}

/// Sums over all size classes.
pub fn all(context: &ReportContext<'_, '_>) -> SlabSums {
    let sum = sum_of(context.analysis, Some(Api::Kmalloc));
    SlabSums::of(&sum, RecordedSums::slab(context.basis(), Some(Api::Kmalloc)))
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
        requests.sort_by_key(|(size, t)| (std::cmp::Reverse(t.bytes_wasted()), *size));
        let estimate = estimates.get(&bytes_alloc).copied().flatten();
        Class { bytes_alloc, totals, estimate, requests }
    };
    classes.into_iter().map(class).filter(|class| class.totals != Totals::default()).collect()
}
