//! One report, or several, over one pass.

use serde_json::{Map, Value};

use super::common::Context;
use super::common::stated::Keys;
use super::document::{About, emit, refuse};
use super::report::{AnyReport, Pending};
use crate::collect::Collectors;
use crate::failure::{Outcome, Result};
use crate::limits::ROWS_MAX;
use crate::pass::Analysis;
use crate::pass::selection::{Selection, Wants, analyse_for};
use crate::render::out::Schema;
use crate::trace::session::Session;

/// Which rows, and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct Output {
    /// At most so many rows of each table.
    pub limit: Option<usize>,
    /// As JSON.
    pub json: bool,
}

/// Runs reports over one pass.
fn pass_for<'r>(
    context: &Context<'_, '_>,
    reports: &[&'r dyn AnyReport],
) -> (Analysis, Vec<Box<dyn Pending + 'r>>) {
    let mut collectors = Collectors::default();
    let pending = reports.iter().map(|report| report.collect(context, &mut collectors)).collect();
    let wants = Wants {
        collectors: &collectors,
        event_counts: reports.iter().any(|r| r.needs_event_counts()),
        ranges: reports.iter().any(|r| r.needs_ranges()),
    };
    (analyse_for(context.session, context.selection, &wants), pending)
}

/// Prints one report.
pub fn one(
    session: &Session<'_>,
    selection: &Selection,
    output: Output,
    report: &dyn AnyReport,
) -> Result<Outcome> {
    let context = Context { session, selection, limit: output.limit.unwrap_or(ROWS_MAX) };
    selection.check(session, report.title(), report.keys())?;
    report.check(&context)?;
    let (analysis, pending) = pass_for(&context, &[report]);
    let schema = Schema { report: report.name(), version: report.version() };
    let about = About { session, selection: Some(selection), keys: report.keys(), schema };
    let Some(pending) = pending.first() else { return Ok(Outcome::Done) };
    if let Some(reason) = pending.refuses(&context, &analysis) {
        return refuse(&about, &analysis, output.json, report.title(), &reason);
    }
    let answer = pending.compute(&context, &analysis);
    emit(&about, &analysis, output.json, |out| out.extend(answer.document()), || answer.text(&context.view()))
}

/// The rows of one report, for those who print them otherwise; why there are none, if so.
pub fn rows_of(
    context: &Context<'_, '_>,
    report: &dyn AnyReport,
) -> (Analysis, std::result::Result<Map<String, Value>, String>) {
    let (analysis, pending) = pass_for(context, &[report]);
    let answer = match pending.first() {
        None => Ok(Map::new()),
        Some(pending) => match pending.refuses(context, &analysis) {
            Some(reason) => Err(reason),
            None => Ok(pending.compute(context, &analysis).document()),
        },
    };
    (analysis, answer)
}

/// Prints several reports, each under its heading, or its key.
pub fn several(
    session: &Session<'_>,
    selection: &Selection,
    output: Output,
    reports: &[&dyn AnyReport],
) -> Result<Outcome> {
    let context = Context { session, selection, limit: output.limit.unwrap_or(ROWS_MAX) };
    // Several reports heed what they know.
    selection.check(session, "all", Keys::All)?;
    for report in reports {
        report.check(&context)?;
    }
    let (analysis, pending) = pass_for(&context, reports);
    let about = About { session, selection: Some(selection), keys: Keys::All, schema: Schema::first("all") };
    let (mut document, mut refused, mut text) = (Map::new(), Map::new(), String::new());
    for (report, pending) in reports.iter().zip(&pending) {
        let answer = match pending.refuses(&context, &analysis) {
            Some(reason) => Err(reason),
            None => Ok(pending.compute(&context, &analysis)),
        };
        if output.json {
            let answer = answer.map(|answer| Value::from(answer.document())).unwrap_or_else(|reason| {
                refused.insert(report.key().into(), reason.into());
                Value::Null
            });
            document.insert(report.key().into(), answer);
        } else {
            let answer = answer.map(|answer| answer.text(&context.view()));
            let answer = answer.unwrap_or_else(|reason| format!("not answered: {reason}\n"));
            text.push_str(&format!("== {} ==\n\n{answer}\n", report.title()));
        }
    }
    let versions = reports.iter().map(|report| (report.key().to_owned(), report.version().into()));
    document.insert("versions".into(), Value::Object(versions.collect()));
    if !refused.is_empty() {
        document.insert("refused".into(), refused.into());
    }
    emit(&about, &analysis, output.json, |out| out.extend(document), || text)
}
