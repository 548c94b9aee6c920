//! Places of bytes allocated beyond those requested.

use super::kinds::KindRow;
use super::place::{PlaceSource, WastePlace};
use super::wasted::Wasted;
use crate::collect::occupancy::OccupancySums;
use crate::collect::sums::Sums;
use crate::reports::common::recorded_sums::RecordedSums;
use crate::reports::common::symbol::Symbol;
use crate::reports::fragmentation::internal::{InternalPlace, InternalSums, WasteKind, by_place};
use crate::reports::fragmentation::slabs::Traced;

/// All places that waste, and the sums of their kinds.
pub fn compute<'t>(
    traced: &'t Traced<'_, '_, '_>,
    occupancy: &OccupancySums,
) -> (Vec<WastePlace<'t>>, [KindRow; 3]) {
    let (first, last) = traced.context.selection.span(traced.context.session);
    let length = last.saturating_sub(first);
    let mut kinds = [(InternalSums::empty(traced), 0); 3];
    let mut places = Vec::new();
    for ((kind, place), sums) in by_place(traced, &occupancy.object_time) {
        if let Some((sum, number)) = kinds.get_mut(kind as usize) {
            sum.absorb(sums);
            *number += u64::from(sums.wasted() > 0);
        }
        if sums.wasted() == 0 {
            continue;
        }
        let (call_site, name) = match place {
            InternalPlace::CallSite(address) => (Some(address), traced.context.labels().located(address)),
            InternalPlace::Cache(name) => (None, Symbol::from(name.to_owned())),
        };
        let wasted = wasted(&sums, recorded(traced, kind), length);
        places.push(WastePlace { kind, call_site, name, wasted, source: PlaceSource::Rounding(place) });
    }
    let all = [WasteKind::ClassRounding, WasteKind::OrderRounding, WasteKind::CacheAlignment];
    let mut kinds = kinds.into_iter();
    let rows = all.map(|kind| {
        let (sums, places) = kinds.next().unwrap_or_default();
        let recorded = recorded(traced, kind);
        KindRow {
            kind: kind.name(),
            places_total: recorded.allocs.then_some(places),
            wasted: wasted(&sums, recorded, length),
            unknown: kind.unknown(traced),
        }
    });
    (places, rows)
}

fn recorded(traced: &Traced<'_, '_, '_>, kind: WasteKind) -> RecordedSums {
    RecordedSums::slab(traced.context.basis(), kind.api())
}

fn wasted(sums: &InternalSums, recorded: RecordedSums, length: u64) -> Wasted {
    Wasted {
        bytes_wasted_live: recorded.lives.then(|| sums.wasted_live()),
        bytes_wasted_on_average: recorded.lives.then(|| sums.wasted_on_average(length)),
        bytes_wasted: recorded.allocs.then(|| sums.wasted()),
        objects: recorded.lives.then_some(sums.rounded_live),
        alloc_events: recorded.allocs.then_some(sums.rounded),
    }
}
