//! Sums of slab objects.

/// Adds sums of these fields with `+=`.
macro_rules! added {
    ($sums:ident: $($field:ident),+) => {
        impl std::ops::AddAssign<&$sums> for $sums {
            fn add_assign(&mut self, other: &$sums) {
                $(self.$field += other.$field;)+
            }
        }
    };
}
pub(super) use added;

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
