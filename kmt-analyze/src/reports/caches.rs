//! `caches`: sums of slab objects by cache and size class.
//!
//! The sums are those that each pass has (`Analysis::balance`); names of caches come from `trace/names`. Options, rows and screen
//! are here.

use kmt_format::schema::{Meaning, Role};
use serde::Serialize;

use crate::collect::Collectors;
use crate::ledger::totals::Totals;
use crate::pass::caches::{CacheTotals, by_cache};
use crate::pass::coverage::bounds::LiveSpan;
use crate::pass::selection::Selection;
use crate::pass::weights::in_order;
use crate::pass::{Analysis, Needs};
use crate::render::head::{self, some_values};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{self, escaped, listed};
use crate::reports::common::basis::{Basis, Input};
use crate::reports::common::cells::{LIVE_RANGE, live_range, live_range_cells, slab_cells, slab_columns};
use crate::reports::common::lead::{Nouns, lead};
use crate::reports::common::report_context::is_doubtful;
use crate::reports::common::rows::{Estimated, LiveRange, RecordedSums, SlabSums};
use crate::reports::common::sorting::{SortKey, sort_rows};
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::grouped::{Groupable, Only, RowOptions};
use crate::reports::report::Report;
use crate::stream::Api;
use crate::trace::aliases::Aliases;
use crate::trace::names::{CacheKey, cache_name, is_of_pages};
use crate::trace::session::Session;

/// Sums by cache and size class.
#[derive(Debug, clap::Args)]
pub struct Caches {
    /// Only caches whose name contains TEXT, or another name of a merged cache
    #[arg(long, value_name = "TEXT")]
    cache: Option<String>,
    /// Groups and order.
    #[command(flatten)]
    rows: RowOptions,
}

impl Report for Caches {
    type Handles = ();
    type Rows = CacheRows;

    const NAME: &'static str = "caches";
    const ABOUT: &'static str = "Sums by cache and size class";
    const NEEDS: Needs = Needs::CACHE_NAMES;
    const RESTS_ON: Input = Input::SlabAllocs;

    fn adds_sums(&self) -> bool {
        true
    }

    fn for_selection(self, selection: &Selection) -> Self {
        Self { rows: self.rows.for_selection(selection), ..self }
    }

    fn collect(&self, _: &Context<'_, '_>, _: &mut Collectors) -> Self::Handles {}

    /// Rows of the caches whose name contains the text of `--cache`.
    fn compute(&self, context: &ReportContext<'_, '_>, (): &()) -> CacheRows {
        let aliases = Aliases::of(context.session.trace.metadata());
        // A merged cache has other names.
        let is_selected = |name: &str| self.cache.as_deref().is_none_or(|text| aliases.is_named(name, text));
        let (mut all, others): (Vec<(String, CacheTotals)>, Vec<_>) =
            caches(context.analysis).partition(|(name, _)| is_selected(name));
        let number = |cache: &CacheTotals, key: SortKey| key.number(&in_order(cache.estimate, cache.totals));
        sort_rows(&mut all, &self.rows.sort, |(_, cache), key| number(cache, key), |a, b| a.0.cmp(&b.0));
        let basis = context.basis();
        let bounds = context.live_bounds();
        let live = bounds.bounds.by_cache();
        let row = |(name, cache): &(String, CacheTotals)| {
            row(name, cache, &aliases, recorded(cache, basis), live.get(&cache.key).copied().flatten())
        };
        let mut sum = Totals::default();
        all.iter().for_each(|(_, cache)| sum += &cache.totals);
        let is_nameless = |(_, cache): &(String, CacheTotals)| matches!(cache.key, CacheKey::Nameless(..));
        let others = others.into_iter().map(|(name, _)| name).filter(|_| all.is_empty());
        let shown = CachesShown {
            sums: SlabSums::of(&sum, RecordedSums::slab(basis, None)),
            has_doubts: all.iter().any(|(_, cache)| is_doubtful(&cache.totals)),
            legend: bounds.legend(),
            names: others.collect(),
            lists_aliases: aliases.is_recorded(),
            page_size: context.analysis.page_size.0,
            why_nameless: all.iter().any(is_nameless).then(|| why_nameless(context.session)),
        };
        CacheRows {
            caches_total: all.len(),
            caches: all.iter().take(context.limit).map(row).collect(),
            shown,
        }
    }

