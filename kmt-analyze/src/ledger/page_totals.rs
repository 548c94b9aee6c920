//! Sums of pages.

use super::totals::added;

/// Sums over allocations of pages. Frames are pages of the target's size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameTotals {
    /// Successful allocations.
    pub alloc_events: u64,
    /// Allocations that failed.
    pub alloc_failures: u64,
    /// Frames allocated.
    pub frames_alloc: u64,
    /// Frames that were freed.
    pub frames_freed: u64,
    /// Implied frees: frames allocated again while they seemed live.
    pub frames_freed_implied: u64,
    /// Frames still allocated at the end of the window.
    pub frames_live: u64,
    /// Frames whose life crosses a loss.
    pub frames_uncertain: u64,
    /// Frames whose life crosses a loss and that seem live.
    pub frames_live_uncertain: u64,
}

added!(
    FrameTotals:
    alloc_events, alloc_failures, frames_alloc, frames_freed, frames_freed_implied, frames_live,
    frames_uncertain, frames_live_uncertain
);

impl FrameTotals {
    /// True without any pages: at most with failed allocations.
    pub fn has_no_pages(&self) -> bool {
        *self == Self { alloc_failures: self.alloc_failures, ..Self::default() }
    }
}

/// Counts of page events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Allocation events, failures included.
    pub raw_alloc_events: u64,
    /// Pages requested by allocation events.
    pub raw_frames_alloc: u64,
    pub raw_free_events: u64,
    /// Pages of free events.
    pub raw_frames_freed: u64,
    /// Frees of at least one frame that was live.
    pub frees_matched: u64,
    /// Frees whose range is not exactly one allocation.
    pub frees_partial: u64,
    /// Frees of no live frame.
    pub free_only_events: u64,
    /// Freed frames that were not live: allocated before the trace, or without an event.
    pub free_only_frames: u64,
}
