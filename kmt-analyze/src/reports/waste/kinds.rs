//! Kinds of waste, and the places of each, before rows are made.
//!
//! Places are bytes beyond the requested ones, by call site or cache with the request that wastes most, and unused bytes of
//! slabs: after the last object, and on nearly empty slabs.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use crate::collect::occupancy::OccupancySums;
use crate::collect::sums::Sums;
use crate::render::words::escaped;
use crate::reports::common::basis::Input;
use crate::reports::common::labels::Symbol;
use crate::reports::common::rows::RecordedSums;
use crate::reports::fragmentation::internal::{InternalPlace, InternalSums, WasteKind, by_place, place_of};
use crate::reports::fragmentation::occupancy::{self, PinRow};
use crate::reports::fragmentation::slabs::{self, CacheTail, Traced};
use crate::stream::Api;

impl WasteKind {
    /// Name of the kind on screens.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClassRounding => "class rounding",
            Self::OrderRounding => "order rounding",
            Self::CacheAlignment => "cache alignment",
            Self::SlabTail => "slab tail",
            Self::SparseSlabs => "sparse slabs",
        }
    }

    /// Interface of its objects; `None`: its bytes are not those of objects.
    pub fn api(self) -> Option<Api> {
        match self {
            Self::ClassRounding | Self::OrderRounding => Some(Api::Kmalloc),
            Self::CacheAlignment => Some(Api::Cache),
            Self::SlabTail | Self::SparseSlabs => None,
        }
    }

    /// Reason why numbers of it are unknown; `None`: all are known.
    pub fn unknown(self, traced: &Traced<'_, '_, '_>) -> Option<String> {
        let basis = traced.context.basis();
        match self {
            Self::ClassRounding | Self::OrderRounding => basis.lacks(Input::KmallocLives),
            Self::CacheAlignment => match RecordedSums::slab(basis, self.api()) {
                RecordedSums { allocs: false, .. } => {
                    Some("it needs kmem:kmem_cache_alloc, which was not recorded".to_owned())
                }
                RecordedSums { lives: false, .. } => basis.lacks(Input::SlabLives),
                RecordedSums { .. } => None,
            },
            Self::SlabTail => {
                slabs::snapshot(traced).is_none().then(|| "the file has no /proc/slabinfo".to_owned())
            }
            Self::SparseSlabs => occupancy::refusal(traced),
        }
    }
}

/// Waste of one kind.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KindRow {
    /// `class rounding`, `order rounding`, `cache alignment`, `slab tail` or `sparse slabs`.
    pub kind: &'static str,
    /// Number of places that waste; `null`: not recorded.
    pub places_total: Option<u64>,
    /// Bytes wasted in all these places.
    #[serde(flatten)]
    pub wasted: Wasted,
    /// Reason why numbers of this kind are `null`; `null`: all that it has are known.
    pub unknown: Option<String>,
}

/// Source of a place.
pub enum PlaceSource<'t> {
    /// Objects that were rounded up.
    Rounding(InternalPlace<'t>),
    /// Slabs of a cache.
    Tail(Box<CacheTail>),
    /// Survivors of a call site on sparse slabs.
    Sparse(Box<PinRow>),
}

/// A place where memory is wasted.
pub struct WastePlace<'t> {
    /// Kind of its waste.
    pub kind: WasteKind,
    /// Address of the call site; `None`: the place is a cache.
    pub call_site: Option<u64>,
    /// Call site, or the name of the cache.
    pub name: Symbol,
    /// Bytes and objects wasted in the place.
    pub wasted: Wasted,
    /// Source of these numbers.
    pub source: PlaceSource<'t>,
}

impl WastePlace<'_> {
    /// `kmalloc` or `cache`; `None`: slabs of a cache.
    pub fn api(&self) -> Option<&'static str> {
        match &self.source {
            PlaceSource::Sparse(row) => Some(row.api),
            PlaceSource::Rounding(..) | PlaceSource::Tail(_) => self.kind.api().map(|api| api.name()),
        }
    }
}

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

/// All places that waste, and the sums of their kinds.
pub fn rounding<'t>(
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

/// Caches with bytes after the last object of their slabs, and their sum.
pub fn slab_tails(traced: &Traced<'_, '_, '_>) -> (Vec<WastePlace<'static>>, KindRow) {
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
pub fn sparse_slabs(
    traced: &Traced<'_, '_, '_>,
    occupancy: &OccupancySums,
) -> (Vec<WastePlace<'static>>, KindRow) {
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
