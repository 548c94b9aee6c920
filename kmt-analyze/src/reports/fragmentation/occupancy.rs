//! Occupancy of slab pages, and call sites whose surviving objects hold nearly empty slabs.
//!
//! The collector `Occupancy` has the objects on each slab that was allocated in the trace. Rows are by cache and over
//! time; the tables are in `occupancy_text`.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::slabs::Traced;
use crate::collect::occupancy::{CacheEvidence, OccupancySums, Pins, SPARSE, SlabPage, Turnover};
use crate::collect::sums::Sums;
use crate::pass::coverage::FreeEvents;
use crate::reports::common::basis::Input;
use crate::reports::common::labels::Symbol;
use crate::reports::common::lead::MaybeRefused;
use crate::reports::common::rows::Address;
use crate::sort_rows::SortRows;
use crate::trace::names::{OLDER_KMALLOC, cache_name};

/// The reason why it is unknown how full slab pages are, if it is.
pub fn refusal(traced: &Traced<'_, '_, '_>) -> Option<String> {
    if let Some(hashed) = traced.context.session.no_addresses() {
        return Some(hashed.to_owned());
    }
    if traced.context.session.trace.header().folded {
        return Some("the sums of objects that died young have no addresses".to_owned());
    }
    let why = "no direct map base (needs page events, and at least 5 pairs of a page allocation and the slab allocation behind it that agree)";
    let is_placed = traced.context.analysis.direct_map.is_some();
    let lacks = || traced.context.basis().lacks(Input::SlabLives);
    (!is_placed).then(|| why.to_owned()).or_else(lacks)
}

/// Rows of a trace.
pub fn compute(traced: &Traced<'_, '_, '_>, occupancy: &OccupancySums) -> MaybeRefused<Occupied> {
    let (None, Some(map)) = (refusal(traced), traced.context.analysis.direct_map) else {
        return MaybeRefused::Refused { refused: refusal(traced).unwrap_or_default() };
    };
    let (sums, slabs_by_filling) = sums(traced, occupancy);
    let coverage = traced.coverage();
    let cache = |(name, sums): (Cow<'_, str>, OccupiedCache)| {
        let (free_events, waiting) = coverage
            .get(&*name)
            .map_or((FreeEvents::Unknown, 0), |(coverage, waiting)| (coverage.free_events(), *waiting));
        let least = if free_events == FreeEvents::All { sums.bytes_live } else { 0 };
        let most = sums.bytes_live.saturating_add(waiting);
        OccupiedCache {
            cache: name.into_owned(),
            frees_seen: free_events.name(),
            bytes_live_range: traced.certain.as_ref().map(|_| [least, most]),
            ..sums
        }
    };
    let mut caches: Vec<OccupiedCache> = sums.into_iter().map(cache).collect();
    // Of equal ones the first by name.
    caches.sort_rows_by_key(|cache| Reverse(cache.bytes_held.saturating_sub(cache.bytes_live)));
    let (pinned_by, pinned_by_total) = pinned(traced, occupancy);
    MaybeRefused::Found(Box::new(Occupied {
        direct_map_votes_percent: map.share_percent(),
        caches,
        slabs_by_filling,
        over_time: steps(occupancy),
        pinned_by_total,
        pinned_by,
    }))
}

/// Sums by cache, and all slabs by their filling.
fn sums<'t>(
    traced: &'t Traced<'_, '_, '_>,
    occupancy: &OccupancySums,
) -> (BTreeMap<Cow<'t, str>, OccupiedCache>, Filling) {
    let page_size = traced.context.analysis.page_size.0;
    let mut caches: BTreeMap<Cow<'t, str>, OccupiedCache> = BTreeMap::new();
    let mut fillings = Filling::default();
    for page in &occupancy.pages {
        let CacheEvidence::Site(site) = page.evidence else { continue };
        let cache = caches.entry(traced.cache(site).into()).or_default();
        if page.is_old {
            cache.older_pages_in_use += 1;
            cache.older_pages_bytes_live = cache.older_pages_bytes_live.saturating_add(page.live_bytes);
            continue;
        }
        let bytes = page_size << page.order;
        cache.slabs += 1;
        cache.bytes_held = cache.bytes_held.saturating_add(bytes);
        cache.bytes_live = cache.bytes_live.saturating_add(page.live_bytes);
        cache.objects += u64::from(page.live);
        cache.slabs_empty += u64::from(page.live == 0);
        cache.slabs_sparse += u64::from(is_sparse(page));
        *filling(&mut fillings, page, bytes) += 1;
    }
    let is_any = |turnover: &&Turnover| **turnover != Turnover::default();
    for (site, turnover) in (0u32..).zip(&occupancy.turnover).filter(|(_, t)| is_any(t)) {
        add_turnover(caches.entry(traced.cache(site).into()).or_default(), turnover);
    }
    for (site, turnover) in (0u32..).zip(&occupancy.turnover_by_free).filter(|(_, t)| is_any(t)) {
        add_turnover(caches.entry(free_cache(traced, site).into()).or_default(), turnover);
    }
    (caches, fillings)
}

