//! Numbers of waste.

use serde::Serialize;

/// Wasted bytes, and the objects that waste them; `null`: not recorded, or the kind does not have it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Wasted {
    /// Bytes wasted at the end.
    pub bytes_wasted_live: Option<u64>,
    /// Bytes wasted on average over the window; `null` for slab tails and sparse slabs too.
    pub bytes_wasted_on_average: Option<u64>,
    /// Bytes wasted by all allocations; `null` for slab tails and sparse slabs too.
    pub bytes_wasted: Option<u64>,
    /// Objects at the end: those that were rounded up, those in use in the cache (slabinfo), or those on sparse slabs.
    pub objects: Option<u64>,
    /// Allocations that were rounded up; `null` for slab tails and sparse slabs too.
    pub alloc_events: Option<u64>,
}

impl Wasted {
    /// The largest of these bytes.
    pub fn largest(&self) -> Option<u64> {
        self.bytes_wasted.max(self.bytes_wasted_live).max(self.bytes_wasted_on_average)
    }
}
