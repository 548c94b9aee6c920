//! The account of slab by cache: here events show the frees of older objects too.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::account::{Account, Amounts, add};
use crate::pass::Analysis;
use crate::stream::Api;
use crate::trace::names::{cache_name, is_kmalloc};

/// Name of all caches of kmalloc: kfree has neither name nor size of an object that was allocated before the trace.
pub const KMALLOC: &str = "kmalloc";

/// Slab objects by cache.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheAccounts {
    /// Number of caches with objects.
    pub caches_total: usize,
    /// Caches whose events explain the change to the object.
    pub caches_exact: usize,
    /// Number of caches that changed or have live objects in the trace.
    pub rows_total: usize,
    /// These caches: those with most that no event shows first, then the largest change or live amount.
    pub rows: Vec<CacheAccount>,
}

/// A cache in the account.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheAccount {
    /// Name of the cache; `kmalloc`: all size classes.
    pub name: String,
    /// Objects of the cache.
    #[serde(flatten)]
    pub account: Account,
    /// Frees in the trace of objects that were allocated before it, by events. kfree counts for kmalloc.
    pub older_freed_by_events: i64,
    /// `older_freed_by_events` - `older_freed`: objects of now that no event explains; negative: objects that are
    /// gone.
    pub unseen: i64,
}

/// Name of a cache in the account.
pub fn name_of(cache: &[u8]) -> String {
    if is_kmalloc(cache) { KMALLOC.to_owned() } else { cache_name(cache) }
}

/// Frees of objects that were allocated before the trace, by cache; `unmatched`: frees without a life, by their site.
pub fn older_frees(analysis: &Analysis, unmatched: &[u64]) -> Amounts {
    let mut freed = Amounts::new();
    for (site, number) in analysis.interner.frees.items().iter().zip(unmatched) {
        let cache = match (site.api, site.cache) {
            (Api::Kmalloc, _) => KMALLOC.to_owned(),
            (Api::Cache, Some(cache)) => name_of(analysis.interner.name(cache)),
            (Api::Cache, None) => continue,
        };
        add(&mut freed, cache, i64::try_from(*number).unwrap_or(i64::MAX));
    }
    freed
}

/// Between the cache and the call site in the keys of an account. No shown name has one.
pub const APART: char = '\t';

/// Sums of the account of call sites, by cache and [`APART`], beside the frees of older objects.
pub fn compute<'a>(
    sites: impl Iterator<Item = (&'a str, Account)>,
    older_frees: &Amounts,
    limit: usize,
) -> CacheAccounts {
    let mut caches: BTreeMap<&str, Account> = BTreeMap::new();
    for (name, account) in sites {
        let cache = name.split(APART).next().unwrap_or(name);
        caches.entry(cache).or_default().add(&account);
    }
    for cache in older_frees.keys() {
        caches.entry(cache).or_default();
    }
    let row = |(name, account): (&str, Account)| {
        let older_freed_by_events = older_frees.get(name).copied().unwrap_or(0);
        let unseen = older_freed_by_events.saturating_sub(account.older_freed);
        CacheAccount { name: name.to_owned(), account, older_freed_by_events, unseen }
    };
    let caches_total = caches.len();
    let mut rows: Vec<CacheAccount> = caches.into_iter().map(row).collect();
    let caches_exact = rows.iter().filter(|row| row.unseen == 0).count();
    rows.retain(|row| row.account.is_moved() || row.unseen != 0);
    rows.sort_by_key(|row| Reverse((row.unseen.unsigned_abs(), row.account.size())));
    let rows_total = rows.len();
    rows.truncate(limit);
    CacheAccounts { caches_total, caches_exact, rows_total, rows }
}
