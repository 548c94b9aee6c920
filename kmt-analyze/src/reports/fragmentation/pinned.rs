//! Call sites whose survivors hold nearly empty slabs.

use serde::Serialize;

use super::traced::Traced;
use crate::collect::occupancy::{OccupancySums, Pins};
use crate::reports::common::rows::Address;
use crate::reports::common::symbol::Symbol;

/// Survivors of one call site on slab pages of the trace.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PinRow {
    /// `kmalloc` or `cache`.
    pub api: &'static str,
    /// Address of the call site.
    pub call_site: Address,
    /// Function and offset, or the address.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// Survivors.
    pub objects: u64,
    /// Bytes of the survivors.
    pub bytes: u64,
    /// Bytes of their slabs that are not in use, shared equally among the objects of a slab.
    pub pinned_bytes: u64,
    /// Bytes not in use of sparse slabs (those with at most a quarter of their highest live bytes), shared in the same
    /// way.
    pub pinned_sparse_bytes: u64,
    /// Share in sparse slabs.
    pub sparse_slabs: f64,
    /// Survivors on sparse slabs.
    pub sparse_objects: u64,
    /// Mean age of survivors on sparse slabs, in the clock's unit.
    pub sparse_age_mean: Option<u64>,
    /// True if it pins at least 65,536 bytes on at least 16 sparse slabs.
    pub is_pinner: bool,
}

/// Smallest pinned bytes of a reported call site.
pub const PINNED_BYTES_MIN: f64 = 65_536.0;
/// Smallest number of its slabs.
pub const PINNED_SLABS_MIN: f64 = 16.0;

fn is_pinner(pins: &Pins) -> bool {
    pins.sparse_bytes() >= PINNED_BYTES_MIN && pins.sparse_slabs() >= PINNED_SLABS_MIN
}

/// Numbers of all call sites with survivors on slab pages, those that pin most first.
pub fn all(occupancy: &OccupancySums) -> Vec<(u32, &Pins)> {
    let mut all: Vec<(u32, &Pins)> = (0..).zip(&occupancy.pins).filter(|(_, p)| p.objects > 0).collect();
    all.sort_by(|a, b| {
        b.1.sparse_bytes()
            .total_cmp(&a.1.sparse_bytes())
            .then(b.1.pinned_bytes().total_cmp(&a.1.pinned_bytes()))
            .then(a.0.cmp(&b.0))
    });
    all
}

/// Call sites with survivors on slab pages, those that pin most first, at most the limit; number of all of them.
pub fn compute(traced: &Traced<'_, '_, '_>, occupancy: &OccupancySums) -> (Vec<PinRow>, usize) {
    let all = all(occupancy);
    let rows = all.iter().take(traced.context.limit).map(|(caller, pins)| row(traced, *caller, pins));
    (rows.collect(), all.len())
}

/// Row of the survivors of one call site.
pub fn row(traced: &Traced<'_, '_, '_>, caller: u32, pins: &Pins) -> PinRow {
    let (api, address, symbol) = traced.context.labels().caller(traced.context.analysis, caller);
    PinRow {
        api: api.name(),
        call_site: Address(address),
        symbol,
        objects: pins.objects,
        bytes: pins.bytes,
        pinned_bytes: pins.pinned_bytes().round() as u64,
        pinned_sparse_bytes: pins.sparse_bytes().round() as u64,
        sparse_slabs: pins.sparse_slabs(),
        sparse_objects: pins.sparse_objects,
        sparse_age_mean: pins.sparse_age.checked_div(pins.sparse_objects.into()).map(|age| age as u64),
        is_pinner: is_pinner(pins),
    }
}
