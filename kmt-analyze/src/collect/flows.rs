//! Objects that came and went in one step of time.

use super::sums::sums;

/// Flows of one kind of objects, all of one size, in one step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow {
    /// Allocations.
    pub allocs: u32,
    /// Ends with a free event.
    pub frees: u32,
    /// Implied frees.
    pub unseen: u32,
    /// Live objects at the end of the step minus those at its start.
    pub live_change: i32,
}

/// Flows of objects of several sizes in one step: slab objects, or pages as bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flows {
    /// Allocations.
    pub allocs: i64,
    /// Bytes requested by them.
    pub bytes_req: i64,
    /// Bytes allocated by them.
    pub bytes_alloc: i64,
    /// Ends with a free event.
    pub frees: i64,
    /// Bytes freed by these events.
    pub bytes_freed: i64,
    /// Implied frees.
    pub unseen: i64,
    /// Bytes of implied frees.
    pub bytes_unseen: i64,
    /// Live objects at the end of the step minus those at its start.
    pub live_change: i64,
    /// Bytes allocated of live objects at the end of the step minus those at its start.
    pub bytes_live_change: i64,
    /// Bytes requested of live objects at the end of the step minus those at its start.
    pub bytes_req_live_change: i64,
}

impl Flows {
    /// Of objects of one size.
    pub fn of(flow: &Flow, bytes_req: u64, bytes_alloc: u64) -> Self {
        let size = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let (requested, allocated) = (size(bytes_req), size(bytes_alloc));
        let [allocs, frees, unseen] = [flow.allocs, flow.frees, flow.unseen].map(i64::from);
        let live_change = i64::from(flow.live_change);
        Self {
            allocs,
            bytes_req: allocs.saturating_mul(requested),
            bytes_alloc: allocs.saturating_mul(allocated),
            frees,
            bytes_freed: frees.saturating_mul(allocated),
            unseen,
            bytes_unseen: unseen.saturating_mul(allocated),
            live_change,
            bytes_live_change: live_change.saturating_mul(allocated),
            bytes_req_live_change: live_change.saturating_mul(requested),
        }
    }

    /// All numbers, in the order of the fields.
    pub fn columns(&self) -> [i64; 10] {
        [
            self.allocs,
            self.bytes_req,
            self.bytes_alloc,
            self.frees,
            self.bytes_freed,
            self.unseen,
            self.bytes_unseen,
            self.live_change,
            self.bytes_live_change,
            self.bytes_req_live_change,
        ]
    }
}

sums!(Flow: allocs, frees, unseen, live_change);

sums!(
    Flows:
    allocs, bytes_req, bytes_alloc, frees, bytes_freed, unseen, bytes_unseen, live_change,
    bytes_live_change, bytes_req_live_change
);
