//! Sums by cache: by name where an event tells it, by size class for kmalloc.

use std::collections::{BTreeMap, HashMap};

use crate::ledger::totals::Totals;
use crate::pass::Analysis;
use crate::pass::weights::Estimate;
use crate::render::text::{count, escaped};
use crate::stream::{Api, NameId, Site};

/// What the objects of a row have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheKey {
    /// A size class of kmalloc, by bytes_alloc.
    Kmalloc(u64),
    /// A cache, by the name in events.
    Named(Vec<u8>),
    /// Caches that no event names, by bytes_req and bytes_alloc.
    Nameless(u64, u64),
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheRow {
    /// What the objects have in common.
    pub key: CacheKey,
    /// Sums.
    pub totals: Totals,
    /// What they stand for, where they are samples.
    pub estimate: Option<Estimate>,
    /// Smallest and largest bytes_alloc.
    pub object_size: (u64, u64),
    /// Allocations whose cache is known from other objects of the same call site, not from their own events.
    pub inferred: u64,
}

/// Sums by cache.
///
/// Before 6.18 an allocation does not tell its cache; its free does (5.12 and later). Objects without either take the
/// name that most objects of their site were freed under.
pub fn by_cache(result: &Analysis) -> Vec<CacheRow> {
    let mut rows: BTreeMap<CacheKey, CacheRow> = BTreeMap::new();
    for part in parts_of(result) {
        let Part { site, totals, key, .. } = part;
        let size = site.bytes_alloc;
        let row = rows.entry(key.clone()).or_insert_with(|| CacheRow {
            key,
            totals: Totals::default(),
            estimate: None,
            object_size: (size, size),
            inferred: 0,
        });
        row.totals += totals;
        result.weights.add(site, totals, &mut row.estimate);
        row.object_size = (row.object_size.0.min(size), row.object_size.1.max(size));
        row.inferred += if part.is_inferred { totals.alloc_events } else { 0 };
    }
    rows.into_values().collect()
}

/// What a site brought to a cache.
#[derive(Debug, Clone)]
pub struct Part<'r> {
    /// Number of the site.
    pub number: u32,
    /// The site.
    pub site: &'r Site,
    /// The cache.
    pub key: CacheKey,
    /// Whether other objects of the site tell the cache, not their own events.
    pub is_inferred: bool,
    /// Sums.
    pub totals: &'r Totals,
}

/// The sums of all sites, cache by cache.
pub fn parts_of(result: &Analysis) -> impl Iterator<Item = Part<'_>> {
    let usual = usual_names(result);
    let sites = result.balance.sites.iter().enumerate();
    let sites = sites.filter_map(move |(number, parts)| {
        let site = result.interner.sites.get(number as u32)?;
        Some((number as u32, site, usual.get(number).copied().flatten(), parts))
    });
    sites.flat_map(move |(number, site, usual, parts)| {
        parts.iter().map(move |(name, totals)| {
            let key = match (site.api, name.or(usual)) {
                (Api::Kmalloc, _) => CacheKey::Kmalloc(site.bytes_alloc),
                (Api::Cache, Some(name)) => CacheKey::Named(result.interner.name(name).to_vec()),
                (Api::Cache, None) => CacheKey::Nameless(site.bytes_req, site.bytes_alloc),
            };
            let is_inferred = site.api == Api::Cache && name.is_none() && usual.is_some();
            Part { number, site, key, is_inferred, totals }
        })
    })
}

/// For each site the cache that most objects of its place and size were freed to; flags and node do not matter for it.
pub fn usual_names(result: &Analysis) -> Vec<Option<NameId>> {
    let interner = &result.interner;
    let place = |s: &Site| (s.api, s.call_site, s.bytes_req, s.bytes_alloc);
    let mut counts: HashMap<_, BTreeMap<NameId, u64>> = HashMap::new();
    for (site, parts) in interner.sites.items().iter().zip(&result.balance.sites) {
        let counts = counts.entry(place(site)).or_default();
        for (name, totals) in parts {
            if let Some(name) = name {
                *counts.entry(*name).or_default() += totals.frees_matched.max(totals.alloc_events);
            }
        }
    }
    // Names decide a tie.
    let best = |counts: &BTreeMap<NameId, u64>| {
        let best = counts.iter().max_by_key(|&(&id, &count)| (count, std::cmp::Reverse(interner.name(id))));
        best.map(|(id, _)| *id)
    };
    interner.sites.items().iter().map(|site| counts.get(&place(site)).and_then(best)).collect()
}

/// Name of a cache or size class. Beyond two pages kmalloc takes whole pages (KMALLOC_MAX_CACHE_SIZE,
/// include/linux/slab.h, SLUB).
pub fn name_of(key: &CacheKey, result: &Analysis) -> String {
    match key {
        CacheKey::Kmalloc(size) if *size > 2 * result.page_size.0 => {
            format!("kmalloc, {} byte pages", count(*size))
        }
        CacheKey::Kmalloc(size) => result.size_classes.name(*size),
        CacheKey::Named(name) => escaped(name),
        CacheKey::Nameless(req, _) => format!("? ({req} byte objects)"),
    }
}
