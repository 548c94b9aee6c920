//! The frame of every report: heading, selection, trust, schema, and where it is printed.

use serde_json::{Map, Value, json};

use super::common::stated::{Keys, Stated};
use super::common::trust::{title, trust_lines};
use crate::failure::{Failure, Outcome, Result};
use crate::ledger::totals::Totals;
use crate::pass;
use crate::pass::selection::Selection;
use crate::pass::sum_of;
use crate::render::json;
use crate::render::out::{Out, Schema, print_json};
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// What a report is about.
#[derive(Clone, Copy)]
pub struct About<'s, 'd> {
    /// The trace.
    pub session: &'s Session<'d>,
    /// What is counted; `None`: always everything.
    pub selection: Option<&'s Selection>,
    /// Conditions that the report heeds.
    pub keys: Keys,
    /// Its name and version.
    pub schema: Schema,
}

/// Prints a report: either a document or a page, under the heading that all have.
pub fn emit(
    about: &About<'_, '_>,
    result: &pass::Analysis,
    as_json: bool,
    document: impl FnOnce(&mut Map<String, Value>),
    page: impl FnOnce() -> String,
) -> Result<Outcome> {
    let About { session, selection, keys, schema } = *about;
    let all = sum_of(result, None);
    let stated = selection.and_then(|selection| Stated::of(session, selection, result));
    if as_json {
        let mut out = json::head(session.trace, &session.losses);
        out.insert("selection".into(), stated.as_ref().map_or(Value::Null, Stated::json));
        document(&mut out);
        out.insert("trust".into(), trust(session, result, &all));
        print_json(schema, out)?;
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
fn trust(session: &Session<'_>, result: &pass::Analysis, all: &Totals) -> Value {
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

/// A report that cannot answer: a document that says so, one line on standard error, exit code 1.
pub fn refuse(
    about: &About<'_, '_>,
    result: &pass::Analysis,
    as_json: bool,
    title: &str,
    reason: &str,
) -> Result<Outcome> {
    if as_json {
        let document = |out: &mut Map<String, Value>| drop(out.insert("refused".into(), reason.into()));
        emit(about, result, true, document, String::new)?;
    }
    Err(Failure::new(format!("{}: no {title}: {reason}", about.session.path.display())))
}
