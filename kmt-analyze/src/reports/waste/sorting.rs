//! Order of the places.

use std::cmp::Ordering;

use super::place::WastePlace;
use crate::reports::common::sorting::SortKey;

/// Names that sort places.
pub const WASTES: &[SortKey] = &[SortKey::Waste, SortKey::LiveWaste, SortKey::MeanWaste, SortKey::Name];

/// Sorts by these keys, the largest numbers first and unknown ones last; then by the largest number of each place, live
/// bytes, name and kind. Without keys the largest numbers decide: slabs waste at the end, rounding over all allocations,
/// and one table has both.
///
/// Keys are compared where they are: there may be a place for each call site.
pub fn sort(places: &mut [WastePlace<'_>], keys: &[SortKey]) {
    // After `name`, numbers do not count.
    let end = keys.iter().position(|&key| key == SortKey::Name);
    let has_numbers = end.is_none();
    let keys = &keys[..end.unwrap_or(keys.len())];
    places.sort_unstable_by(|one, other| {
        let numbers = keys.iter().map(|&key| number(other, key).cmp(&number(one, key)));
        let more = || {
            let largest = other.wasted.largest().cmp(&one.wasted.largest());
            largest.then(other.wasted.bytes_wasted_live.cmp(&one.wasted.bytes_wasted_live))
        };
        numbers
            .fold(Ordering::Equal, Ordering::then)
            .then_with(|| if has_numbers { more() } else { Ordering::Equal })
            .then_with(|| one.name.cmp(&other.name))
            .then_with(|| one.kind.cmp(&other.kind))
            .then_with(|| one.call_site.cmp(&other.call_site))
    });
}

fn number(place: &WastePlace<'_>, key: SortKey) -> Option<u64> {
    match key {
        SortKey::Waste => place.wasted.bytes_wasted,
        SortKey::LiveWaste => place.wasted.bytes_wasted_live,
        SortKey::MeanWaste => place.wasted.bytes_wasted_on_average,
        _ => None,
    }
}
