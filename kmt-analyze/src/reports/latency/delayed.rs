//! Allocations that had to wait.

use serde::Serialize;

use super::stall_names::{StallNames, key};
use crate::collect::stalls::{Delayed, Waits};
use crate::pass::Analysis;
use crate::pass::filter::Names;
use crate::render::text::escaped;
use crate::reports::common::rows::Address;

/// Allocations of one kind that had to wait.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DelayedAllocation {
    /// The stall that they waited for, as in `kinds`.
    pub kind: &'static str,
    /// log2 of their pages.
    pub order: u8,
    /// Migrate type that was asked for.
    pub migratetype: String,
    /// Allocation flags.
    pub gfp_flags: u64,
    /// Their names.
    pub gfp_flags_text: String,
    /// Site of the slab allocation that the pages were for; `null`: of none.
    pub call_site: Option<Address>,
    /// Its function and offset.
    pub symbol: Option<String>,
    /// They failed after all.
    pub failed: bool,
    /// How many.
    pub count: u64,
    /// Time that they waited, all together, in the clock's unit.
    pub total: u64,
    /// Longest wait, in the clock's unit.
    pub max: u64,
    /// The stall for people.
    #[serde(skip)]
    pub name: String,
}

/// Allocations that waited, those that waited longest first, `limit` of them; and how many there are.
pub fn of(
    names: &StallNames<'_, '_, '_>,
    texts: &dyn Names,
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
            migratetype: texts.migratetype(pages.migratetype),
            gfp_flags: pages.gfp_flags,
            gfp_flags_text: escaped(&texts.gfp(interner, pages.gfp_flags)),
            call_site: slab.map(|site| Address(site.call_site)),
            symbol: slab.map(|site| names.labels.symbol(site.call_site)),
            failed: delayed.failed,
            count: waits.count,
            total: waits.total,
            max: waits.max,
            name: names.name(delayed.stall),
        }
    };
    (all.iter().take(limit).map(row).collect(), all.len())
}