fn add_turnover(cache: &mut OccupiedCache, of_site: &Turnover) {
    cache.slabs_born.absorb(of_site.slabs_born);
    cache.pages_born.absorb(of_site.frames_born);
    cache.slabs_died.absorb(of_site.slabs_died);
    cache.pages_died.absorb(of_site.frames_died);
    cache.older_slabs_died.absorb(of_site.old_slabs_died);
    cache.older_pages_died.absorb(of_site.old_frames_died);
}

/// The cache of the frees at a site.
fn free_cache(traced: &Traced<'_, '_, '_>, site: u32) -> String {
    let interner = &traced.context.analysis.interner;
    let name = interner.frees.get(site).and_then(|free| free.cache).map(|cache| interner.name(cache));
    name.map_or_else(|| OLDER_KMALLOC.to_owned(), cache_name)
}

fn is_sparse(page: &SlabPage) -> bool {
    page.live > 0 && page.live_bytes <= page.peak_bytes / SPARSE
}

/// Counter for the filling of a slab: full if no object of its size fits, since its capacity is unknown.
fn filling<'f>(fillings: &'f mut Filling, page: &SlabPage, bytes: u64) -> &'f mut u64 {
    if page.live == 0 {
        return &mut fillings.empty;
    }
    let free = bytes.saturating_sub(page.live_bytes);
    let object = page.live_bytes / u64::from(page.live.max(1));
    if free < object {
        return &mut fillings.full;
    }
    match page.live_bytes / (bytes / 4).max(1) {
        0 => &mut fillings.to_25_percent,
        1 => &mut fillings.to_50_percent,
        2 => &mut fillings.to_75_percent,
        _ => &mut fillings.below_100_percent,
    }
}

/// Slabs at the end of each step.
fn steps(occupancy: &OccupancySums) -> Vec<OccupiedStep> {
    let (start, step) = (occupancy.start, occupancy.step);
    let (mut held, mut live) = (0i64, 0i64);
    (1..)
        .zip(&occupancy.steps)
        .map(|(number, change)| {
            held = held.saturating_add(change.held);
            live = live.saturating_add(change.live);
            OccupiedStep {
                time: start.saturating_add(step.saturating_mul(number)),
                bytes_held: held.max(0) as u64,
                bytes_live: live.max(0) as u64,
            }
        })
        .collect()
}

/// How full slab pages are.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Occupied {
    /// Share of the votes for the direct map base: pairs of a page allocation and the slab allocation behind it.
    pub direct_map_votes_percent: f64,
    /// Slabs by cache.
    pub caches: Vec<OccupiedCache>,
    /// Slabs of the trace at its end, by their filling.
    pub slabs_by_filling: Filling,
    /// Slabs of the trace over time.
    pub over_time: Vec<OccupiedStep>,
    /// Call sites with survivors on slab pages, in all.
    pub pinned_by_total: usize,
    /// Call sites with survivors on slab pages, those that pin most first.
    pub pinned_by: Vec<PinRow>,
}

impl Occupied {
    /// Sum over all caches.
    pub fn sum(&self, of: fn(&OccupiedCache) -> u64) -> u64 {
        self.caches.iter().map(of).fold(0, u64::saturating_add)
    }
}

/// Slabs of one cache.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OccupiedCache {
    /// Name of the cache.
    pub cache: String,
    /// `all`, `partly`, `none`, `unknown`: how many of its frees have events.
    pub frees_seen: &'static str,
    /// Bytes live at the end: at least, at most; `null` where events were lost.
    pub bytes_live_range: Option<[u64; 2]>,
    /// Slabs of the trace at its end.
    pub slabs: u64,
    /// Slabs without objects.
    pub slabs_empty: u64,
    /// Sparse slabs: at most a quarter of their highest live bytes is live.
    pub slabs_sparse: u64,
    /// Bytes of the slabs.
    pub bytes_held: u64,
    /// Bytes of the objects on them.
    pub bytes_live: u64,
    /// Objects on them.
    pub objects: u64,
    /// Slabs that were allocated.
    pub slabs_born: u64,
    /// Pages of the slabs that were allocated.
    pub pages_born: u64,
    /// Slabs of those that were freed.
    pub slabs_died: u64,
    /// Pages of those slabs that were freed.
    pub pages_died: u64,
    /// Slabs older than the trace that were freed.
    pub older_slabs_died: u64,
    /// Pages of slabs older than the trace that were freed.
    pub older_pages_died: u64,
    /// Pages older than the trace that hold objects of it.
    pub older_pages_in_use: u64,
    /// Bytes of those objects.
    pub older_pages_bytes_live: u64,
}

