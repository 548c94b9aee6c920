//! Events that other tools count and the exact totals do not.

use crate::pass::{Analysis, sum_of};
use crate::stream::Site;

/// Allocation events that are in the totals of other tools only.
#[derive(Debug, Clone, Copy)]
pub struct Causes {
    /// Duplicate kmalloc events.
    pub doubles: u64,
    /// Bytes allocated by them.
    pub double_bytes: u64,
    /// Bytes requested by them.
    pub double_req: u64,
    /// Failed allocations.
    pub failures: u64,
    /// Bytes that they would have allocated.
    pub failed_bytes: u64,
    /// Bytes requested by them.
    pub failed_req: u64,
}

impl Causes {
    /// Computes them from the results of a pass.
    pub fn of(result: &Analysis) -> Self {
        let (ours, raw) = (sum_of(result, None), result.balance.raw);
        let counts = result.balance.counts;
        let failed_bytes = failed(result, |site| site.bytes_alloc);
        let failed_req = failed(result, |site| site.bytes_req);
        Self {
            doubles: counts.iter().map(|c| c.double_reports).sum(),
            double_bytes: raw.bytes_alloc.saturating_sub(ours.bytes_alloc).saturating_sub(failed_bytes),
            double_req: raw.bytes_req.saturating_sub(ours.bytes_req).saturating_sub(failed_req),
            failures: counts.iter().map(|c| c.alloc_failures).sum(),
            failed_bytes,
            failed_req,
        }
    }
}

/// Bytes of all failed allocations.
fn failed(result: &Analysis, bytes: fn(&Site) -> u64) -> u64 {
    let failures = result.balance.failures.iter().zip(result.interner.sites.items());
    failures.map(|(count, site)| count.saturating_mul(bytes(site))).fold(0, u64::saturating_add)
}
