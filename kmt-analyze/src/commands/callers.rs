//! `callers`: sums by call site.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::session::{Out, Session, print_json};
use super::selection::{Selection, analyse, sum_of};
use super::sorting::{SortKey, sort_rows};
use super::trust::{title, trust_lines};
use crate::stream::Api;
use crate::analysis::totals::Totals;
use crate::failure::{Outcome, Result};
use crate::open::outcome;
use crate::render::json;
use crate::render::table::{Align, table};
use crate::render::text::{count, escaped};

/// What to print.
#[derive(Debug)]
pub struct Options {
    /// What is counted.
    pub selection: Selection,
    /// Rows sorted by these.
    pub sort: Vec<SortKey>,
    /// At most so many rows.
    pub limit: Option<usize>,
    /// Only call sites whose name holds this.
    pub call_site: Option<String>,
    /// As JSON.
    pub json: bool,
}

struct Row {
    address: u64,
    api: Api,
    name: String,
    totals: Totals,
}

/// Prints the table.
pub fn run(session: &Session<'_>, options: &Options) -> Result<Outcome> {
    let result = analyse(session, &options.selection);
    let env = session.print_env();
    let mut sums: BTreeMap<(u64, Api), Totals> = BTreeMap::new();
    for (number, parts) in result.balance.sites.iter().enumerate() {
        let Some(site) = result.interner.sites.get(number as u32) else { continue };
        let sum = sums.entry((site.call_site, site.api)).or_default();
        parts.iter().for_each(|(_, totals)| *sum += totals);
    }
    let mut rows: Vec<Row> = sums
        .into_iter()
        .map(|((address, api), totals)| Row {
            address,
            api,
            name: escaped(&env.symbol_with_offset(address)),
            totals,
        })
        .filter(|r| r.totals != Totals::default())
        .filter(|r| options.call_site.as_ref().is_none_or(|part| r.name.contains(part)))
        .collect();
    sort_rows(&mut rows, &options.sort, |r| (&r.totals, &r.name));
    let shown = options.limit.unwrap_or(usize::MAX).min(rows.len());
    if options.json {
        let mut out = json::head(session.trace, &session.losses);
        out.insert("callers_total".into(), json!(rows.len()));
        out.insert("callers".into(), rows.iter().take(shown).map(row_json).collect());
        print_json(out)?;
    } else {
        let mut text = format!("{}\n", title(session));
        for line in trust_lines(session, &result, &sum_of(&result, None)) {
            text.push_str(&format!("{line}\n"));
        }
        text.push('\n');
        text.push_str(&page(&rows, shown));
        let mut out = Out::stdout();
        out.write(text.as_bytes())?;
        out.finish()?;
    }
    Ok(outcome(&session.path, session.trace, &result.damages, session.losses.any()))
}

fn row_json(row: &Row) -> Value {
    let mut out = json::row(&row.totals);
    out.insert("call_site".into(), json::address(row.address));
    out.insert("symbol".into(), row.name.as_str().into());
    out.insert("api".into(), api_name(row.api).into());
    out.into()
}

fn api_name(api: Api) -> &'static str {
    match api {
        Api::Kmalloc => "kmalloc",
        Api::Cache => "cache",
    }
}

fn page(rows: &[Row], shown: usize) -> String {
    use Align::{Left, Right};
    let columns = [
        ("call site", Left),
        ("of", Left),
        ("allocs", Right),
        ("bytes_req", Right),
        ("bytes_alloc", Right),
        ("wasted", Right),
        ("frag", Right),
        ("freed", Right),
        ("unseen", Right),
        ("live", Right),
        ("bytes_live", Right),
    ];
    let cells: Vec<Vec<String>> = rows
        .iter()
        .take(shown)
        .map(|r| {
            let t = &r.totals;
            vec![
                r.name.clone(),
                api_name(r.api).to_owned(),
                count(t.alloc_events),
                count(t.bytes_req),
                count(t.bytes_alloc),
                count(t.bytes_wasted()),
                format!("{:.1}%", t.internal_fragmentation_percent()),
                count(t.bytes_freed),
                count(t.bytes_freed_unseen),
                count(t.live),
                count(t.bytes_live),
            ]
        })
        .collect();
    let mut out = table(&columns, &cells);
    if shown < rows.len() {
        out.push_str(&format!("... {} more call sites\n", count((rows.len() - shown) as u64)));
    }
    out
}
