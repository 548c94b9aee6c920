//! Places where memory is wasted, in one order.

use std::collections::HashSet;

use serde::Serialize;

use super::kinds::KindRow;
use super::place::{PlaceSource, WastePlace};
use super::requests::{Rounded, worst};
use super::saves::Target;
use super::sorting::sort;
use super::wasted::Wasted;
use super::{rounding, slabs};
use crate::collect::occupancy::OccupancySums;
use crate::pass::caches::CacheNames;
use crate::reports::common::ReportContext;
use crate::reports::common::rows::Address;
use crate::reports::common::sorting::SortKey;
use crate::reports::common::symbol::SourceRow;
use crate::reports::fragmentation::slabs::Traced;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WasteRows {
    /// Wasted memory.
    pub waste: WasteTable,
}

/// Wasted memory, by kind and by place.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WasteTable {
    /// Sums by kind. They overlap: a sparse slab has a tail, and slab tails are those of all slabs of the machine.
    pub kinds: Vec<KindRow>,
    /// Number of places; `null`: there are none, and no allocation of slab objects was recorded.
    pub places_total: Option<usize>,
    /// Places, by default in the order of the largest of their bytes.
    pub places: Vec<PlaceRow>,
}

/// A place where memory is wasted.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlaceRow {
    /// See `kinds`.
    pub kind: &'static str,
    /// Function and offset of the call site, or its address; else the name of the cache.
    pub name: String,
    /// `kmalloc` or `cache`; `null`: slabs of a cache.
    pub api: Option<&'static str>,
    /// Address of the call site; `null`: the place is a cache.
    pub call_site: Option<Address>,
    /// Functions at the call site with their source lines, the innermost inlined one first; empty: not known.
    pub source: Vec<SourceRow>,
    /// Bytes that it wastes.
    #[serde(flatten)]
    pub wasted: Wasted,
    /// Bytes requested by the request that wastes most; `null` for slab tails and sparse slabs.
    pub bytes_req: Option<u64>,
    /// Bytes allocated for that request; `null` for slab tails and sparse slabs.
    pub bytes_alloc: Option<u64>,
    /// A change that would save it, as a sentence; empty: the call site asks for many sizes, and none has more than half
    /// of its waste.
    pub saves: String,
}

/// Rows of a trace.
pub fn compute(context: &ReportContext<'_, '_>, occupancy: &OccupancySums, keys: &[SortKey]) -> WasteRows {
    let caches = CacheNames::of(context.analysis).of_sites();
    let traced = Traced::of(context, &caches);
    let (mut places, kinds) = rounding::compute(&traced, occupancy);
    let mut kinds = Vec::from(kinds);
    for (more, kind) in [slabs::tails(&traced), slabs::sparse(&traced, occupancy)] {
        places.extend(more);
        kinds.push(kind);
    }
    sort(&mut places, keys);
    let places_total = places.len();
    places.truncate(context.limit);
    let is_known = places_total > 0 || context.basis().allocs(None);
    let places_total = is_known.then_some(places_total);
    WasteRows { waste: WasteTable { kinds, places_total, places: rows(&traced, places) } }
}

fn rows<'t>(traced: &'t Traced<'_, '_, '_>, places: Vec<WastePlace<'t>>) -> Vec<PlaceRow> {
    let rounded = |place: &WastePlace<'t>| -> Option<Rounded<'t>> {
        match place.source {
            PlaceSource::Rounding(at) => Some((place.kind, at)),
            PlaceSource::Tail(_) | PlaceSource::Sparse(_) => None,
        }
    };
    let wanted: HashSet<Rounded<'t>> = places.iter().filter_map(rounded).collect();
    let requests = worst(traced, &wanted);
    let target = Target::of(traced);
    let row = |place: WastePlace<'t>| {
        let request = rounded(&place).and_then(|rounded| requests.get(&rounded));
        PlaceRow {
            kind: place.kind.name(),
            name: place.name.to_string(),
            api: place.api(),
            call_site: place.call_site.map(Address),
            saves: target.sentence(&place, request),
            source: place.name.into_source(),
            wasted: place.wasted,
            bytes_req: request.map(|request| request.req),
            bytes_alloc: request.map(|request| request.alloc),
        }
    };
    places.into_iter().map(row).collect()
}
