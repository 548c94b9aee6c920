//! Sums by cache: by name if an event names it, by size class for kmalloc.
//!
//! Sums of the ledger are by site and, where a free named it, by cache. Here they become sums by cache, with one name
//! for a cache (`trace::names`). Sites whose events do not name a cache have that of most of their frees. Reports,
//! exports, conditions and the page use it.

use std::collections::{BTreeMap, HashMap};

use crate::ledger::totals::Totals;
use crate::pass::Analysis;
use crate::pass::weights::Estimate;
use crate::stream::{Api, Interner, NameId, Site};
use crate::trace::names::{CacheKey, SizeClasses};

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheTotals {
    pub key: CacheKey,
    /// Sums.
    pub totals: Totals,
    /// Estimate for all events, if they are samples.
    pub estimate: Option<Estimate>,
    /// Smallest and largest bytes_alloc.
    pub object_size: (u64, u64),
    /// Allocations whose cache is inferred from other objects of the same call site, not named by their own events.
    pub inferred: u64,
}

/// Sums by cache.
///
/// Before 6.18 the event of an allocation does not name its cache; that of its free does (5.12 and later). Objects
/// without either get the name of most frees of their site.
pub fn by_cache(result: &Analysis) -> Vec<CacheTotals> {
    let mut rows: BTreeMap<CacheKey, CacheTotals> = BTreeMap::new();
    for part in parts_of(result) {
        let CachePart { site, totals, key, .. } = part;
        let size = site.bytes_alloc;
        let row = rows.entry(key.clone()).or_insert_with(|| CacheTotals {
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

/// Sums of one site in one cache.
#[derive(Debug, Clone)]
pub struct CachePart<'r> {
    /// Number of the site.
    pub number: u32,
    pub site: &'r Site,
    /// The cache.
    pub key: CacheKey,
    /// True if the cache is inferred from other objects of the site.
    pub is_inferred: bool,
    /// Sums.
    pub totals: &'r Totals,
}

/// Sums of all sites and caches.
pub fn parts_of(result: &Analysis) -> impl Iterator<Item = CachePart<'_>> {
    let usual = usual_names(result);
    let sites = result.balance.sites.iter().enumerate();
    let sites = sites.filter_map(move |(number, parts)| {
        let site = result.interner.sites.get(number as u32)?;
        Some((number as u32, site, usual.get(number).copied().flatten(), parts))
    });
    sites.flat_map(move |(number, site, usual, parts)| {
        parts.iter().map(move |(name, totals)| {
            let key = key_of(site, name.or(usual), &result.interner);
            let is_inferred = site.api == Api::Cache && name.is_none() && usual.is_some();
            CachePart { number, site, key, is_inferred, totals }
        })
    })
}

/// Cache of most freed objects of the call site and size of each site, in the whole trace; flags and node are ignored.
pub fn usual_names(result: &Analysis) -> Vec<Option<NameId>> {
    let interner = &result.interner;
    let key = |s: &Site| (s.api, s.call_site, s.bytes_req, s.bytes_alloc);
    let mut counts: HashMap<_, BTreeMap<NameId, u64>> = HashMap::new();
    for (site, parts) in interner.sites.items().iter().zip(&result.balance.sites) {
        let counts = counts.entry(key(site)).or_default();
        for (name, totals) in parts {
            if let Some(name) = name {
                *counts.entry(*name).or_default() += totals.frees_matched.max(totals.alloc_events);
            }
        }
    }
    for ((number, name), frees) in &result.balance.named_outside {
        if let Some(site) = interner.sites.get(*number) {
            *counts.entry(key(site)).or_default().entry(*name).or_default() += frees;
        }
    }
    // A tie is decided by name.
    let best = |counts: &BTreeMap<NameId, u64>| {
        let best = counts.iter().max_by_key(|&(&id, &count)| (count, std::cmp::Reverse(interner.name(id))));
        best.map(|(id, _)| *id)
    };
    let best: HashMap<_, Option<NameId>> = counts.iter().map(|(key, counts)| (*key, best(counts))).collect();
    interner.sites.items().iter().map(|site| best.get(&key(site)).copied().flatten()).collect()
}

/// The cache of an object; `name`: what its event names, or the usual cache of its site.
pub fn key_of(site: &Site, name: Option<NameId>, interner: &Interner) -> CacheKey {
    match (site.api, name) {
        (Api::Kmalloc, _) => CacheKey::Kmalloc(site.bytes_alloc),
        (Api::Cache, Some(name)) => CacheKey::Named(interner.name(name).to_vec()),
        (Api::Cache, None) => CacheKey::Nameless(site.bytes_req, site.bytes_alloc),
    }
}

/// Caches of objects, by their sites.
pub struct CacheNames<'r> {
    interner: &'r Interner,
    usual: Vec<Option<NameId>>,
    classes: SizeClasses,
}

impl<'r> CacheNames<'r> {
    /// Caches of a pass.
    pub fn of(result: &'r Analysis) -> Self {
        Self { interner: &result.interner, usual: usual_names(result), classes: result.size_classes }
    }

    /// These caches with other names of size classes.
    pub fn in_style(self, classes: SizeClasses) -> Self {
        Self { classes, ..self }
    }

    /// Name in events of the cache of a site's object; `own`: that of the object's own events.
    pub fn named(&self, site: u32, own: Option<NameId>) -> Option<NameId> {
        let of_site = || self.interner.sites.get(site).and_then(|site| site.cache);
        own.or_else(of_site).or_else(|| self.usual.get(site as usize).copied().flatten())
    }

    /// The cache of a site's object; `None`: the number is of no site.
    pub fn key(&self, site: u32, own: Option<NameId>) -> Option<CacheKey> {
        let of = self.interner.sites.get(site)?;
        Some(key_of(of, self.named(site, own), self.interner))
    }

    /// Shown name of the cache of a site's object.
    pub fn shown(&self, site: u32, own: Option<NameId>) -> String {
        self.key(site, own).map_or_else(|| "?".to_owned(), |key| key.shown(self.classes))
    }

    /// Shown names of the caches of all sites.
    pub fn of_sites(&self) -> Vec<String> {
        (0u32..).zip(self.interner.sites.items()).map(|(site, _)| self.shown(site, None)).collect()
    }
}