    /// The largest caches, and the meaning of their names.
    fn screen(&self, rows: &CacheRows, view: &View) -> Screen {
        let sort = self.rows.first();
        let (shown, total) = (&rows.shown, rows.caches_total);
        if !shown.names.is_empty() {
            return head::nothing(vec![format!("caches: {}", some_values(shown.names.clone()))]);
        }
        let largest = rows.caches.first().map(name);
        let first = largest.as_deref().zip(rows.caches.first().map(|row| &row.sums));
        let mut screen = Screen::new(lead(sort, total as u64, NOUNS, &shown.sums, first, view));
        let (is_lossy, has_doubts) = (view.is_lossy, shown.has_doubts);
        screen.table(
            Table::of_rows("", &rows.caches)
                .of("cache", "caches", total)
                .column(Column::name("cache"), |row| Cell::text(name(row)))
                .column(Column::number("size").leaves(5), |row| Cell::text(size(row)))
                .columns(slab_columns(sort, is_lossy), |r| {
                    slab_cells(&r.sums, r.estimated.as_ref(), is_lossy)
                })
                .columns(live_range(has_doubts), |r| live_range_cells(has_doubts, &r.live_range, r.sums.live))
                .explain(LIVE_RANGE[0].heading, shown.legend),
        );
        for sentence in other_names(rows) {
            screen.note(sentence);
        }
        screen.note(of_pages(rows).unwrap_or_default());
        if let Some(reason) = shown.why_nameless {
            screen.note(format!("?: the cache of these objects is unknown: {reason}."));
        }
        screen.next("callers --sort live", "call sites that hold the memory");
        screen.next("sizes", "sizes that kmalloc rounds up");
        screen
    }
}

impl Groupable for Caches {
    fn options(&self) -> &RowOptions {
        &self.rows
    }

    fn only(&self) -> Only<'_> {
        self.cache.as_deref().map_or(Only::All, Only::Cache)
    }
}

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheRows {
    /// Number of caches and size classes.
    pub caches_total: usize,
    /// Caches and size classes.
    pub caches: Vec<CacheRow>,
    #[serde(skip)]
    shown: CachesShown,
}

/// Facts that only the screen has, of all caches whose name contains the text of `--cache`.
#[derive(Debug)]
struct CachesShown {
    /// Sums of their objects.
    sums: SlabSums,
    /// Any has frees without events.
    has_doubts: bool,
    /// The note on bounds.
    legend: &'static str,
    /// Names of all caches of the trace, if none contains the text.
    names: Vec<String>,
    /// The file lists the caches that were merged.
    lists_aliases: bool,
    page_size: u64,
    /// Why no event names some of them; `None`: all have names.
    why_nameless: Option<&'static str>,
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

const NOUNS: Nouns = Nouns { one: "cache", several: "caches" };

/// Name of a cache on one line.
fn name(row: &CacheRow) -> String {
    escaped(row.cache.as_bytes())
}

/// Why a name of kmalloc is not in /proc/slabinfo.
fn of_pages(rows: &CacheRows) -> Option<String> {
    let page_size = rows.shown.page_size;
    let is_it = |row: &&CacheRow| row.kind == "kmalloc" && is_of_pages(row.object_size_min, page_size);
    let first = rows.caches.iter().find(is_it)?;
    Some(format!(
        "{}: kmalloc takes whole pages for more than {} (SLUB has no cache of this size).",
        name(first),
        words::size(page_size.saturating_mul(2))
    ))
}

/// Size of an object, or the range of sizes.
fn size(row: &CacheRow) -> String {
    let (low, high) = (row.object_size_min, row.object_size_max);
    if low == high { low.to_string() } else { format!("{low}-{high}") }
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

/// Other caches of a name.
fn other_names(rows: &CacheRows) -> Vec<String> {
    if !rows.shown.lists_aliases {
        return vec![
            "A name may stand for several caches: SLUB merges caches of like size and events name the first; the file does not list the others."
                .to_owned(),
        ];
    }
    let named = rows.caches.iter().filter_map(|row| {
        let names = row.aliases.as_ref().filter(|names| !names.is_empty())?;
        let names: Vec<String> = names.iter().map(|name| escaped(name.as_bytes())).collect();
        Some(format!("{} also stands for {}.", name(row), listed(&names)))
    });
    named.collect()
}
