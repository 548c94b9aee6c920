//! Bytes allocated beyond those requested: kmalloc's size classes, whole pages for large requests, and the caches' own
//! rounding, which is charged to the cache and not to its call sites.

use std::collections::BTreeMap;

use serde::Serialize;

use super::internal_sums::{InternalPlace, InternalSums, by_place, on_average};
use super::traced::Traced;
use crate::collect::occupancy::OccupancySums;
use crate::collect::sums::Sums;
use crate::pass::caches::CacheNames;
use crate::reports::common::ReportContext;
use crate::reports::common::recorded_sums::RecordedSums;
use crate::reports::common::rows::Address;
use crate::reports::common::symbol::Symbol;
use crate::stream::Api;

/// Bytes allocated beyond those requested.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InternalTables {
    /// Size classes of kmalloc; `null`: its events were not recorded.
    pub kmalloc: Option<Waste>,
    /// Whole pages of kmalloc; `null`: its events were not recorded.
    pub kmalloc_large: Option<Waste>,
    /// Caches; `null`: their events were not recorded.
    pub caches: Option<Waste>,
    /// Number of kmalloc call sites with waste.
    pub kmalloc_callers_total: Option<usize>,
    /// Call sites of kmalloc with waste.
    pub kmalloc_callers: Vec<CallerWaste>,
    /// Number of caches that round up.
    pub cache_rounding_total: Option<usize>,
    /// Caches that round up; charged to the cache.
    pub cache_rounding: Vec<CacheWaste>,
}

/// Waste, and the bytes that it is part of; `null`: frees were not recorded.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Waste {
    /// Bytes allocated.
    pub bytes_alloc: u64,
    /// Bytes allocated beyond those requested.
    pub bytes_wasted: u64,
    /// Bytes live at the end.
    pub bytes_live: Option<u64>,
    /// Bytes live at the end: at least, at most; `null`: events were lost.
    pub bytes_live_range: Option<[u64; 2]>,
    /// Bytes of live objects beyond those requested.
    pub bytes_wasted_live: Option<u64>,
    /// Sum of bytes x time for which objects were held in the window, in bytes x the clock's unit.
    pub byte_time: Option<String>,
    /// Sum of bytes beyond those requested x time for which objects were held in the window, in bytes x the clock's
    /// unit.
    pub byte_time_wasted: Option<String>,
    /// 100 x bytes_wasted / bytes_alloc.
    pub percent_of_alloc: f64,
    /// 100 x bytes_wasted_live / bytes_live.
    pub percent_of_live: Option<f64>,
    /// 100 x byte_time_wasted / byte_time.
    pub percent_of_byte_time: Option<f64>,
}

/// Waste of one call site.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallerWaste {
    /// Waste of the call site.
    #[serde(flatten)]
    pub waste: Waste,
    /// Address of the call site.
    pub call_site: Address,
    /// Function and offset, or the address.
    #[serde(flatten)]
    pub symbol: Symbol,
}

/// Waste of one cache.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheWaste {
    /// Waste of the cache.
    #[serde(flatten)]
    pub waste: Waste,
    /// Name of the cache.
    pub cache: String,
}

impl Waste {
    /// [`Waste::byte_time_wasted`] as a number: JSON has it as text, since it may exceed 64 bits.
    pub fn waste_time(&self) -> Option<u128> {
        self.byte_time_wasted.as_ref()?.parse().ok()
    }

    /// Bytes wasted on average over a window of that length.
    pub fn wasted_on_average(&self, length: u64) -> Option<u64> {
        Some(on_average(self.waste_time()?, length))
    }
}

