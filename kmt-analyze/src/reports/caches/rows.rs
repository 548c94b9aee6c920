//! Sums by cache and size class.

use serde::Serialize;

use crate::ledger::totals::Totals;
use crate::pass::Analysis;
use crate::pass::caches::{CacheTotals, by_cache};
use crate::pass::coverage::bounds::LiveSpan;
use crate::pass::weights::in_order;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Basis;
use crate::reports::common::live_bounds::is_doubtful;
use crate::reports::common::recorded_sums::RecordedSums;
use crate::reports::common::rows::{Estimated, LiveRange, SlabSums};
use crate::reports::common::sorting::{SortKey, sort_rows};
use crate::stream::Api;
use crate::trace::aliases::Aliases;
use crate::trace::names::{CacheKey, cache_name};

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheRows {
    /// Number of caches and size classes.
    pub caches_total: usize,
    /// Caches and size classes.
    pub caches: Vec<CacheRow>,
}

/// Sums of one cache or size class.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheRow {
    /// Sums of its objects.
    #[serde(flatten)]
    pub sums: SlabSums,
    /// Sums that its samples represent; `null`: no sample represents more than one event.
    pub estimated: Option<Estimated>,
    /// Bounds of its live figures.
    #[serde(flatten)]
    pub live_range: LiveRange,
    /// Name of the cache or size class.
    pub cache: String,
    /// `cache`, `kmalloc` for a size class, `nameless`.
    pub kind: &'static str,
    /// Other names of the same cache, at most 128: SLUB merges caches of like size. `null`: not known.
    pub aliases: Option<Vec<String>>,
    /// Smallest bytes_alloc.
    pub object_size_min: u64,
    /// Largest bytes_alloc.
    pub object_size_max: u64,
    /// Allocations whose cache is known only from other objects of their call site.
    pub alloc_events_inferred: u64,
}

/// All caches with their names.
fn caches(analysis: &Analysis) -> impl Iterator<Item = (String, CacheTotals)> {
    let caches = by_cache(analysis).into_iter().filter(|cache| cache.totals != Totals::default());
    caches.map(|cache| (cache.key.shown(analysis.size_classes), cache))
}

/// Rows of the caches whose name contains `filter`.
pub fn compute(context: &ReportContext<'_, '_>, sort: &[SortKey], filter: Option<&str>) -> CacheRows {
    let mut all: Vec<(String, CacheTotals)> = caches(context.analysis)
        .filter(|(name, _)| filter.is_none_or(|filter| name.contains(filter)))
        .collect();
    let number = |cache: &CacheTotals, key: SortKey| key.number(&in_order(cache.estimate, cache.totals));
    sort_rows(&mut all, sort, |(_, cache), key| number(cache, key), |a, b| a.0.cmp(&b.0));
    let (aliases, basis) = (Aliases::of(context.session.trace.metadata()), context.basis());
    let live = context.live_bounds().bounds.by_cache();
    let row = |(name, cache): &(String, CacheTotals)| {
        row(name, cache, &aliases, recorded(cache, basis), live.get(&cache.key).copied().flatten())
    };
    CacheRows { caches_total: all.len(), caches: all.iter().take(context.limit).map(row).collect() }
}

/// All caches whose name contains the text of `--cache`, shown or not.
pub struct AllCaches {
    /// Sums of their objects.
    pub sums: SlabSums,
    /// Any has frees without events.
    pub has_doubts: bool,
    /// No event names some of them.
    pub has_nameless: bool,
}

impl AllCaches {
    /// Those of the trace.
    pub fn of(context: &ReportContext<'_, '_>, filter: Option<&str>) -> Self {
        let mut sum = Totals::default();
        let (mut has_doubts, mut has_nameless) = (false, false);
        for (name, cache) in caches(context.analysis) {
            if filter.is_none_or(|filter| name.contains(filter)) {
                sum += &cache.totals;
                has_doubts |= is_doubtful(&cache.totals);
                has_nameless |= matches!(cache.key, CacheKey::Nameless(..));
            }
        }
        let sums = SlabSums::of(&sum, RecordedSums::slab(context.basis(), None));
        Self { sums, has_doubts, has_nameless }
    }
}

/// Names of all caches.
pub fn names(context: &ReportContext<'_, '_>) -> Vec<String> {
    caches(context.analysis).map(|(name, _)| name).collect()
}

/// Sums of a cache whose events were recorded.
fn recorded(cache: &CacheTotals, basis: &Basis) -> RecordedSums {
    let api = if matches!(cache.key, CacheKey::Kmalloc(_)) { Api::Kmalloc } else { Api::Cache };
    RecordedSums::slab(basis, Some(api))
}

fn row(
    name: &str,
    cache: &CacheTotals,
    aliases: &Aliases,
    recorded: RecordedSums,
    live: Option<LiveSpan>,
) -> CacheRow {
    let (kind, same) = match &cache.key {
        CacheKey::Kmalloc(_) => ("kmalloc", None),
        CacheKey::Named(exact) => ("cache", aliases.others(exact)),
        CacheKey::Nameless(..) => ("nameless", None),
    };
    CacheRow {
        sums: SlabSums::of(&cache.totals, recorded),
        estimated: cache.estimate.map(Estimated::from),
        live_range: LiveRange::of(&cache.totals, live, recorded.lives),
        cache: name.to_owned(),
        kind,
        aliases: same.map(|names| names.into_iter().map(cache_name).collect()),
        object_size_min: cache.object_size.0,
        object_size_max: cache.object_size.1,
        alloc_events_inferred: cache.inferred,
    }
}
