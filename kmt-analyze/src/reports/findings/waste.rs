//! Memory that kmalloc hands out beyond the requested sizes.

use std::collections::{BTreeMap, HashMap};

use super::Sources;
use super::finding::Finding;
use crate::collect::tasks::Kmalloc;
use crate::render::words::share;
use crate::reports::common::{ReportContext, View};
use crate::stream::Api;

/// Rule of a finding of waste.
const THRESHOLD: &str = "kmalloc wastes at least 10 % of the bytes that it hands out, and at least 64 KiB, without the allocations of the recorder";

/// Smallest share of kmalloc's bytes, in percent.
const PERCENT_MIN: u64 = 10;

/// Fewest bytes.
const BYTES_MIN: u64 = 64 << 10;

/// The finding, where kmalloc's allocations were recorded. The recorder reads statistics into buffers of which half is
/// wasted: on an idle system it would be the finding.
pub fn compute(sources: &Sources, view: &View) -> Option<Finding> {
    let kmalloc = &sources.summary.slab.as_ref()?.kmalloc.totals;
    let own = sources.recorder.values();
    let (own_wasted, own_alloc) = own.fold((0, 0), |sum, own| (sum.0 + own.wasted, sum.1 + own.alloc));
    let wasted = kmalloc.bytes_wasted?.saturating_sub(own_wasted);
    let alloc = kmalloc.bytes_alloc?.saturating_sub(own_alloc);
    if wasted < BYTES_MIN || wasted.saturating_mul(100) < alloc.saturating_mul(PERCENT_MIN) {
        return None;
    }
    // The command shows what the sentence counts.
    let command = match own_alloc {
        0 => "callers --sort wasted",
        _ => "callers --sort wasted --without-recorder",
    };
    let finding = Finding::new("waste", THRESHOLD, command, view, |view| {
        let by = sources.most_wasting.as_ref().map_or(String::new(), |(function, bytes)| {
            format!(", {} of that by {function}", share(*bytes, wasted))
        });
        format!(
            "{} of what kmalloc hands out is wasted ({} of {}){by}.",
            share(wasted, alloc),
            view.bytes(wasted),
            view.bytes(alloc)
        )
    });
    Some(Finding { bytes: Some(wasted), ..finding }.share(wasted, alloc, "bytes allocated by kmalloc"))
}

/// The function whose calls of kmalloc waste most, without those of the recorder, and its bytes.
pub fn most(context: &ReportContext<'_, '_>, recorder: &HashMap<u64, Kmalloc>) -> Option<(String, u64)> {
    let analysis = context.analysis;
    let mut call_sites: BTreeMap<u64, u64> = BTreeMap::new();
    let sites = analysis.interner.sites.items().iter().zip(&analysis.balance.sites);
    for (site, parts) in sites.filter(|(site, _)| site.api == Api::Kmalloc) {
        let wasted = parts.iter().map(|(_, totals)| totals.bytes_wasted()).fold(0, u64::saturating_add);
        let sum = call_sites.entry(site.call_site).or_default();
        *sum = sum.saturating_add(wasted);
    }
    let mut functions: BTreeMap<String, u64> = BTreeMap::new();
    for (address, wasted) in call_sites {
        let own = recorder.get(&address).map_or(0, |own| own.wasted);
        let sum = functions.entry(context.labels().function(address)).or_default();
        *sum = sum.saturating_add(wasted.saturating_sub(own));
    }
    // Of equal ones the first by name.
    functions.into_iter().rev().max_by_key(|(_, bytes)| *bytes).filter(|(_, bytes)| *bytes > 0)
}
