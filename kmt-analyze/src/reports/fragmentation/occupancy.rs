//! Occupancy of slab pages.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::occupancy_rows::{Filling, Occupied, OccupiedCache, OccupiedStep};
use super::pinned;
use super::traced::Traced;
use crate::collect::occupancy::{CacheEvidence, OccupancySums, SPARSE, SlabPage, Turnover};
use crate::collect::sums::Sums;
use crate::pass::coverage::FreeEvents;
use crate::reports::common::answer::MaybeRefused;
use crate::reports::common::basis::Input;
use crate::trace::names::{OLDER_KMALLOC, cache_name};

/// The reason why it is unknown how full slab pages are, if it is.
pub fn refusal(traced: &Traced<'_, '_, '_>) -> Option<String> {
    if let Some(hashed) = traced.context.session.no_addresses() {
        return Some(hashed.to_owned());
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
    caches.sort_by_key(|cache| Reverse(cache.bytes_held.saturating_sub(cache.bytes_live)));
    let (pinned_by, pinned_by_total) = pinned::compute(traced, occupancy);
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
