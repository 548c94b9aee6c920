//! The results that all parts of the report are computed from.

use std::collections::BTreeMap;

use crate::pass::Analysis;
use crate::pass::caches::{CacheKey, usual_names};
use crate::pass::coverage::Coverage;
use crate::render::text::escaped;
use crate::reports::common::Context;
use crate::reports::common::labels::Labels;
use crate::stream::{Api, NameId, Site};

/// The results that all parts are computed from.
pub struct Traced<'v, 's, 'd> {
    /// The trace and the selection.
    pub context: &'v Context<'s, 'd>,
    /// Results of the pass.
    pub analysis: &'v Analysis,
    /// Names.
    pub labels: &'v Labels<'s, 'd>,
    /// Name of the cache of each site.
    pub caches: &'v [String],
    /// By number of the site, true if objects that seem live are; `None` where events were lost.
    pub certain: Option<Vec<bool>>,
}

impl Traced<'_, '_, '_> {
    /// The first of the attached files that is there.
    pub fn attachment(&self, names: &[&str]) -> Option<&[u8]> {
        names.iter().find_map(|name| self.context.session.trace.metadata().attachment(name))
    }

    /// Of that many live bytes of a site, those that are live for certain; `None` where events were lost.
    pub fn least(&self, site: u32, live: u64) -> Option<u64> {
        let is_certain = self.certain.as_ref()?.get(site as usize) == Some(&true);
        Some(if is_certain { live } else { 0 })
    }

    /// By name of the cache: whether frees have events, and bytes that wait for a grace period.
    pub fn coverage(&self) -> BTreeMap<&str, (Coverage, u64)> {
        let mut out: BTreeMap<&str, (Coverage, u64)> = BTreeMap::new();
        for (site, parts) in (0u32..).zip(&self.analysis.balance.sites) {
            for (_, totals) in parts {
                let sum = out.entry(self.cache(site)).or_default();
                *sum = (sum.0.plus(Coverage::of(totals)), sum.1.saturating_add(totals.bytes_waiting));
            }
        }
        out
    }

    /// Name of the cache of a site.
    pub fn cache(&self, site: u32) -> &str {
        self.caches.get(site as usize).map_or("?", String::as_str)
    }
}

/// The cache of each site: as its events tell, or as most frees of the site do; by size for kmalloc.
pub fn cache_names(result: &Analysis) -> Vec<String> {
    let usual = usual_names(result);
    let sites = result.interner.sites.items().iter().zip(usual);
    let key = |(site, usual): (&Site, Option<NameId>)| match (site.api, site.cache.or(usual)) {
        (Api::Kmalloc, _) => CacheKey::Kmalloc(site.bytes_alloc),
        (Api::Cache, Some(name)) => CacheKey::Named(result.interner.name(name).to_vec()),
        (Api::Cache, None) => CacheKey::Nameless(site.bytes_req, site.bytes_alloc),
    };
    sites
        .map(|pair| match key(pair) {
            CacheKey::Kmalloc(size) => result.size_classes.name(size),
            CacheKey::Named(name) => escaped(&name),
            CacheKey::Nameless(req, _) => format!("? ({req} byte objects)"),
        })
        .collect()
}
