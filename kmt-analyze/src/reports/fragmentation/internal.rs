//! Bytes allocated beyond those requested: kmalloc's size classes, whole pages for large requests, and the caches' own rounding,
//! which is charged to the cache and not to its call sites.
//!
//! Sums are by kind and place, from the sums that each pass has. Tables are here too.

use std::collections::BTreeMap;

use serde::Serialize;

use super::slabs::Traced;
use crate::collect::occupancy::OccupancySums;
use crate::collect::sums::{Sums, sums};
use crate::render::screen::{Cell, Column, RowTable, Screen, Table};
use crate::reports::common::View;
use crate::reports::common::cells::part;
use crate::reports::common::labels::Symbol;
use crate::reports::common::rows::{Address, RecordedSums};
use crate::sort_rows::SortRows;
use crate::stream::{Api, Site};

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
    callers
        .sort_rows_by(|a, b| (b.2.waste_time, b.2.wasted(), &a.1).cmp(&(a.2.waste_time, a.2.wasted(), &b.1)));
    let mut caches: Vec<(&str, InternalSums)> =
        caches.into_iter().filter(|(_, sums)| sums.wasted() > 0).collect();
    caches.sort_rows_by(|a, b| (b.1.waste_time, a.0).cmp(&(a.1.waste_time, b.0)));
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
pub fn largest(traced: &Traced<'_, '_, '_>) -> Option<(String, u64)> {
    let mut places: BTreeMap<InternalPlace<'_>, InternalSums> = BTreeMap::new();
    for ((_, place), sums) in by_place(traced, &[]) {
        places.entry(place).or_default().absorb(sums);
    }
    let name = |place| match place {
        InternalPlace::CallSite(address) => traced.context.labels().located(address).to_string(),
        InternalPlace::Cache(name) => name.to_owned(),
    };
    let wasteful = places.into_iter().filter(|(_, sums)| sums.wasted_live() > 0);
    let named = wasteful.map(|(place, sums)| (name(place), sums.wasted_live()));
    named.max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)))
}

/// Cause of waste.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WasteKind {
    /// Bytes that kmalloc adds to reach a size class.
    ClassRounding,
    /// Bytes that kmalloc adds to reach whole pages of an order.
    OrderRounding,
    /// Bytes that a cache adds to its objects.
    CacheAlignment,
    /// Bytes of slabs after the last object.
    SlabTail,
    /// Unused bytes of nearly empty slabs.
    SparseSlabs,
}

impl WasteKind {
    /// Cause of bytes that the objects of a site have beyond those requested.
    pub fn of(site: &Site, page_size: u64) -> Self {
        match site.api {
            // KMALLOC_MAX_CACHE_SIZE is two pages (include/linux/slab.h 4.4 to 7.2).
            Api::Kmalloc if site.bytes_alloc > page_size.saturating_mul(2) => Self::OrderRounding,
            Api::Kmalloc => Self::ClassRounding,
            Api::Cache => Self::CacheAlignment,
        }
    }
}

/// Place of bytes allocated beyond those requested: kmalloc's are charged to the call site, others to the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InternalPlace<'t> {
    /// Address of a call site of kmalloc.
    CallSite(u64),
    /// Name of a cache.
    Cache(&'t str),
}

/// Sums of the objects of one place.
#[derive(Debug, Clone, Copy, Default)]
pub struct InternalSums {
    /// Bytes allocated.
    pub alloc: u64,
    /// Bytes requested.
    pub req: u64,
    /// Bytes live at the end.
    pub live: u64,
    /// Bytes requested of objects live at the end.
    pub req_live: u64,
    /// Live bytes that are certain; `None`: events were lost.
    pub least: Option<u64>,
    /// Bytes of objects that wait for a grace period, so they may still be held.
    pub waiting: u64,
    /// Bytes x time for which objects were held in the window.
    pub byte_time: u128,
    /// Bytes beyond those requested x time for which objects were held in the window.
    pub waste_time: u128,
    /// Allocations whose size was rounded up.
    pub rounded: u64,
    /// Objects of those that are live at the end.
    pub rounded_live: u64,
}

sums!(InternalSums: alloc, req, live, req_live, least, waiting, byte_time, waste_time, rounded, rounded_live);

/// Bytes on average over a window of that length.
fn on_average(byte_time: u128, length: u64) -> u64 {
    u64::try_from(byte_time / u128::from(length.max(1))).unwrap_or(u64::MAX)
}

impl InternalSums {
    /// Sums without objects.
    pub fn empty(traced: &Traced<'_, '_, '_>) -> Self {
        Self { least: traced.least(0, 0), ..Self::default() }
    }

    /// Bytes beyond those requested, of all allocations.
    pub fn wasted(&self) -> u64 {
        self.alloc.saturating_sub(self.req)
    }

    /// Bytes beyond those requested, of live objects.
    pub fn wasted_live(&self) -> u64 {
        self.live.saturating_sub(self.req_live)
    }

    /// Bytes wasted on average over a window of that length.
    pub fn wasted_on_average(&self, length: u64) -> u64 {
        on_average(self.waste_time, length)
    }

