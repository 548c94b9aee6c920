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
    /// Only caches whose name contains TEXT
    #[arg(long, value_name = "TEXT")]
    cache: Option<String>,
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

    fn for_selection(self, selection: &Selection) -> Self {
        Self { rows: self.rows.for_selection(selection), ..self }
    }

    fn collect(&self, _: &Context<'_, '_>, _: &mut Collectors) -> Self::Handles {}

    fn compute(&self, context: &ReportContext<'_, '_>, (): &()) -> CacheRows {
        compute(context, &self.rows.sort, self.cache.as_deref())
    }

    fn screen(&self, context: &ReportContext<'_, '_>, rows: &CacheRows, view: &View) -> Screen {
        screen(self, context, rows, view)
    }
}

impl Groupable for Caches {
    fn row_options(&self) -> &RowOptions {
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
fn compute(context: &ReportContext<'_, '_>, sort: &[SortKey], filter: Option<&str>) -> CacheRows {
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
fn names(context: &ReportContext<'_, '_>) -> Vec<String> {
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

const NOUNS: Nouns = Nouns { one: "cache", several: "caches" };

/// The largest caches, and the meaning of their names.
fn screen(report: &Caches, context: &ReportContext<'_, '_>, rows: &CacheRows, view: &View) -> Screen {
    let (sort, filter) = (report.rows.sort.first().copied(), report.cache.as_deref());
    let total = rows.caches_total;
    let names = if total == 0 && filter.is_some() { names(context) } else { Vec::new() };
    if !names.is_empty() {
        return head::nothing(vec![format!("caches: {}", some_values(names))]);
    }
    let all = AllCaches::of(context, filter);
    let largest = rows.caches.first().map(name);
    let first = largest.as_deref().zip(rows.caches.first().map(|row| &row.sums));
    let mut screen = Screen::new(lead(sort, total as u64, NOUNS, &all.sums, first, view));
    let is_lossy = view.is_lossy;
    screen.table(
        Table::of_rows("", &rows.caches)
            .of("cache", "caches", total)
            .column(Column::name("cache"), |row| Cell::text(name(row)))
            .column(Column::number("size").leaves(5), |row| Cell::text(size(row)))
            .columns(slab_columns(sort, is_lossy), |r| slab_cells(&r.sums, r.estimated.as_ref(), is_lossy))
            .columns(live_range(all.has_doubts), |r| {
                live_range_cells(all.has_doubts, &r.live_range, r.sums.live)
            })
            .explain(LIVE_RANGE[0].heading, context.live_bounds().legend()),
    );
    for sentence in other_names(rows, context.session) {
        screen.note(sentence);
    }
    screen.note(of_pages(rows, context.analysis.page_size.0).unwrap_or_default());
    if all.has_nameless {
        let reason = why_nameless(context.session);
        screen.note(format!("?: the cache of these objects is unknown: {reason}."));
    }
    screen.next("callers --sort live", "call sites that hold the memory");
    screen.next("sizes", "sizes that kmalloc rounds up");
    screen
}

/// Name of a cache on one line.
fn name(row: &CacheRow) -> String {
    escaped(row.cache.as_bytes())
}

/// Why a name of kmalloc is not in /proc/slabinfo.
fn of_pages(rows: &CacheRows, page_size: u64) -> Option<String> {
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
fn other_names(rows: &CacheRows, session: &Session<'_>) -> Vec<String> {
    if !Aliases::of(session.trace.metadata()).is_recorded() {
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
