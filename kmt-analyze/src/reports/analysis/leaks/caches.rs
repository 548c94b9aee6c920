//! Caches of the live objects of a call site: one that allocates objects of several sizes uses several.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::collect::growth::SurvivorSums;
use crate::pass::Analysis;
use crate::pass::caches::usual_names;
use crate::render::text::escaped;
use crate::reports::common::ReportContext;
use crate::reports::common::rows::text;
use crate::stream::{Api, NameId};
use crate::trace::aliases::Aliases;

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

/// Names of caches.
pub struct CacheNames<'r> {
    result: &'r Analysis,
    usual: Vec<Option<NameId>>,
    aliases: Aliases,
}

impl<'r> CacheNames<'r> {
    /// Names in a trace.
    pub fn new(context: &ReportContext<'r, '_>) -> Self {
        let (session, result) = (context.session, context.analysis);
        Self { result, usual: usual_names(result), aliases: Aliases::of(session.trace.metadata()) }
    }

    /// Caches of live objects, those with most first; `?`: the trace does not name it.
    pub fn of(&self, survival: &SurvivorSums, api: Api) -> Vec<CacheShare> {
        let mut found: BTreeMap<(String, Option<NameId>), u64> = BTreeMap::new();
        for (number, &survivors) in survival.sites.iter() {
            let Some(site) = self.result.interner.sites.get(number) else { continue };
            let named = site.cache.or_else(|| self.usual.get(number as usize).copied().flatten());
            let (name, named) = match (api, named) {
                (Api::Kmalloc, _) => (self.result.size_classes.name(site.bytes_alloc), None),
                (_, Some(name)) => (escaped(self.result.interner.name(name)), Some(name)),
                _ => ("?".to_owned(), None),
            };
            *found.entry((name, named)).or_default() += survivors;
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
        Some(others.into_iter().map(text).collect())
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
