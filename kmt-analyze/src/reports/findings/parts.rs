//! Parts of the kernel whose code allocated most slab memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::reports::common::ReportContext;
use crate::reports::summary::SummaryRows;

/// Parts on the first screen.
const PARTS: usize = 3;

/// Slab memory by part of the kernel, the largest first.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Parts {
    /// True if the bytes are those still allocated; false: lives are not recorded, and they are all that was allocated.
    pub is_live: bool,
    /// Bytes of all parts, and those that are unknown.
    pub bytes_total: u64,
    /// Bytes of call sites whose part is unknown.
    pub bytes_unknown: u64,
    /// Three at most.
    pub largest: Vec<Part>,
}

/// One part.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Part {
    /// Directory of the part in the kernel's source; `~` before it: inferred from names of functions.
    pub subsystem: String,
    /// Bytes of the part.
    pub bytes: u64,
}

/// The parts; `None`: allocations of kmalloc or of caches were not recorded, or no function has a name.
pub fn compute(context: &ReportContext<'_, '_>, summary: &SummaryRows) -> Option<Parts> {
    let slab = summary.slab.as_ref()?;
    let both = [&slab.kmalloc.totals, &slab.cache.totals];
    if both.iter().any(|totals| totals.bytes_alloc.is_none()) {
        return None;
    }
    let is_live = both.iter().all(|totals| totals.bytes_live.is_some());
    let (analysis, source) = (context.analysis, context.session.source());
    let mut call_sites: BTreeMap<u64, u64> = BTreeMap::new();
    for (site, parts) in analysis.interner.sites.items().iter().zip(&analysis.balance.sites) {
        let of = |totals: &crate::ledger::totals::Totals| {
            if is_live { totals.bytes_live } else { totals.bytes_alloc }
        };
        let bytes = parts.iter().map(|(_, totals)| of(totals)).fold(0, u64::saturating_add);
        let sum = call_sites.entry(site.call_site).or_default();
        *sum = sum.saturating_add(bytes);
    }
    let bytes_total = call_sites.values().copied().fold(0, u64::saturating_add);
    let mut parts: BTreeMap<String, u64> = BTreeMap::new();
    for (address, bytes) in call_sites {
        if let Some(directory) = source.directory(address) {
            let sum = parts.entry(directory.marked(directory.subsystem())).or_default();
            *sum = sum.saturating_add(bytes);
        }
    }
    let known = parts.values().copied().fold(0, u64::saturating_add);
    let mut largest: Vec<Part> = parts
        .into_iter()
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(subsystem, bytes)| Part { subsystem, bytes })
        .collect();
    largest.sort_by_key(|part| Reverse(part.bytes));
    largest.truncate(PARTS);
    (!largest.is_empty()).then_some(Parts {
        is_live,
        bytes_total,
        bytes_unknown: bytes_total.saturating_sub(known),
        largest,
    })
}
