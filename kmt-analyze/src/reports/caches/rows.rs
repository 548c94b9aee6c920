//! Sums by cache and size class.

use kmt_format::schema::{Meaning, Role};
use serde::Serialize;

use crate::ledger::totals::Totals;
use crate::pass::caches::{CacheKey, CacheTotals, by_cache, name_of};
use crate::pass::coverage::bounds::LiveSpan;
use crate::pass::weights::in_order;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Basis;
use crate::reports::common::live_bounds::is_doubtful;
use crate::reports::common::recorded_sums::RecordedSums;
use crate::reports::common::rows::{Estimated, LiveRange, SlabSums, text};
use crate::reports::common::shown::shown;
use crate::reports::common::sorting::{SortKey, sort_rows};
use crate::stream::Api;
use crate::trace::aliases::Aliases;
use crate::trace::session::Session;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheRows {
    /// Number of caches and size classes.
    pub caches_total: usize,
    /// Caches and size classes.
    pub caches: Vec<CacheRow>,
    /// Sums over all caches.
    #[serde(skip)]
    pub all: SlabSums,
    /// Any cache, shown or not, has frees without events.
    #[serde(skip)]
    pub has_doubts: bool,
    /// Names of all caches, where `--cache` leaves none.
    #[serde(skip)]
    pub others: Vec<String>,
    /// Why no event names some of the caches, shown or not.
    #[serde(skip)]
    pub nameless: Option<&'static str>,
    /// True if the file has /sys/kernel/slab.
    #[serde(skip)]
    pub aliases_are_recorded: bool,
    /// Source of the bounds of live figures.
    #[serde(skip)]
    pub bounds_legend: &'static str,
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
    /// Other names of the same cache: SLUB merges caches of like size. `null`: not known.
    pub aliases: Option<Vec<String>>,
    /// Smallest bytes_alloc.
    pub object_size_min: u64,
    /// Largest bytes_alloc.
    pub object_size_max: u64,
    /// Allocations whose cache is known only from other objects of their call site.
    pub alloc_events_inferred: u64,
}

/// Aliases of caches from /sys/kernel/slab, if it was recorded.
fn aliases(session: &Session<'_>) -> Aliases {
    let metadata = session.trace.metadata();
    let text = ["slab_sysfs.after", "slab_sysfs.before"].iter().find_map(|name| metadata.attachment(name));
    Aliases::parse(text)
}

/// Why no event names the cache of some objects.
fn why_nameless(session: &Session<'_>) -> &'static str {
    let mut frees =
        session.trace.schema().classes().filter(|(_, class)| class.meaning == Meaning::CACHE_FREE);
    match frees.any(|(_, class)| class.field_with(Role::CACHE_NAME).is_some()) {
        true => {
            "no object of their call sites was freed in the trace, and the event of a free names the cache"
        }
        false => "kernels before 5.12 name it in no event",
    }
}

/// Rows of the caches whose name contains `filter`.
pub fn of(context: &ReportContext<'_, '_>, sort: &[SortKey], filter: Option<&str>) -> CacheRows {
    let analysis = context.analysis;
    let mut all: Vec<(String, CacheTotals)> = by_cache(analysis)
        .into_iter()
        .filter(|cache| cache.totals != Totals::default())
        .map(|cache| (name_of(&cache.key, analysis), cache))
        .collect();
    let names: Vec<String> = all.iter().filter(|_| filter.is_some()).map(|cache| cache.0.clone()).collect();
    all.retain(|(name, _)| filter.is_none_or(|filter| name.contains(filter)));
    sort_rows(&mut all, sort, |(name, cache)| (in_order(cache.estimate, cache.totals), name));
    let shown = shown(Some(context.limit), all.len());
    let aliases = aliases(context.session);
    let basis = context.basis();
    let bounds = context.live_bounds();
    let live = bounds.bounds.by_cache();
    let row = |(name, cache): &(String, CacheTotals)| {
        row(name, cache, &aliases, recorded(cache, basis), live.get(&cache.key).copied().flatten())
    };
    let mut sum = Totals::default();
    all.iter().for_each(|(_, cache)| sum += &cache.totals);
    CacheRows {
        caches_total: all.len(),
        all: SlabSums::of(&sum, RecordedSums::slab(basis, None)),
        others: if all.is_empty() { names } else { Vec::new() },
        has_doubts: all.iter().any(|(_, cache)| is_doubtful(&cache.totals)),
        nameless: all
            .iter()
            .any(|(_, cache)| matches!(cache.key, CacheKey::Nameless(..)))
            .then(|| why_nameless(context.session)),
        aliases_are_recorded: aliases.is_recorded(),
        bounds_legend: bounds.legend(),
        caches: all.iter().take(shown).map(row).collect(),
    }
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
    let (kind, exact_name, same) = match &cache.key {
        CacheKey::Kmalloc(_) => ("kmalloc", name.to_owned(), None),
        CacheKey::Named(exact) => ("cache", text(exact), aliases.of(exact)),
        CacheKey::Nameless(..) => ("nameless", name.to_owned(), None),
    };
    CacheRow {
        sums: SlabSums::of(&cache.totals, recorded),
        estimated: cache.estimate.map(Estimated::from),
        live_range: LiveRange::of(&cache.totals, live, recorded.lives),
        cache: exact_name,
        kind,
        aliases: same.map(|names| names.into_iter().map(text).collect()),
        object_size_min: cache.object_size.0,
        object_size_max: cache.object_size.1,
        alloc_events_inferred: cache.inferred,
    }
}