/// Slabs by their filling.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Filling {
    /// No object.
    pub empty: u64,
    /// Up to a quarter.
    pub to_25_percent: u64,
    /// Up to a half.
    pub to_50_percent: u64,
    /// Up to three quarters.
    pub to_75_percent: u64,
    /// With room for one more object.
    pub below_100_percent: u64,
    /// Without room.
    pub full: u64,
}

/// Slabs of the trace at the end of a step of time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OccupiedStep {
    /// The end of the step.
    pub time: u64,
    /// Bytes of slabs.
    pub bytes_held: u64,
    /// Bytes of objects on them.
    pub bytes_live: u64,
}

/// Survivors of one call site on slab pages of the trace.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PinRow {
    /// `kmalloc` or `cache`.
    pub api: &'static str,
    /// Address of the call site.
    pub call_site: Address,
    /// Function and offset, or the address.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// Survivors.
    pub objects: u64,
    /// Bytes of the survivors.
    pub bytes: u64,
    /// Bytes of their slabs that are not in use, shared equally among the objects of a slab.
    pub pinned_bytes: u64,
    /// Bytes not in use of sparse slabs (those with at most a quarter of their highest live bytes), shared in the same
    /// way.
    pub pinned_sparse_bytes: u64,
    /// Share in sparse slabs.
    pub sparse_slabs: f64,
    /// Survivors on sparse slabs.
    pub sparse_objects: u64,
    /// Mean age of survivors on sparse slabs, in the clock's unit, without those that were allocated before the clock ran.
    pub sparse_age_mean: Option<u64>,
    /// True if it pins at least 65,536 bytes on at least 16 sparse slabs.
    pub is_pinner: bool,
}

/// Smallest pinned bytes of a reported call site.
pub const PINNED_BYTES_MIN: f64 = 65_536.0;
/// Smallest number of its slabs.
pub const PINNED_SLABS_MIN: f64 = 16.0;

fn is_pinner(pins: &Pins) -> bool {
    pins.sparse_bytes() >= PINNED_BYTES_MIN && pins.sparse_slabs() >= PINNED_SLABS_MIN
}

/// Numbers of all call sites with survivors on slab pages, those that pin most first.
pub fn all_pinned(occupancy: &OccupancySums) -> Vec<(u32, &Pins)> {
    let mut all: Vec<(u32, &Pins)> = (0..).zip(&occupancy.pins).filter(|(_, p)| p.objects > 0).collect();
    all.sort_rows_by(|a, b| {
        b.1.sparse_bytes()
            .total_cmp(&a.1.sparse_bytes())
            .then(b.1.pinned_bytes().total_cmp(&a.1.pinned_bytes()))
            .then(a.0.cmp(&b.0))
    });
    all
}

/// Call sites with survivors on slab pages, those that pin most first, at most the limit; number of all of them.
fn pinned(traced: &Traced<'_, '_, '_>, occupancy: &OccupancySums) -> (Vec<PinRow>, usize) {
    let all = all_pinned(occupancy);
    let rows = all.iter().take(traced.context.limit).map(|(caller, pins)| pinned_row(traced, *caller, pins));
    (rows.collect(), all.len())
}

/// Row of the survivors of one call site.
pub fn pinned_row(traced: &Traced<'_, '_, '_>, caller: u32, pins: &Pins) -> PinRow {
    let (api, address, symbol) = traced.context.labels().caller(traced.context.analysis, caller);
    PinRow {
        api: api.name(),
        call_site: Address(address),
        symbol,
        objects: pins.objects,
        bytes: pins.bytes,
        pinned_bytes: pins.pinned_bytes().round() as u64,
        pinned_sparse_bytes: pins.sparse_bytes().round() as u64,
        sparse_slabs: pins.sparse_slabs(),
        sparse_objects: pins.sparse_objects,
        sparse_age_mean: pins.sparse_age.checked_div(pins.sparse_aged.into()).map(|age| age as u64),
        is_pinner: is_pinner(pins),
    }
}
