//! The request of each place that wastes most.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::reports::fragmentation::internal::{InternalPlace, WasteKind, place_of};
use crate::reports::fragmentation::slabs::Traced;

/// A place of bytes allocated beyond those requested.
pub type Rounded<'t> = (WasteKind, InternalPlace<'t>);

/// The request that wastes most in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorstRequest {
    /// Bytes requested.
    pub req: u64,
    /// Bytes allocated.
    pub alloc: u64,
    /// Number of requested sizes that waste in this place.
    pub sizes: usize,
    /// More than half of the waste of this place is of this size, at the end and over all allocations. Otherwise the
    /// place asks for many sizes, such as lengths of names, and another size of one request saves little.
    pub has_most: bool,
}

/// Requests of these places that waste most in live objects; of equal ones, those that waste most in all, then the
/// smallest.
pub fn worst<'t>(
    traced: &'t Traced<'_, '_, '_>,
    wanted: &HashSet<Rounded<'t>>,
) -> HashMap<Rounded<'t>, WorstRequest> {
    let analysis = traced.context.analysis;
    let mut requests: HashMap<Rounded<'t>, BTreeMap<(u64, u64), [u64; 2]>> = HashMap::new();
    let sites = analysis.interner.sites.items().iter().zip(&analysis.balance.sites);
    for (number, (site, parts)) in (0u32..).zip(sites) {
        let place = place_of(traced, number, site);
        if site.bytes_alloc <= site.bytes_req || !wanted.contains(&place) {
            continue;
        }
        let of_place = requests.entry(place).or_default();
        let [live, all] = of_place.entry((site.bytes_req, site.bytes_alloc)).or_default();
        for (_, totals) in parts {
            *live = live.saturating_add(totals.bytes_wasted_live());
            *all = all.saturating_add(totals.bytes_wasted());
        }
    }
    let worst = |(place, sizes): (Rounded<'t>, BTreeMap<(u64, u64), [u64; 2]>)| {
        let used = sizes.iter().filter(|(_, [_, all])| *all > 0);
        let sizes = used.clone().count();
        let add = |sum: [u64; 2], wasted: &[u64; 2]| [0, 1].map(|at| sum[at].saturating_add(wasted[at]));
        let sum = used.clone().fold([0; 2], |sum, (_, wasted)| add(sum, wasted));
        // Of equal ones the first: the smallest.
        let (&(req, alloc), wasted) = used.rev().max_by_key(|(_, wasted)| **wasted)?;
        let has_most = [0, 1].iter().all(|&at| sum[at] == 0 || wasted[at] > sum[at] / 2);
        Some((place, WorstRequest { req, alloc, sizes, has_most }))
    };
    requests.into_iter().filter_map(worst).collect()
}
