//! `callers`: sums by call site.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::basis::{Basis, Input};
use super::known::{Known, estimated, legend};
use super::live_bounds::{self, LiveBounds};
use super::parts::{self, Page, Report, Subject};
use super::report::{RowOptions, more, shown, sum_columns, sums};
use super::session::Session;
use super::sorting::{SortKey, sort_rows};
use crate::analysis::coverage::bounds::Live;
use crate::analysis::losses::Losses;
use crate::analysis::pass;
use crate::analysis::totals::Totals;
use crate::analysis::weights::{Estimate, in_order};
use crate::failure::{Outcome, Result};
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::{count, escaped};
use crate::stream::Api;

struct Row {
    address: u64,
    api: Api,
    name: String,
    totals: Totals,
    estimate: Option<Estimate>,
    failures: u64,
    live: Option<Live>,
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
        let bounds = LiveBounds::of(subject, result);
        let live = bounds.bounds.by_caller();
        let mut by_caller: BTreeMap<(u64, Api), (Totals, Option<Estimate>, u64)> = BTreeMap::new();
        let sites = result.interner.sites.items().iter().zip(&result.balance.sites);
        for ((site, parts), failures) in sites.zip(&result.balance.failures) {
            let sum = by_caller.entry((site.call_site, site.api)).or_default();
            for (_, totals) in parts {
                sum.0 += totals;
                result.weights.add(site, totals, &mut sum.1);
            }
            sum.2 += failures;
        }
        let mut rows: Vec<Row> = by_caller
            .into_iter()
            .map(|((address, api), (totals, estimate, failures))| {
                let name = escaped(&env.symbol_with_offset(address));
                let live = live.get(&(api, address)).copied().flatten();
                Row { address, api, name, totals, estimate, failures, live }
            })
            .filter(|r| r.totals != Totals::default() || r.failures > 0)
            .filter(|r| self.part.as_ref().is_none_or(|part| r.name.contains(part)))
            .collect();
        sort_rows(&mut rows, &self.sort, |r| (in_order(r.estimate, r.totals), &r.name));
        let shown = shown(Some(subject.limit), rows.len());
        let basis = Basis::of(session, result);
        Page::of(
            |out| {
                out.insert("callers_total".into(), json!(rows.len()));
                let rows = rows.iter().take(shown).map(|r| row_json(r, &basis));
                out.insert("callers".into(), rows.collect());
            },
            || page(&rows, shown, &basis, &session.losses, &bounds),
        )
    }
}

fn row_json(row: &Row, basis: &Basis) -> Value {
    let mut out = Known::slab(basis, Some(row.api)).mask(json::row(&row.totals));
    out.insert("estimated".into(), estimated(row.estimate));
    out.insert("call_site".into(), json::address(row.address));
    out.insert("symbol".into(), row.name.as_str().into());
    out.insert("api".into(), row.api.name().into());
    live_bounds::insert(&mut out, &row.totals, row.live, Known::slab(basis, Some(row.api)).lives);
    out.insert("alloc_failures".into(), row.failures.into());
    out.into()
}

fn page(rows: &[Row], shown: usize, basis: &Basis, losses: &Losses, bounds: &LiveBounds) -> String {
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
            cells.extend(sums(&r.totals, r.estimate, known, losses));
            cells.extend(has_failures.then(|| count(r.failures)));
            cells.extend(
                is_told.then(|| live_bounds::cells(&r.totals, r.live, known.lives)).into_iter().flatten(),
            );
            cells
        })
        .collect();
    let is_known = rows.iter().all(|r| Known::slab(basis, Some(r.api)).lives);
    let told = if is_told { bounds.legend() } else { "" };
    table(&columns, &cells) + &more(shown, rows.len(), "call sites") + legend(is_known) + told
}
