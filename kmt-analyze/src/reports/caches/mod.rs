//! `caches`: sums by cache and size class.

use serde_json::{Value, json};

use crate::collect::Collectors;
use crate::ledger::totals::Totals;
use crate::pass::Analysis;
use crate::pass::caches::{CacheKey, CacheRow, by_cache, name_of};
use crate::pass::coverage::bounds::Live;
use crate::pass::selection::Selection;
use crate::pass::weights::in_order;
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::escaped;
use crate::reports::common::basis::{Basis, Input};
use crate::reports::common::known::{Known, estimated, legend};
use crate::reports::common::live_bounds::{self, LiveBounds};
use crate::reports::common::sorting::SortOptions;
use crate::reports::common::sorting::{SortKey, sort_rows};
use crate::reports::common::sums::{more, shown, sum_columns, sums};
use crate::reports::common::{Context, View};
use crate::reports::report::{Page, Report};
use crate::stream::Api;
use crate::trace::aliases::Aliases;
use crate::trace::losses::Losses;
use crate::trace::session::Session;

/// The report.
#[derive(Debug)]
pub struct Caches {
    /// Rows sorted by these.
    pub sort: Vec<SortKey>,
    /// Only caches whose name holds this.
    pub part: Option<String>,
}

/// Options of the report.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    sort: SortOptions,
    /// Only caches whose name holds TEXT
    #[arg(long, value_name = "TEXT")]
    cache: Option<String>,
}

impl Report for Caches {
    type Options = Options;
    type Handles = ();
    type Rows = Page;

    const NAME: &'static str = "caches";
    const KEY: &'static str = "caches";
    const TITLE: &'static str = "caches";
    const ABOUT: &'static str = "Sums by cache and size class";

    fn new(options: Options, selection: &Selection) -> Self {
        Self { sort: options.sort.keys(selection), part: options.cache }
    }

    fn usual() -> Option<Self> {
        Some(Self { sort: vec![SortKey::Alloc], part: None })
    }

    fn rests_on(&self) -> Input {
        Input::SlabAllocs
    }

    fn collect(&self, _: &Context<'_, '_>, _: &mut Collectors) -> Self::Handles {}

    fn compute(&self, context: &Context<'_, '_>, result: &Analysis, _: &Self::Handles) -> Page {
        let session = context.session;

        let mut rows: Vec<(String, CacheRow)> = by_cache(result)
            .into_iter()
            .filter(|row| row.totals != Totals::default())
            .map(|row| (name_of(&row.key, result), row))
            .filter(|(name, _)| self.part.as_ref().is_none_or(|part| name.contains(part)))
            .collect();
        sort_rows(&mut rows, &self.sort, |(name, row)| (in_order(row.estimate, row.totals), name));
        let shown = shown(Some(context.limit), rows.len());
        let aliases = aliases(session);
        let basis = Basis::of(session, result);
        let bounds = LiveBounds::of(context, result);
        let live = bounds.bounds.by_cache();
        let live = |key: &CacheKey| live.get(key).copied().flatten();
        Page::of(
            |out| {
                out.insert("caches_total".into(), json!(rows.len()));
                let rows = rows.iter().take(shown);
                let rows = rows.map(|(name, row)| row_json(name, row, &aliases, &basis, live(&row.key)));
                out.insert("caches".into(), rows.collect());
            },
            || page(&rows, shown, &aliases, &basis, &session.losses, &live, &bounds),
        )
    }

    fn text(&self, rows: &Page, _: &View) -> String {
        rows.text.clone()
    }
}

/// What /sys/kernel/slab told, if it was recorded.
fn aliases(session: &Session<'_>) -> Aliases {
    let metadata = session.trace.metadata();
    let text = ["slab_sysfs.after", "slab_sysfs.before"].iter().find_map(|name| metadata.attachment(name));
    Aliases::parse(text)
}

/// What is known of a row.
fn known(row: &CacheRow, basis: &Basis) -> Known {
    let api = if matches!(row.key, CacheKey::Kmalloc(_)) { Api::Kmalloc } else { Api::Cache };
    Known::slab(basis, Some(api))
}

fn row_json(name: &str, row: &CacheRow, aliases: &Aliases, basis: &Basis, live: Option<Live>) -> Value {
    let mut out = known(row, basis).mask(json::row(&row.totals));
    let (kind, exact_name, same) = match &row.key {
        CacheKey::Kmalloc(_) => ("kmalloc", name.into(), None),
        CacheKey::Named(exact) => ("cache", json::text(exact), aliases.of(exact)),
        CacheKey::Nameless(..) => ("nameless", name.into(), None),
    };
    out.insert("estimated".into(), estimated(row.estimate));
    live_bounds::insert(&mut out, &row.totals, live, known(row, basis).lives);
    out.insert("cache".into(), exact_name);
    out.insert("kind".into(), kind.into());
    // null: not known whether the cache is merged with others.
    out.insert(
        "aliases".into(),
        json!(same.map(|names| names.into_iter().map(json::text).collect::<Vec<_>>())),
    );
    out.insert("object_size_min".into(), row.object_size.0.into());
    out.insert("object_size_max".into(), row.object_size.1.into());
    out.insert("alloc_events_inferred".into(), row.inferred.into());
    out.into()
}

fn page(
    rows: &[(String, CacheRow)],
    shown: usize,
    aliases: &Aliases,
    basis: &Basis,
    losses: &Losses,
    live: &dyn Fn(&CacheKey) -> Option<Live>,
    bounds: &LiveBounds,
) -> String {
    let mut columns = vec![("cache", Align::Left), ("size", Align::Right)];
    columns.extend(sum_columns(losses));
    let is_told = rows.iter().any(|(_, row)| live_bounds::is_doubtful(&row.totals));
    columns.extend(live_bounds::COLUMNS.into_iter().filter(|_| is_told));
    let cells: Vec<Vec<String>> = rows
        .iter()
        .take(shown)
        .map(|(name, row)| {
            let (low, high) = row.object_size;
            let size = if low == high { low.to_string() } else { format!("{low}-{high}") };
            let known = known(row, basis);
            let told = is_told.then(|| live_bounds::cells(&row.totals, live(&row.key), known.lives));
            let sums = sums(&row.totals, row.estimate, known, losses);
            [name.clone(), size].into_iter().chain(sums).chain(told.into_iter().flatten()).collect()
        })
        .collect();
    let is_known = rows.iter().all(|(_, row)| known(row, basis).lives);
    let mut out = table(&columns, &cells) + &more(shown, rows.len(), "caches") + legend(is_known);
    if is_told {
        out.push_str(bounds.legend());
    }
    if aliases.is_known() {
        for (name, row) in rows.iter().take(shown) {
            let CacheKey::Named(exact) = &row.key else { continue };
            let same = aliases.of(exact).unwrap_or_default();
            if !same.is_empty() {
                out.push_str(&format!(
                    "\n{name} also stands for {}",
                    same.iter().map(|n| escaped(n)).collect::<Vec<_>>().join(", ")
                ));
            }
        }
        out.push('\n');
    } else {
        out.push_str(
            "\nA name may stand for several caches: SLUB merges caches of like size, the kernel names the first, and the file does not tell the others.\n",
        );
    }
    if rows.iter().any(|(_, row)| matches!(row.key, CacheKey::Nameless(..))) {
        out.push_str(
            "?: no event tells the cache of these objects; the kernel names it in frees since 5.12 only.\n",
        );
    }
    out
}