    /// Sums of one site.
    fn of_site(traced: &Traced<'_, '_, '_>, object_time: &[u128], number: u32, site: &Site) -> Self {
        let held = object_time.get(number as usize).copied().unwrap_or(0);
        let mut sums = Self {
            byte_time: held.saturating_mul(site.bytes_alloc.into()),
            waste_time: held.saturating_mul(site.bytes_alloc.saturating_sub(site.bytes_req).into()),
            ..Self::empty(traced)
        };
        let is_rounded = u64::from(site.bytes_alloc > site.bytes_req);
        for (_, totals) in traced.context.analysis.balance.sites.get(number as usize).into_iter().flatten() {
            sums.alloc = sums.alloc.saturating_add(totals.bytes_alloc);
            sums.req = sums.req.saturating_add(totals.bytes_req);
            sums.live = sums.live.saturating_add(totals.bytes_live);
            sums.req_live = sums.req_live.saturating_add(totals.bytes_req_live);
            sums.waiting = sums.waiting.saturating_add(totals.bytes_waiting);
            sums.rounded = sums.rounded.saturating_add(totals.alloc_events * is_rounded);
            sums.rounded_live = sums.rounded_live.saturating_add(totals.live * is_rounded);
        }
        sums.least = traced.least(number, sums.live);
        sums
    }
}

/// Kind and place of the objects of a site.
pub fn place_of<'t>(
    traced: &'t Traced<'_, '_, '_>,
    number: u32,
    site: &Site,
) -> (WasteKind, InternalPlace<'t>) {
    let place = match site.api {
        Api::Kmalloc => InternalPlace::CallSite(site.call_site),
        Api::Cache => InternalPlace::Cache(traced.cache(number)),
    };
    (WasteKind::of(site, traced.context.analysis.page_size.0), place)
}

/// Sums of all places by kind. `object_time`: see [`OccupancySums`](crate::collect::occupancy::OccupancySums); empty: times
/// are 0.
pub fn by_place<'t>(
    traced: &'t Traced<'_, '_, '_>,
    object_time: &[u128],
) -> BTreeMap<(WasteKind, InternalPlace<'t>), InternalSums> {
    let empty = InternalSums::empty(traced);
    let mut all = BTreeMap::new();
    for (number, site) in (0u32..).zip(traced.context.analysis.interner.sites.items()) {
        let sums = InternalSums::of_site(traced, object_time, number, site);
        all.entry(place_of(traced, number, site)).or_insert(empty).absorb(sums);
    }
    all
}

/// Rows of call sites and caches, unless more are allowed.
const ROWS: usize = 5;

/// Adds waste by kind, and by call site of kmalloc and cache; `length`: of the window.
pub fn add_internal(screen: &mut Screen, rows: &InternalTables, length: u64, view: &View) {
    let kinds = [
        ("kmalloc, size classes", rows.kmalloc.as_ref()),
        ("kmalloc, whole pages", rows.kmalloc_large.as_ref()),
        ("caches, own rounding", rows.caches.as_ref()),
    ];
    if kinds.iter().any(|(_, waste)| waste.is_some_and(|waste| waste.bytes_wasted > 0)) {
        let shown = |(_, waste): &(_, Option<&Waste>)| waste.is_none_or(|waste| waste.bytes_wasted > 0);
        let table = Table::of_rows("inside objects", kinds.into_iter().filter(shown))
            .column(Column::whole("kind"), |(name, _)| Cell::text(*name));
        let note = "mean waste: bytes allocated beyond those requested, on average over the window.";
        screen.table(with_waste(table, length, |(_, waste)| *waste).explain("mean waste", note));
    }
    let mut all: Vec<(Cell, &Waste)> = Vec::new();
    all.extend(rows.kmalloc_callers.iter().map(|row| (Cell::from(&row.symbol), &row.waste)));
    all.extend(rows.cache_rounding.iter().map(|row| (Cell::text(&row.cache), &row.waste)));
    all.sort_rows_by_key(|(_, waste)| std::cmp::Reverse((waste.waste_time(), waste.bytes_wasted)));
    let total = rows.kmalloc_callers_total.unwrap_or(0) + rows.cache_rounding_total.unwrap_or(0);
    let table = Table::of_rows("", all.into_iter().take(part(view.limit, ROWS)))
        .of("call site or cache", "call sites and caches", total)
        .column(Column::name("kmalloc call site or cache"), |(name, _)| name.clone());
    screen.table(with_waste(table, length, |(_, waste)| Some(waste)));
}

/// Columns of waste: on average over a window of that length, of live objects, of all.
fn with_waste<R>(table: RowTable<R>, length: u64, of: impl Fn(&R) -> Option<&Waste>) -> RowTable<R> {
    table
        .column(Column::number("mean waste"), |r| {
            Cell::bytes(of(r).and_then(|w| w.wasted_on_average(length)))
        })
        .column(Column::number("mean %").leaves(5), |r| {
            Cell::percent(of(r).and_then(|w| w.percent_of_byte_time))
        })
        .column(Column::number("live waste").leaves(1), |r| {
            Cell::bytes(of(r).and_then(|w| w.bytes_wasted_live))
        })
        .column(Column::number("live %").leaves(2), |r| Cell::percent(of(r).and_then(|w| w.percent_of_live)))
        .column(Column::number("wasted").leaves(3), |r| Cell::bytes(of(r).map(|w| w.bytes_wasted)))
        .column(Column::number("waste %").leaves(4), |r| Cell::percent(of(r).map(|w| w.percent_of_alloc)))
}
