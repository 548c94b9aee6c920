//! Order of the places.

use std::cmp::Reverse;

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
pub fn sort(places: &mut [WastePlace<'_>], keys: &[WasteKey]) {
    places.sort_by_cached_key(|place| {
        let number = |key: WasteKey| match key {
            WasteKey::Live => place.wasted.bytes_wasted_live,
            WasteKey::Mean => place.wasted.bytes_wasted_on_average,
            WasteKey::Churn => place.wasted.bytes_wasted,
            WasteKey::Name => None,
        };
        let numbers = keys.iter().take_while(|&&key| key != WasteKey::Name);
        let numbers: Vec<_> = numbers.map(|&key| Reverse(number(key))).collect();
        // After `name`, numbers do not count.
        let is_named = keys.contains(&WasteKey::Name);
        let more = [WasteKey::Live, WasteKey::Churn].map(|key| Reverse(number(key).filter(|_| !is_named)));
        (numbers, more, place.name.clone(), place.kind(), place.call_site())
    });
}
