//! What all reports have in common: heading, trust, rows of sums, output.

use crate::limits::ROWS_MAX;
use serde_json::{Map, Value, json};

use super::known::{Known, about, cell};
use super::selection::{Selection, sum_of};
use super::sorting::SortKey;
use super::stated::{Keys, Stated};
use super::trust::{title, trust_lines};
use crate::failure::{Outcome, Result};
use crate::ledger::totals::Totals;
use crate::pass;
use crate::pass::weights::Estimate;
use crate::render::json;
use crate::render::out::{Out, print_json};
use crate::render::table::Align;
use crate::render::text::count;
use crate::trace::losses::Losses;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// What to print of a table of rows.
#[derive(Debug)]
pub struct RowOptions {
    /// What is counted.
    pub selection: Selection,
    /// Rows sorted by these.
    pub sort: Vec<SortKey>,
    /// At most so many rows.
    pub limit: Option<usize>,
    /// As JSON.
    pub json: bool,
}

/// What a report is about.
#[derive(Clone, Copy)]
pub struct About<'s, 'd> {
    /// The trace.
    pub session: &'s Session<'d>,
    /// What is counted; `None`: always everything.
    pub selection: Option<&'s Selection>,
    /// Which conditions the report heeds.
    pub keys: Keys,
}

/// Prints a report: either a document or a page, under the heading that all have.
pub fn emit(
    about: &About<'_, '_>,
    result: &pass::Result,
    as_json: bool,
    document: impl FnOnce(&mut Map<String, Value>),
    page: impl FnOnce() -> String,
) -> Result<Outcome> {
    let About { session, selection, keys } = *about;
    let all = sum_of(result, None);
    let stated = selection.and_then(|selection| Stated::of(session, selection, result));
    if as_json {
        let mut out = json::head(session.trace, &session.losses);
        out.insert("selection".into(), stated.as_ref().map_or(Value::Null, Stated::json));
        document(&mut out);
        out.insert("trust".into(), trust(session, result, &all));
        print_json(out)?;
    } else {
        let mut text = format!("{}\n", title(session));
        text.push_str(&stated.as_ref().map_or(String::new(), Stated::text));
        for line in trust_lines(session, result, &all) {
            text.push_str(&format!("{line}\n"));
        }
        text.push('\n');
        match stated.as_ref().and_then(|s| s.nothing(keys)) {
            Some(nothing) => text.push_str(&nothing),
            None => text.push_str(&page()),
        }
        let mut out = Out::stdout();
        out.page(&text)?;
        out.finish()?;
    }
    Ok(outcome(&session.path, session.trace, &result.damages, session.losses.any()))
}

/// What the numbers rest on, for machines and for people.
fn trust(session: &Session<'_>, result: &pass::Result, all: &Totals) -> Value {
    json!({
        "notes": trust_lines(session, result, all),
        "direct_map_base": result.direct_map.map(|m| format!("{:#x}", m.base_address)),
        "direct_map_votes": result.direct_map.map(|m| m.votes),
        "direct_map_votes_all": result.direct_map.map(|m| m.votes_all),
        "page_size": result.page_size.0,
        "page_size_assumed": result.page_size.1,
        "damaged_chunks": result.damages.len(),
    })
}

/// Those of any trace.
const SUMS: [(&str, Align); 9] = [
    ("allocs", Align::Right),
    ("bytes_req", Align::Right),
    ("bytes_alloc", Align::Right),
    ("wasted", Align::Right),
    ("frag", Align::Right),
    ("freed", Align::Right),
    ("unseen", Align::Right),
    ("live", Align::Right),
    ("bytes_live", Align::Right),
];

/// Headings of the columns of slab sums; where events were lost, lives that cross a loss stand beside them.
pub fn sum_columns(losses: &Losses) -> Vec<(&'static str, Align)> {
    let uncertain = losses.any().then_some(("uncertain", Align::Right));
    SUMS.into_iter().chain(uncertain).collect()
}

/// The cells under [`sum_columns`]; a mark where it is not known when objects end, or where there are only samples.
pub fn sums(t: &Totals, estimate: Option<Estimate>, known: Known, losses: &Losses) -> Vec<String> {
    let lives = |text| cell(known.lives, text);
    let cells = [
        about(estimate.map(|e| e.alloc_events), t.alloc_events),
        about(estimate.map(|e| e.bytes_req), t.bytes_req),
        about(estimate.map(|e| e.bytes_alloc), t.bytes_alloc),
        about(estimate.map(|e| e.bytes_alloc - e.bytes_req), t.bytes_wasted()),
        format!("{:.1}%", t.internal_fragmentation_percent()),
        lives(count(t.bytes_freed)),
        lives(count(t.bytes_freed_unseen)),
        lives(count(t.live)),
        lives(count(t.bytes_live)),
    ];
    cells.into_iter().chain(losses.any().then(|| lives(count(t.uncertain)))).collect()
}

/// How many of `rows` rows are shown.
pub fn shown(limit: Option<usize>, rows: usize) -> usize {
    limit.unwrap_or(ROWS_MAX).min(rows)
}

/// The line under a table that is cut.
pub fn more(shown: usize, rows: usize, what: &str) -> String {
    if shown < rows { format!("... {} more {what}\n", count((rows - shown) as u64)) } else { String::new() }
}
