//! Sums by cache: by name where an event tells it, by size class for kmalloc.

use std::collections::BTreeMap;

use super::pass::Result;
use crate::stream::{Api, Interner, NameId};
use super::totals::Totals;

/// What the objects of a row have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheKey {
    /// A size class of kmalloc, by bytes_alloc.
    Kmalloc(u64),
    /// A cache, by the name in events.
    Named(Vec<u8>),
    /// Caches that no event names, by bytes_req and bytes_alloc.
    Nameless(u64, u64),
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheRow {
    /// What the objects have in common.
    pub key: CacheKey,
    /// Sums.
    pub totals: Totals,
    /// Smallest and largest bytes_alloc.
    pub object_size: (u64, u64),
    /// Allocations whose cache is known from other objects of the same call site, not from their own events.
    pub inferred: u64,
}

/// Sums by cache.
///
/// Before 6.18 an allocation does not tell its cache; its free does (5.12 and later). Objects without either take the
/// name that most objects of their site were freed under.
pub fn by_cache(result: &Result) -> Vec<CacheRow> {
    let mut rows: BTreeMap<CacheKey, CacheRow> = BTreeMap::new();
    for (number, parts) in result.balance.sites.iter().enumerate() {
        let Some(site) = result.interner.sites.get(number as u32) else { continue };
        let usual = usual_name(&result.interner, parts);
        for (name, totals) in parts {
            let key = match (site.api, name.or(usual)) {
                (Api::Kmalloc, _) => CacheKey::Kmalloc(site.bytes_alloc),
                (Api::Cache, Some(name)) => CacheKey::Named(result.interner.name(name).to_vec()),
                (Api::Cache, None) => CacheKey::Nameless(site.bytes_req, site.bytes_alloc),
            };
            let size = site.bytes_alloc;
            let row = rows.entry(key.clone()).or_insert_with(|| CacheRow {
                key,
                totals: Totals::default(),
                object_size: (size, size),
                inferred: 0,
            });
            row.totals += totals;
            row.object_size = (row.object_size.0.min(size), row.object_size.1.max(size));
            if site.api == Api::Cache && name.is_none() && usual.is_some() {
                row.inferred += totals.alloc_events;
            }
        }
    }
    rows.into_values().collect()
}

/// The cache that most objects of a site were freed to.
pub fn usual_name(interner: &Interner, parts: &[(Option<NameId>, Totals)]) -> Option<NameId> {
    let named = parts
        .iter()
        .filter_map(|(name, totals)| Some(((*name)?, totals.frees_matched.max(totals.alloc_events))));
    // Names decide a tie, not numbers: those depend on which core was first.
    named.max_by_key(|&(id, count)| (count, std::cmp::Reverse(interner.name(id)))).map(|(id, _)| id)
}
