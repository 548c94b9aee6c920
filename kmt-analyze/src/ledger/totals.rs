//! Sums of slab objects and of pages, for each site, group and window.
//!
//! The ledger adds a life when its end is known; collectors and reports add these sums to each other.

/// Adds sums of these fields with `+=`.
macro_rules! added {
    ($sums:ident: $($field:ident),+) => {
        impl std::ops::AddAssign<&$sums> for $sums {
            fn add_assign(&mut self, other: &$sums) {
                $(self.$field = self.$field.saturating_add(other.$field);)+
            }
        }
    };
}

/// Sums over lives of slab objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Successful allocations; duplicate events count once.
    pub alloc_events: u64,
    /// Bytes requested.
    pub bytes_req: u64,
    /// Bytes allocated.
    pub bytes_alloc: u64,
    /// Frees that ended a life.
    pub frees_matched: u64,
    /// Bytes of the lives that they ended.
    pub bytes_freed: u64,
    pub implied_frees: u64,
    /// Bytes of lives that ended by an implied free.
    pub bytes_freed_implied: u64,
    /// Lives still allocated at the end of the window.
    pub live: u64,
    /// Bytes of lives still allocated.
    pub bytes_live: u64,
    /// Bytes requested of lives still allocated.
    pub bytes_req_live: u64,
    /// Lives that ended by kfree_rcu shortly before the end of the window (R13): the kernel may not have freed them
    /// yet.
    pub waiting: u64,
    /// Bytes of lives that ended by kfree_rcu shortly before the end of the window.
    pub bytes_waiting: u64,
    /// Uncertain lives: across a loss, or with an ambiguous free.
    pub uncertain: u64,
    /// Uncertain lives that seem live.
    pub live_uncertain: u64,
    /// Bytes of uncertain lives that seem live.
    pub bytes_live_uncertain: u64,
    /// Uncertain lives that are implied frees.
    pub implied_frees_uncertain: u64,
}

impl Totals {
    /// Bytes allocated beyond those requested, over all allocations.
    pub fn bytes_wasted(&self) -> u64 {
        self.bytes_alloc.saturating_sub(self.bytes_req)
    }

    /// Bytes allocated beyond those requested, over live objects.
    pub fn bytes_wasted_live(&self) -> u64 {
        self.bytes_live.saturating_sub(self.bytes_req_live)
    }

    /// Internal fragmentation: share of the allocated bytes that were not requested, in percent.
    pub fn internal_fragmentation_percent(&self) -> f64 {
        if self.bytes_alloc == 0 {
            return 0.0;
        }
        100.0 * self.bytes_wasted() as f64 / self.bytes_alloc as f64
    }
}

added!(
    Totals:
    alloc_events, bytes_req, bytes_alloc, frees_matched, bytes_freed, implied_frees, bytes_freed_implied,
    live, bytes_live, bytes_req_live, waiting, bytes_waiting, uncertain, live_uncertain,
    bytes_live_uncertain, implied_frees_uncertain
);

/// Objects and pages that were allocated in the trace before the window, and were live in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OlderSums {
    /// Slab objects.
    pub objects: u64,
    /// Bytes of these objects.
    pub bytes: u64,
    /// Those of the objects that are live at the end of the window.
    pub objects_live: u64,
    /// Bytes of those that are live at the end of the window.
    pub bytes_live: u64,
    /// Pages.
    pub pages: u64,
    /// Those of the pages that are live at the end of the window.
    pub pages_live: u64,
}

impl OlderSums {
    /// Adds a slab object.
    pub fn add_object(&mut self, bytes: u64, is_live: bool) {
        let live = u64::from(is_live);
        self.objects += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.objects_live += live;
        self.bytes_live = self.bytes_live.saturating_add(bytes * live);
    }
}

/// Counts of events without a life, of one interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Allocations that failed.
    pub alloc_failures: u64,
    /// Frees of objects allocated before the trace.
    pub allocated_before: u64,
    /// Frees without a traced allocation.
    pub untraced_birth: u64,
    /// Frees of NULL.
    pub null_frees: u64,
    /// Frees of the result of kmalloc(0).
    pub zero_size_frees: u64,
    /// Duplicate events of one allocation.
    pub double_reports: u64,
    /// Frees logged on another CPU than the allocation.
    pub cross_cpu_frees: u64,
    /// Frees through the other API than the allocation.
    pub mixed_api_frees: u64,
    /// Frees logged after the address was reused.
    pub late_frees: u64,
}

impl EventCounts {
    /// Frees without a life in the trace.
    pub fn unmatched_frees(&self) -> u64 {
        self.allocated_before + self.untraced_birth
    }
}

added!(
    EventCounts:
    alloc_failures, allocated_before, untraced_birth, null_frees, zero_size_frees, double_reports,
    cross_cpu_frees, mixed_api_frees, late_frees
);

/// Plain sums over events, without rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RawSums {
    /// Allocation events, including failures and duplicates.
    pub alloc_events: u64,
    /// Free events, including those of NULL.
    pub free_events: u64,
    /// Sum of bytes_req.
    pub bytes_req: u64,
    /// Sum of bytes_alloc.
    pub bytes_alloc: u64,
}

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
