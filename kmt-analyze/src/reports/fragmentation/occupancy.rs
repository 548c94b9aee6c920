//! How full slab pages are.

use std::collections::BTreeMap;

use serde::Serialize;

use super::pinned::{self, PinRow};
use super::traced::Traced;
use crate::collect::occupancy::{Holds, OccupancySums, SPARSE, SlabPage, Turnover};
use crate::pass::coverage::{Coverage, Seen};
use crate::reports::common::basis::{Basis, Input};

/// How full slab pages are, or why that is not known.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum OccupancyTables {
    /// It is not known.
    Refused {
        /// Why it is not.
        refused: String,
    },
    /// It is known.
    Found(Box<Occupied>),
}

/// How full slab pages are.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Occupied {
    /// Share of the votes by which page frames were placed in memory.
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
    /// Call sites that pin slabs.
    #[serde(skip)]
    pub pinners: usize,
}

/// Slabs of one cache.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OccupiedCache {
    /// Name of the cache.
    pub cache: String,
    /// `all`, `partly`, `none`, `unknown`: how many of its frees have events.
    pub frees_seen: &'static str,
    /// Bytes live at the end: at least, at most; `null` where events were lost.
    pub bytes_live_range: Option<[u64; 2]>,
    /// Slabs of the trace that are there at its end.
    pub slabs: u64,
    /// Those without objects.
    pub slabs_empty: u64,
    /// Those that are sparse: a quarter or less of the bytes that were once live there is.
    pub slabs_sparse: u64,
    /// Bytes of the slabs.
    pub bytes_held: u64,
    /// Bytes of the objects on them.
    pub bytes_live: u64,
    /// Objects on them.
    pub objects: u64,
    /// Slabs that were allocated.
    pub slabs_born: u64,
    /// Their pages.
    pub pages_born: u64,
    /// Slabs of those that were freed.
    pub slabs_died: u64,
    /// Their pages.
    pub pages_died: u64,
    /// Slabs older than the trace that were freed.
    pub older_slabs_died: u64,
    /// Their pages.
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

/// Sums of the slabs of one cache.
#[derive(Debug, Clone, Copy, Default)]
struct CacheSums {
    turnover: Turnover,
    /// Slabs of the trace that are there at the end.
    slabs: u64,
    held: u64,
    live: u64,
    empty: u64,
    sparse: u64,
    objects: u64,
    /// Frames that are older than the trace and hold objects of it.
    old_frames: u64,
    old_live: u64,
}

/// Why it is not known how full slab pages are, if so.
fn refusal(traced: &Traced<'_, '_, '_>) -> Option<String> {
    if let Some(hashed) = traced.context.session.no_addresses() {
        return Some(hashed.to_owned());
    }
    let why = "page frames could not be placed in memory (it takes page events, and five votes that agree)";
    let is_placed = traced.analysis.direct_map.is_some();
    let lacks = || Basis::of(traced.context.session, traced.analysis).lacks(Input::SlabLives);
    (!is_placed).then(|| why.to_owned()).or_else(lacks)
}

/// Rows of a trace.
pub fn of(traced: &Traced<'_, '_, '_>, occupancy: &OccupancySums) -> OccupancyTables {
    let (None, Some(map)) = (refusal(traced), traced.analysis.direct_map) else {
        return OccupancyTables::Refused { refused: refusal(traced).unwrap_or_default() };
    };
    let (sums, slabs_by_filling) = sums(traced, occupancy);
    let mut sums: Vec<(&str, CacheSums)> = sums.into_iter().collect();
    let unused = |sums: &CacheSums| sums.held - sums.live.min(sums.held);
    sums.sort_by(|a, b| (unused(&b.1), a.0).cmp(&(unused(&a.1), b.0)));
    let coverage = traced.coverage();
    let (pinned_by, pinned_by_total, pinners) = pinned::of(traced, occupancy);
    let caches = sums.iter().map(|(name, sums)| cache(traced, name, sums, coverage.get(name)));
    OccupancyTables::Found(Box::new(Occupied {
        direct_map_votes_percent: map.share_percent(),
        caches: caches.collect(),
        slabs_by_filling,
        over_time: steps(occupancy),
        pinned_by_total,
        pinned_by,
        pinners,
    }))
}

