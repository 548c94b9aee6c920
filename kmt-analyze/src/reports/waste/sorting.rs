//! Order of the places.

use std::cmp::Ordering;

use super::place::WastePlace;

/// Key of the order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum WasteKey {
    /// Bytes wasted at the end
    #[value(name = "live", aliases = ["live_waste", "bytes_wasted_live"])]
    Live,
    /// Bytes wasted on average over the window
    #[value(name = "mean", aliases = ["mean_waste", "bytes_wasted_on_average"])]
    Mean,
    /// Bytes wasted by all allocations
    #[value(name = "churn", alias = "bytes_wasted")]
    Churn,
    /// Name
    #[value(name = "name")]
    Name,
}

/// Sorts by these keys, the largest numbers first and unknown ones last; then by live bytes, churn, name and kind.
///
/// Keys are compared where they are: there may be a place for each call site.
pub fn sort(places: &mut [WastePlace<'_>], keys: &[WasteKey]) {
    // After `name`, numbers do not count.
    let end = keys.iter().position(|&key| key == WasteKey::Name);
    let more = if end.is_some() { &[][..] } else { &[WasteKey::Live, WasteKey::Churn] };
    let keys = &keys[..end.unwrap_or(keys.len())];
    places.sort_unstable_by(|one, other| {
        let numbers = keys.iter().chain(more).map(|&key| number(other, key).cmp(&number(one, key)));
        numbers
            .fold(Ordering::Equal, Ordering::then)
            .then_with(|| one.name.cmp(&other.name))
            .then_with(|| one.kind.cmp(&other.kind))
            .then_with(|| one.call_site.cmp(&other.call_site))
    });
}

fn number(place: &WastePlace<'_>, key: WasteKey) -> Option<u64> {
    match key {
        WasteKey::Live => place.wasted.bytes_wasted_live,
        WasteKey::Mean => place.wasted.bytes_wasted_on_average,
        WasteKey::Churn => place.wasted.bytes_wasted,
        WasteKey::Name => None,
    }
}
