//! What is added up.

use std::ops::AddAssign;

/// Sums over lives of slab objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Successful allocations, double reports folded.
    pub alloc_events: u64,
    /// Bytes that they asked for.
    pub bytes_req: u64,
    /// Bytes that they were given.
    pub bytes_alloc: u64,
    /// Frees that ended a life.
    pub frees_matched: u64,
    /// Bytes of the lives that they ended.
    pub bytes_freed: u64,
    /// Lives whose end was not seen, only that they had ended.
    pub freed_unseen: u64,
    /// Bytes of those.
    pub bytes_freed_unseen: u64,
    /// Lives that go on at the end of the window.
    pub live: u64,
    /// Bytes of those.
    pub bytes_live: u64,
    /// Bytes that those asked for.
    pub bytes_req_live: u64,
    /// Lives that ended shortly before the end of the window, of objects that are freed after a grace period (R13): they may
    /// still be there.
    pub waiting: u64,
    /// Bytes of those.
    pub bytes_waiting: u64,
    /// Lives of which it is uncertain whether they are what they seem: across a loss, or an ambiguous free.
    pub uncertain: u64,
    /// Those of them that seem live.
    pub live_uncertain: u64,
    /// Bytes of those.
    pub bytes_live_uncertain: u64,
    /// Those of them that seem freed unseen.
    pub freed_unseen_uncertain: u64,
}

impl Totals {
    /// Bytes given beyond those asked for, over all allocations.
    pub fn bytes_wasted(&self) -> u64 {
        self.bytes_alloc.saturating_sub(self.bytes_req)
    }

    /// The same over the lives that go on.
    pub fn bytes_wasted_live(&self) -> u64 {
        self.bytes_live.saturating_sub(self.bytes_req_live)
    }

    /// Internal fragmentation: the share of the bytes given that nobody asked for, in percent.
    pub fn internal_fragmentation_percent(&self) -> f64 {
        if self.bytes_alloc == 0 {
            return 0.0;
        }
        100.0 * self.bytes_wasted() as f64 / self.bytes_alloc as f64
    }
}

impl AddAssign<&Totals> for Totals {
    fn add_assign(&mut self, other: &Totals) {
        self.alloc_events += other.alloc_events;
        self.bytes_req += other.bytes_req;
        self.bytes_alloc += other.bytes_alloc;
        self.frees_matched += other.frees_matched;
        self.bytes_freed += other.bytes_freed;
        self.freed_unseen += other.freed_unseen;
        self.bytes_freed_unseen += other.bytes_freed_unseen;
        self.live += other.live;
        self.bytes_live += other.bytes_live;
        self.bytes_req_live += other.bytes_req_live;
        self.waiting += other.waiting;
        self.bytes_waiting += other.bytes_waiting;
        self.uncertain += other.uncertain;
        self.live_uncertain += other.live_uncertain;
        self.bytes_live_uncertain += other.bytes_live_uncertain;
        self.freed_unseen_uncertain += other.freed_unseen_uncertain;
    }
}

/// Counts of events of one interface that are no lives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Allocations that failed.
    pub alloc_failures: u64,
    /// Frees of objects allocated before the trace.
    pub allocated_before: u64,
    /// Frees of objects whose birth was not traced.
    pub untraced_birth: u64,
    /// Frees of NULL.
    pub null_frees: u64,
    /// Frees of what kmalloc(0) returns.
    pub zero_size_frees: u64,
    /// Second reports of one allocation.
    pub double_reports: u64,
    /// Frees logged on another CPU than the allocation.
    pub cross_cpu_frees: u64,
    /// Frees by the other interface than the allocation's.
    pub mixed_api_frees: u64,
    /// Frees logged after the object's next life had begun.
    pub late_frees: u64,
}

impl EventCounts {
    /// Frees that ended no life known to the trace.
    pub fn unmatched_frees(&self) -> u64 {
        self.allocated_before + self.untraced_birth
    }
}

impl AddAssign<&EventCounts> for EventCounts {
    fn add_assign(&mut self, other: &EventCounts) {
        self.alloc_failures += other.alloc_failures;
        self.allocated_before += other.allocated_before;
        self.untraced_birth += other.untraced_birth;
        self.null_frees += other.null_frees;
        self.zero_size_frees += other.zero_size_frees;
        self.double_reports += other.double_reports;
        self.cross_cpu_frees += other.cross_cpu_frees;
        self.mixed_api_frees += other.mixed_api_frees;
        self.late_frees += other.late_frees;
    }
}

/// Plain sums over events, with no rule applied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RawSums {
    /// Allocation events, failures and double reports included.
    pub alloc_events: u64,
    /// Free events, those of NULL included.
    pub free_events: u64,
    /// Sum of bytes_req.
    pub bytes_req: u64,
    /// Sum of bytes_alloc.
    pub bytes_alloc: u64,
}
