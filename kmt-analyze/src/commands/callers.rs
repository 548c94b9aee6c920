//! `callers`: sums by call site.

use std::collections::{HashMap, HashSet};

use kmt_format::print::PrintEnv;
use serde_json::{Value, json};

use super::basis::{Basis, Input};
use super::known::{Known, estimated, legend};
use super::live_bounds::{self, LiveBounds};
use super::parts::{self, Page, Report, Subject};
use super::report::{RowOptions, more, shown, sum_columns, sums};
use super::sorting::{SortKey, sort_rows};
use crate::failure::{Outcome, Result};
use crate::ledger::SiteTotals;
use crate::ledger::totals::Totals;
use crate::pass;
use crate::pass::coverage::bounds::Live;
use crate::pass::weights::{Estimate, in_order};
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::{count, escaped};
use crate::stream::{Api, Site};
use crate::trace::losses::Losses;
use crate::trace::session::Session;

struct Row {
    address: u64,
    api: Api,
    name: String,
    totals: Totals,
    /// Few traces have any.
    estimate: Option<Box<Estimate>>,
    failures: u64,
}

impl Row {
    fn estimate(&self) -> Option<Estimate> {
        self.estimate.as_deref().copied()
    }
}

/// How much of a call site can be live.
type LiveOf = HashMap<(Api, u64), Option<Live>>;

/// A row for each call site and interface, by address.
fn rows(result: &pass::Result, env: &PrintEnv<'_>) -> Vec<Row> {
    let sites = result.interner.sites.items().iter().zip(&result.balance.sites);
    let mut sites: Vec<_> = sites.zip(&result.balance.failures).collect();
    sites.sort_by_key(|((site, _), _)| (site.call_site, site.api));
    let callers = sites.chunk_by(|((a, _), _), ((b, _), _)| (a.call_site, a.api) == (b.call_site, b.api));
    let row = |sites: &[((&Site, &SiteTotals), &u64)]| {
        let ((first, _), _) = sites.first()?;
        let (mut totals, mut estimate, mut failures) = (Totals::default(), None, 0);
        for ((site, parts), failed) in sites {
            for (_, part) in *parts {
                totals += part;
                result.weights.add(site, part, &mut estimate);
            }
            failures += **failed;
        }
        let name = escaped(&env.symbol_with_offset(first.call_site));
        let estimate = estimate.map(Box::new);
        Some(Row { address: first.call_site, api: first.api, name, totals, estimate, failures })
    };
    callers.filter_map(row).filter(|r| r.totals != Totals::default() || r.failures > 0).collect()
}

/// Prints the table; only call sites whose name holds `part`.
pub fn run(session: &Session<'_>, options: &RowOptions, part: Option<&str>) -> Result<Outcome> {
    let report = Callers { sort: options.sort.clone(), part: part.map(str::to_owned) };
    parts::run(session, &options.selection, options.limit, options.json, &[&report])
}

/// The report.
#[derive(Debug)]
pub struct Callers {
    /// Rows sorted by these.
    pub sort: Vec<SortKey>,
    /// Only call sites whose name holds this.
    pub part: Option<String>,
}

impl Report for Callers {
    fn title(&self) -> &'static str {
        "call sites"
    }

    fn rests_on(&self) -> Input {
        Input::SlabAllocs
    }

    fn page(&self, subject: &Subject<'_, '_>, result: &mut pass::Result) -> Page {
        let (session, result) = (subject.session, &*result);

        let env = session.print_env();
        let mut rows = rows(result, &env);
        rows.retain(|r| self.part.as_ref().is_none_or(|part| r.name.contains(part)));
        sort_rows(&mut rows, &self.sort, |r| (in_order(r.estimate(), r.totals), &r.name));
        let shown = shown(Some(subject.limit), rows.len());
        let bounds = LiveBounds::of(subject, result);
        let wanted: HashSet<(Api, u64)> = rows.iter().take(shown).map(|r| (r.api, r.address)).collect();
        let live = bounds.bounds.by_caller(|caller| wanted.contains(&caller));
        let basis = Basis::of(session, result);
        Page::of(
            |out| {
                out.insert("callers_total".into(), json!(rows.len()));
                let rows = rows.iter().take(shown).map(|r| row_json(r, &live, &basis));
                out.insert("callers".into(), rows.collect());
            },
            || page(&rows, &live, shown, &basis, &session.losses, &bounds),
        )
    }
}

fn row_json(row: &Row, live: &LiveOf, basis: &Basis) -> Value {
    let mut out = Known::slab(basis, Some(row.api)).mask(json::row(&row.totals));
    out.insert("estimated".into(), estimated(row.estimate()));
    out.insert("call_site".into(), json::address(row.address));
    out.insert("symbol".into(), row.name.as_str().into());
    out.insert("api".into(), row.api.name().into());
    let live = live.get(&(row.api, row.address)).copied().flatten();
    live_bounds::insert(&mut out, &row.totals, live, Known::slab(basis, Some(row.api)).lives);
    out.insert("alloc_failures".into(), row.failures.into());
    out.into()
}

fn page(
    rows: &[Row],
    live: &LiveOf,
    shown: usize,
    basis: &Basis,
    losses: &Losses,
    bounds: &LiveBounds,
) -> String {
    let mut columns = vec![("call site", Align::Left), ("of", Align::Left)];
    columns.extend(sum_columns(losses));
    let has_failures = rows.iter().any(|r| r.failures > 0);
    if has_failures {
        columns.push(("failed", Align::Right));
    }
    let is_told = rows.iter().any(|r| live_bounds::is_doubtful(&r.totals));
    columns.extend(live_bounds::COLUMNS.into_iter().filter(|_| is_told));
    let cells: Vec<Vec<String>> = rows
        .iter()
        .take(shown)
        .map(|r| {
            let mut cells = vec![r.name.clone(), r.api.name().to_owned()];
            let known = Known::slab(basis, Some(r.api));
            cells.extend(sums(&r.totals, r.estimate(), known, losses));
            cells.extend(has_failures.then(|| count(r.failures)));
            let live = live.get(&(r.api, r.address)).copied().flatten();
            cells.extend(
                is_told.then(|| live_bounds::cells(&r.totals, live, known.lives)).into_iter().flatten(),
            );
            cells
        })
        .collect();
    let is_known = rows.iter().all(|r| Known::slab(basis, Some(r.api)).lives);
    let told = if is_told { bounds.legend() } else { "" };
    table(&columns, &cells) + &more(shown, rows.len(), "call sites") + legend(is_known) + told
}