impl InternalSums {
    fn waste(&self, recorded: RecordedSums) -> Waste {
        let waiting = |least| [least, self.live.saturating_add(self.waiting)];
        Waste {
            bytes_alloc: self.alloc,
            bytes_wasted: self.wasted(),
            bytes_live: recorded.lives.then_some(self.live),
            bytes_live_range: self.least.filter(|_| recorded.lives).map(waiting),
            bytes_wasted_live: recorded.lives.then(|| self.wasted_live()),
            byte_time: recorded.lives.then(|| self.byte_time.to_string()),
            byte_time_wasted: recorded.lives.then(|| self.waste_time.to_string()),
            percent_of_alloc: percent(self.wasted().into(), self.alloc.into()),
            percent_of_live: recorded.lives.then(|| percent(self.wasted_live().into(), self.live.into())),
            percent_of_byte_time: recorded.lives.then(|| percent(self.waste_time, self.byte_time)),
        }
    }
}

fn percent(part: u128, whole: u128) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// Rows of a trace.
pub fn compute(traced: &Traced<'_, '_, '_>, occupancy: &OccupancySums) -> InternalTables {
    let empty = InternalSums::empty(traced);
    let mut kinds = [empty; 3];
    let mut callers: BTreeMap<u64, InternalSums> = BTreeMap::new();
    let mut caches: BTreeMap<&str, InternalSums> = BTreeMap::new();
    for ((kind, place), sums) in by_place(traced, &occupancy.object_time) {
        kinds[kind as usize].absorb(sums);
        match place {
            InternalPlace::CallSite(address) => callers.entry(address).or_insert(empty).absorb(sums),
            InternalPlace::Cache(name) => caches.entry(name).or_insert(empty).absorb(sums),
        }
    }
    let mut callers: Vec<(u64, Symbol, InternalSums)> = callers
        .into_iter()
        .filter(|(_, sums)| sums.wasted() > 0)
        .map(|(address, sums)| (address, traced.context.labels().located(address), sums))
        .collect();
    callers.sort_by(|a, b| (b.2.waste_time, b.2.wasted(), &a.1).cmp(&(a.2.waste_time, a.2.wasted(), &b.1)));
    let mut caches: Vec<(&str, InternalSums)> =
        caches.into_iter().filter(|(_, sums)| sums.wasted() > 0).collect();
    caches.sort_by(|a, b| (b.1.waste_time, a.0).cmp(&(a.1.waste_time, b.0)));
    let limit = traced.context.limit;
    let basis = traced.context.basis();
    let [kmalloc, cache] = Api::ALL.map(|api| RecordedSums::slab(basis, Some(api)));
    let kind = |sums: &InternalSums, recorded: RecordedSums| recorded.allocs.then(|| sums.waste(recorded));
    let caller = |(address, symbol, sums): &(u64, Symbol, InternalSums)| CallerWaste {
        waste: sums.waste(kmalloc),
        call_site: Address(*address),
        symbol: symbol.clone(),
    };
    InternalTables {
        kmalloc: kind(&kinds[0], kmalloc),
        kmalloc_large: kind(&kinds[1], kmalloc),
        caches: kind(&kinds[2], cache),
        kmalloc_callers_total: kmalloc.allocs.then_some(callers.len()),
        kmalloc_callers: callers.iter().take(limit).map(caller).collect(),
        cache_rounding_total: cache.allocs.then_some(caches.len()),
        cache_rounding: caches
            .iter()
            .take(limit)
            .map(|(name, sums)| CacheWaste { waste: sums.waste(cache), cache: (*name).to_owned() })
            .collect(),
    }
}

/// The call site of kmalloc or the cache that wastes most in live objects, and these bytes; of equal ones the first by
/// name.
pub fn largest(context: &ReportContext<'_, '_>) -> Option<(String, u64)> {
    let caches = CacheNames::of(context.analysis).of_sites();
    let traced = Traced::of(context, &caches);
    let mut places: BTreeMap<InternalPlace<'_>, InternalSums> = BTreeMap::new();
    for ((_, place), sums) in by_place(&traced, &[]) {
        places.entry(place).or_default().absorb(sums);
    }
    let name = |place| match place {
        InternalPlace::CallSite(address) => context.labels().located(address).to_string(),
        InternalPlace::Cache(name) => name.to_owned(),
    };
    let wasteful = places.into_iter().filter(|(_, sums)| sums.wasted_live() > 0);
    let named = wasteful.map(|(place, sums)| (name(place), sums.wasted_live()));
    named.max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)))
}
