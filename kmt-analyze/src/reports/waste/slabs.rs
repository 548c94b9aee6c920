//! Places of unused bytes of slabs: after the last object, and on nearly empty slabs.

use super::kinds::KindRow;
use super::place::{PlaceSource, WastePlace};
use super::wasted::Wasted;
use crate::collect::occupancy::OccupancySums;
use crate::render::words::escaped;
use crate::reports::common::symbol::Symbol;
use crate::reports::fragmentation::internal::WasteKind;
use crate::reports::fragmentation::occupancy;
use crate::reports::fragmentation::slabs::{self, Traced};

/// Caches with bytes after the last object of their slabs, and their sum.
pub fn tails(traced: &Traced<'_, '_, '_>) -> (Vec<WastePlace<'static>>, KindRow) {
    let place = |cache: slabs::CacheTail| WastePlace {
        kind: WasteKind::SlabTail,
        call_site: None,
        name: Symbol::from(escaped(cache.cache.as_bytes())),
        wasted: at_end(cache.tail_bytes, cache.active_objs),
        source: PlaceSource::Tail(Box::new(cache)),
    };
    let caches = slabs::all(traced).into_iter().flatten().filter(|cache| cache.tail_bytes > 0);
    with_sum(traced, WasteKind::SlabTail, caches.map(place).collect())
}

/// Call sites whose objects hold nearly empty slabs, and their sum.
pub fn sparse(traced: &Traced<'_, '_, '_>, occupancy: &OccupancySums) -> (Vec<WastePlace<'static>>, KindRow) {
    let kind = WasteKind::SparseSlabs;
    if kind.unknown(traced).is_some() {
        return with_sum(traced, kind, Vec::new());
    }
    let place = |row: occupancy::PinRow| WastePlace {
        kind,
        call_site: Some(row.call_site.0),
        name: row.symbol.clone(),
        wasted: at_end(row.pinned_sparse_bytes, row.sparse_objects),
        source: PlaceSource::Sparse(Box::new(row)),
    };
    let all = occupancy::all_pinned(occupancy).into_iter().filter(|(_, pins)| pins.sparse_objects > 0);
    let rows = all.map(|(caller, pins)| occupancy::pinned_row(traced, caller, pins));
    with_sum(traced, kind, rows.filter(|row| row.pinned_sparse_bytes > 0).map(place).collect())
}

/// Slabs are known at the end alone.
fn at_end(bytes: u64, objects: u64) -> Wasted {
    Wasted { bytes_wasted_live: Some(bytes), objects: Some(objects), ..Wasted::default() }
}

fn with_sum(
    traced: &Traced<'_, '_, '_>,
    kind: WasteKind,
    places: Vec<WastePlace<'static>>,
) -> (Vec<WastePlace<'static>>, KindRow) {
    let unknown = kind.unknown(traced);
    let sum = |of: fn(&Wasted) -> Option<u64>| {
        places.iter().filter_map(|place| of(&place.wasted)).fold(0, u64::saturating_add)
    };
    let wasted = at_end(sum(|wasted| wasted.bytes_wasted_live), sum(|wasted| wasted.objects));
    let row = KindRow {
        kind: kind.name(),
        places_total: unknown.is_none().then_some(places.len() as u64),
        wasted: if unknown.is_none() { wasted } else { Wasted::default() },
        unknown,
    };
    (places, row)
}
