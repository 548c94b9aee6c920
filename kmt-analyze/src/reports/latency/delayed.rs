//! Allocations that waited.

use serde::Serialize;

use super::stall_names::{StallNames, key};
use crate::collect::stalls::{Delayed, Waits};
use crate::pass::Analysis;
use crate::render::words::escaped;
use crate::reports::common::rows::Address;

/// Allocations of one kind that waited.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DelayedAllocation {
    /// Stall that they waited for, as in `kinds`.
    pub kind: &'static str,
    /// log2 of the pages of an allocation.
    pub order: u8,
    /// Requested migrate type.
    pub migratetype: String,
    /// Allocation flags.
    pub gfp_flags: u64,
    /// Names of the allocation flags.
    pub gfp_flags_text: String,
    /// Call site of the slab allocation that needed the pages; `null`: none found.
    pub call_site: Option<Address>,
    /// Function and offset of that call site.
    pub symbol: Option<String>,
    /// They failed after the wait.
    pub failed: bool,
    /// Number of waits.
    pub count: u64,
    /// Sum of their waits, in the clock's unit.
    pub total: u64,
    /// Longest wait, in the clock's unit.
    pub max: u64,
}

/// Allocations that waited, the longest waits first, at most `limit`; and the number of all.
pub fn compute(
    names: &StallNames<'_, '_, '_>,
    analysis: &Analysis,
    limit: usize,
) -> (Vec<DelayedAllocation>, usize) {
    let mut all: Vec<(Delayed, Waits)> = names.stalls.delayed.iter().map(|(d, w)| (*d, *w)).collect();
    all.sort_by_key(|(delayed, waits)| (std::cmp::Reverse(waits.total), *delayed));
    let interner = &analysis.interner;
    let row = |(delayed, waits): &(Delayed, Waits)| {
        let pages = interner.pages.get(delayed.page_site).copied().unwrap_or_default();
        let slab = delayed.slab_site.and_then(|site| interner.sites.get(site));
        DelayedAllocation {
            kind: key(delayed.stall),
            order: pages.order,
            migratetype: analysis.migratetypes.name(pages.migratetype),
            gfp_flags: pages.gfp_flags,
            gfp_flags_text: escaped(&interner.gfp_text(pages.gfp_flags)),
            call_site: slab.map(|site| Address(site.call_site)),
            symbol: slab.map(|site| names.labels.symbol(site.call_site)),
            failed: delayed.failed,
            count: waits.count,
            total: waits.total,
            max: waits.max,
        }
    };
    (all.iter().take(limit).map(row).collect(), all.len())
}
