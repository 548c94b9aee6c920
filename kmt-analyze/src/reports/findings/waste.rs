//! Memory that kmalloc hands out beyond the requested sizes.

use std::collections::BTreeMap;

use super::Sources;
use super::finding::Finding;
use crate::render::screen::function_of;
use crate::render::words::share;
use crate::reports::common::View;

/// Rule of a finding of waste.
const THRESHOLD: &str = "kmalloc wastes at least 10 % of the bytes that it hands out, and at least 64 KiB, without the allocations of the recorder";

/// Smallest share of kmalloc's bytes, in percent.
const PERCENT_MIN: u64 = 10;

/// Fewest bytes.
const BYTES_MIN: u64 = 64 << 10;

/// The finding, where kmalloc's allocations were recorded. The recorder reads statistics into buffers of which half is
/// wasted: on an idle system it would be the finding.
pub fn of(sources: &Sources, view: &View) -> Option<Finding> {
    let kmalloc = &sources.summary.slab.as_ref()?.kmalloc.totals;
    let own = sources.recorder.values();
    let (own_wasted, own_alloc) = own.fold((0, 0), |sum, own| (sum.0 + own.wasted, sum.1 + own.alloc));
    let wasted = kmalloc.bytes_wasted?.saturating_sub(own_wasted);
    let alloc = kmalloc.bytes_alloc?.saturating_sub(own_alloc);
    if wasted < BYTES_MIN || wasted.saturating_mul(100) < alloc.saturating_mul(PERCENT_MIN) {
        return None;
    }
    let most = most(sources);
    let finding = Finding::new("waste", THRESHOLD, "callers --sort wasted", view, |view| {
        let by = most.as_ref().map_or(String::new(), |(function, bytes)| {
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

/// The function that wastes most, by all its call sites, and its bytes.
fn most(sources: &Sources) -> Option<(String, u64)> {
    let mut functions: BTreeMap<String, u64> = BTreeMap::new();
    let rows = sources.callers.iter().flat_map(|rows| &rows.callers).filter(|row| row.api == "kmalloc");
    for row in rows {
        let own = sources.recorder.get(&row.call_site.0).map_or(0, |own| own.wasted);
        let wasted = row.sums.bytes_wasted.unwrap_or(0).saturating_sub(own);
        let sum = functions.entry(function_of(&row.symbol)).or_default();
        *sum = sum.saturating_add(wasted);
    }
    // Of equal ones the first by name.
    functions.into_iter().rev().max_by_key(|(_, bytes)| *bytes).filter(|(_, bytes)| *bytes > 0)
}