/// Sums by cache, and all slabs by their filling.
fn sums<'t>(
    traced: &'t Traced<'_, '_, '_>,
    occupancy: &OccupancySums,
) -> (BTreeMap<&'t str, CacheSums>, Filling) {
    let page_size = traced.analysis.page_size.0;
    let mut caches: BTreeMap<&str, CacheSums> = BTreeMap::new();
    let mut fillings = Filling::default();
    for page in &occupancy.pages {
        let Holds::Site(site) = page.holds else { continue };
        let cache = caches.entry(traced.cache(site)).or_default();
        if page.is_old {
            cache.old_frames += 1;
            cache.old_live = cache.old_live.saturating_add(page.live_bytes);
            continue;
        }
        let bytes = page_size << page.order;
        cache.slabs += 1;
        cache.held = cache.held.saturating_add(bytes);
        cache.live = cache.live.saturating_add(page.live_bytes);
        cache.objects += u64::from(page.live);
        cache.empty += u64::from(page.live == 0);
        cache.sparse += u64::from(is_sparse(page));
        *filling(&mut fillings, page, bytes) += 1;
    }
    let is_any = |turnover: &&Turnover| **turnover != Turnover::default();
    for (site, turnover) in (0u32..).zip(&occupancy.turnover).filter(|(_, t)| is_any(t)) {
        caches.entry(traced.cache(site)).or_default().turnover += turnover;
    }
    for (site, turnover) in (0u32..).zip(&occupancy.turnover_by_free).filter(|(_, t)| is_any(t)) {
        caches.entry(free_cache(traced, site)).or_default().turnover += turnover;
    }
    (caches, fillings)
}

/// The cache that frees at a site tell.
fn free_cache<'t>(traced: &'t Traced<'_, '_, '_>, site: u32) -> &'t str {
    let interner = &traced.analysis.interner;
    let name = interner.frees.get(site).and_then(|free| free.cache).map(|cache| interner.name(cache));
    name.and_then(|name| std::str::from_utf8(name).ok()).unwrap_or("? (kfree of older objects)")
}

fn is_sparse(page: &SlabPage) -> bool {
    page.live > 0 && page.live_bytes <= page.peak_bytes / SPARSE
}

/// The filling of a slab: it is full if no object like its own fits, since its room for objects is not known.
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

fn cache(
    traced: &Traced<'_, '_, '_>,
    name: &str,
    sums: &CacheSums,
    coverage: Option<&(Coverage, u64)>,
) -> OccupiedCache {
    let (seen, waiting) =
        coverage.map_or((Seen::Unknown, 0), |(coverage, waiting)| (coverage.seen(), *waiting));
    let least = if seen == Seen::All { sums.live } else { 0 };
    OccupiedCache {
        cache: name.to_owned(),
        frees_seen: seen.name(),
        bytes_live_range: traced.certain.as_ref().map(|_| [least, sums.live.saturating_add(waiting)]),
        slabs: sums.slabs,
        slabs_empty: sums.empty,
        slabs_sparse: sums.sparse,
        bytes_held: sums.held,
        bytes_live: sums.live,
        objects: sums.objects,
        slabs_born: sums.turnover.slabs_born,
        pages_born: sums.turnover.frames_born,
        slabs_died: sums.turnover.slabs_died,
        pages_died: sums.turnover.frames_died,
        older_slabs_died: sums.turnover.old_slabs_died,
        older_pages_died: sums.turnover.old_frames_died,
        older_pages_in_use: sums.old_frames,
        older_pages_bytes_live: sums.old_live,
    }
}
