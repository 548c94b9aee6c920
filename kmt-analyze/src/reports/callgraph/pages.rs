//! Pages by call stack.

use crate::collect::calls::CallSums;
use crate::collect::page_groups::PageGroupSums;
use crate::ledger::frames::NO_STACK;

/// Sums of pages by stack; what is live is counted in pages.
pub fn calls(groups: &PageGroupSums, page_size: u64) -> CallSums {
    let mut out = CallSums::default();
    for (group, totals) in groups.0.iter().filter(|(_, totals)| !totals.has_no_pages()) {
        let sums = match group.stack {
            NO_STACK => &mut out.without,
            stack => out.stacks.entry(stack).or_default(),
        };
        let bytes = |pages: u64| pages.saturating_mul(page_size);
        sums.allocs = sums.allocs.saturating_add(totals.alloc_events);
        sums.bytes_alloc = sums.bytes_alloc.saturating_add(bytes(totals.frames_alloc));
        sums.live = sums.live.saturating_add(totals.frames_live);
        sums.bytes_live = sums.bytes_live.saturating_add(bytes(totals.frames_live));
    }
    out
}
