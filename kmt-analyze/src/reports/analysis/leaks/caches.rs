//! Caches of the live objects of a call site: one that allocates objects of several sizes uses several.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::collect::growth::SurvivorSums;
use crate::pass::Analysis;
use crate::pass::caches::CacheNames;
use crate::reports::common::ReportContext;
use crate::stream::{Api, NameId};
use crate::trace::aliases::Aliases;
use crate::trace::names::cache_name;

/// Live objects of a call site in one cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheShare {
    /// Cache or size class.
    pub cache: String,
    /// Survivors.
    pub survivors: u64,
    /// Other names of the cache, at most 128, which the kernel has merged; `null`: unknown.
    pub aliases: Option<Vec<String>>,
}

/// Caches of live objects, with their other names.
pub struct LiveCaches<'r> {
    result: &'r Analysis,
    names: CacheNames<'r>,
    aliases: Aliases,
}

impl<'r> LiveCaches<'r> {
    /// Caches in a trace.
    pub fn new(context: &ReportContext<'r, '_>) -> Self {
        let (session, result) = (context.session, context.analysis);
        Self { result, names: CacheNames::of(result), aliases: Aliases::of(session.trace.metadata()) }
    }

    /// Caches of live objects, those with most first.
    pub fn of(&self, survival: &SurvivorSums) -> Vec<CacheShare> {
        let mut found: BTreeMap<(String, Option<NameId>), u64> = BTreeMap::new();
        for (number, &survivors) in survival.sites.iter() {
            let Some(site) = self.result.interner.sites.get(number) else { continue };
            let named = self.names.named(number, None).filter(|_| site.api == Api::Cache);
            *found.entry((self.names.shown(number, None), named)).or_default() += survivors;
        }
        let share = |((cache, named), survivors): ((String, Option<NameId>), u64)| CacheShare {
            aliases: named.map(|name| self.aliases(name)).unwrap_or_default(),
            cache,
            survivors,
        };
        let mut shares: Vec<CacheShare> = found.into_iter().map(share).collect();
        shares.sort_by_key(|share| std::cmp::Reverse(share.survivors));
        shares
    }

    fn aliases(&self, name: NameId) -> Option<Vec<String>> {
        let others = self.aliases.others(self.result.interner.name(name))?;
        Some(others.into_iter().map(cache_name).collect())
    }
}

/// The first cache, and the number of others: `kmalloc-16 + 5`.
pub fn label(caches: &[CacheShare]) -> String {
    match caches {
        [] => "?".to_owned(),
        [only] => only.cache.clone(),
        [first, others @ ..] => format!("{} + {}", first.cache, others.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_share_and_the_number_of_others() {
        let share = |cache: &str| CacheShare { cache: cache.into(), survivors: 1, aliases: None };
        assert_eq!(label(&[]), "?");
        assert_eq!(label(&[share("dentry")]), "dentry");
        assert_eq!(label(&[share("kmalloc-16"), share("kmalloc-32"), share("kmalloc-64")]), "kmalloc-16 + 2");
    }
}
