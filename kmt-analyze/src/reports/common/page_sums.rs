//! Sums and counts of all pages, and callers of the page allocator.
//!
//! A caller is the first function in a call stack outside of the allocator. Several reports show pages by it.

pub use kmt_common::allocators::is_allocator;

use serde::Serialize;

use super::rows::{FrameSums, RecordedSums};
use crate::ledger::totals::FrameTotals;
use crate::pass::Analysis;
use crate::trace::names::Symbolizer;

/// Sums and counts of all pages; frames are pages of the target's size. `null`: the events of the number were not
/// recorded.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageSums {
    /// Sums over allocations.
    #[serde(flatten)]
    pub sums: FrameSums,
    /// frees_matched + frees_unmatched.
    pub free_events: Option<u64>,
    /// Frees of at least one page that was allocated in the trace.
    pub frees_matched: Option<u64>,
    /// Matched frees whose range is not exactly one allocation's.
    pub frees_partial: Option<u64>,
    /// Frees of no page that was allocated in the trace.
    pub frees_unmatched: Option<u64>,
    /// Pages that were freed and not allocated in the trace.
    pub pages_free_only: Option<u64>,
    /// Plain sums over events.
    pub raw: RawPageSums,
    /// Bytes requested: equal to `bytes_alloc`, since page events record no internal fragmentation.
    pub bytes_req: Option<u64>,
    /// 0.
    pub bytes_wasted: Option<u64>,
    /// 0.
    pub bytes_wasted_live: Option<u64>,
    /// 0.
    pub internal_fragmentation_percent: Option<f64>,
    /// Facts that only screens have.
    #[serde(skip)]
    pub shown: PagesShown,
}

/// Facts on pages that only screens have.
#[derive(Debug, Clone)]
pub struct PagesShown {
    /// Bytes of a page.
    pub page_size: u64,
    /// Pages freed, by plain sum.
    pub raw_pages_freed: Option<u64>,
    /// Pages freed in the selected time that are older than it.
    pub older_pages_freed: u64,
}

/// Plain sums over page events.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RawPageSums {
    /// Allocations.
    pub alloc_events: Option<u64>,
    /// Frees.
    pub free_events: Option<u64>,
    /// Bytes requested.
    pub bytes_req: Option<u64>,
    /// Bytes allocated, the same.
    pub bytes_alloc: Option<u64>,
    /// Bytes freed.
    pub bytes_freed: Option<u64>,
}

impl PageSums {
    /// True if no page was allocated or freed.
    pub fn is_empty(&self) -> bool {
        let Self { sums, raw, .. } = self;
        let allocated = [sums.alloc_events, sums.alloc_failures, sums.pages_alloc, sums.pages_live];
        let freed = [sums.pages_freed, sums.pages_freed_unseen, self.free_events, self.pages_free_only];
        let events = [raw.alloc_events, raw.free_events];
        allocated.iter().chain(&freed).chain(&events).all(|number| number.unwrap_or(0) == 0)
    }

    /// Live pages of allocations that cross a loss.
    pub fn pages_live_uncertain(&self) -> Option<u64> {
        self.sums.bytes_live_uncertain.map(|bytes| bytes / self.shown.page_size.max(1))
    }

    /// Sums of a pass; `null` where events were not recorded.
    pub fn of(analysis: &Analysis, recorded: RecordedSums) -> Self {
        let (counts, page_size) = (&analysis.balance.frames.counts, analysis.page_size.0);
        let mut all = FrameTotals::default();
        analysis.balance.frames.sites.iter().for_each(|totals| all += totals);
        let alloc = |number: u64| recorded.allocs.then_some(number);
        let free = |number: u64| recorded.frees.then_some(number);
        let life = |number: u64| recorded.lives.then_some(number);
        let bytes = |frames: u64| frames.saturating_mul(page_size);
        Self {
            sums: FrameSums::of(&all, page_size, recorded),
            free_events: free(counts.frees_matched + counts.free_only_events),
            frees_matched: life(counts.frees_matched),
            frees_partial: life(counts.frees_partial),
            frees_unmatched: life(counts.free_only_events),
            pages_free_only: life(counts.free_only_frames),
            raw: RawPageSums {
                alloc_events: alloc(counts.raw_alloc_events),
                free_events: free(counts.raw_free_events),
                bytes_req: alloc(bytes(counts.raw_frames_alloc)),
                bytes_alloc: alloc(bytes(counts.raw_frames_alloc)),
                bytes_freed: life(bytes(counts.raw_frames_freed)),
            },
            bytes_req: alloc(bytes(all.frames_alloc)),
            bytes_wasted: alloc(0),
            bytes_wasted_live: life(0),
            internal_fragmentation_percent: recorded.allocs.then_some(0.0),
            shown: PagesShown {
                page_size,
                raw_pages_freed: free(counts.raw_frames_freed),
                older_pages_freed: analysis
                    .balance
                    .older
                    .pages
                    .saturating_sub(analysis.balance.older.pages_live),
            },
        }
    }
}

/// Functions of the tracer at the innermost end of its stacks, as a regular expression for whole names.
pub const TRACER: &str = "trace_event_raw_event_.*|__traceiter_.*|stack_trace.*";

/// True if a symbol is of the tracer: stacks that ftrace records begin in it, those of perf do not.
pub fn is_tracer(symbol: &[u8]) -> bool {
    ["trace_event_raw_event_", "__traceiter_", "stack_trace"]
        .iter()
        .any(|name| symbol.starts_with(name.as_bytes()))
}

/// Part of a stack outside the tracer and the allocator, from its innermost function; without zeros, which stand for
/// unknown frames.
pub fn of_users<'s>(
    stack: &'s [u64],
    mut symbol: impl FnMut(u64) -> String + 's,
) -> impl Iterator<Item = u64> + 's {
    stack
        .iter()
        .copied()
        .filter(|&address| address != 0)
        .skip_while(move |&address| is_allocator(symbol(address).as_bytes()))
}

/// Call site of an allocation of pages: the innermost address of its stack outside the allocator; `None`: no stack.
pub fn caller(stack: &[u64], symbols: &Symbolizer<'_>) -> Option<u64> {
    first(stack, |address| !is_allocator(&symbols.raw(address)))
}

fn first(stack: &[u64], is_it: impl Fn(u64) -> bool) -> Option<u64> {
    stack.iter().copied().find(|&address| address != 0 && is_it(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocator_frames_are_passed_over() {
        let names: [&[u8]; 5] = [
            b"__alloc_frozen_pages_noprof+0x26b/0x320",
            b"alloc_pages_mpol+0x86/0x170",
            b"folio_alloc_noprof+0x5c/0xb0",
            b"page_cache_ra_unbounded+0x10/0x20",
            b"filemap_read+0x1/0x2",
        ];
        let outside = |a: u64| !is_allocator(names[a as usize - 1]);
        assert_eq!(first(&[1, 2, 3, 4, 5], outside), Some(4));
        assert_eq!(first(&[1, 2], outside), None);
        assert!(!is_allocator(b"ext4_alloc_inode+0x1"));
    }
}
