//! One report, or several, over one pass.

use serde_json::{Map, Value};

use super::common::Context;
use super::common::stated::Keys;
use super::document::{About, emit, refuse};
use super::output::Output;
use super::report::{AnyReport, Pending};
use crate::collect::Collectors;
use crate::failure::{Outcome, Result};
use crate::pass::Analysis;
use crate::pass::selection::{Selection, Wants, analyse_for};
use crate::render::out::Schema;
use crate::render::screen::Screen;
use crate::trace::session::Session;

/// Adds the collectors of several reports to those of one pass.
///
/// A tool adds its own collectors to the same [`Collectors`], runs [`analyse_for`] with [`wants`], and gets the rows of
/// each report from [`Pending::answer`]. Nothing is printed.
pub fn collect<'r>(
    context: &Context<'_, '_>,
    reports: &[&'r dyn AnyReport],
    collectors: &mut Collectors,
) -> Vec<Box<dyn Pending + 'r>> {
    reports.iter().map(|report| report.collect(context, collectors)).collect()
}

/// Input of a pass for these reports: the collectors, with event counts and ranges if a report needs them.
pub fn wants<'w>(reports: &[&dyn AnyReport], collectors: &'w Collectors) -> Wants<'w> {
    Wants {
        collectors,
        event_counts: reports.iter().any(|report| report.needs_event_counts()),
        ranges: reports.iter().any(|report| report.needs_ranges()),
        cache_names: reports.iter().any(|report| report.needs_cache_names()),
        task_names: reports.iter().any(|report| report.needs_task_names()),
    }
}

/// Runs reports over one pass.
fn pass_for<'r>(
    context: &Context<'_, '_>,
    reports: &[&'r dyn AnyReport],
) -> (Analysis, Vec<Box<dyn Pending + 'r>>) {
    let mut collectors = Collectors::default();
    let pending = collect(context, reports, &mut collectors);
    (analyse_for(context.session, context.selection, &wants(reports, &collectors)), pending)
}

/// Prints one report.
pub fn one(
    session: &Session<'_>,
    selection: &Selection,
    output: Output,
    report: &dyn AnyReport,
) -> Result<Outcome> {
    let context = Context { session, selection, limit: output.rows() };
    selection.check(session, report.title(), report.keys())?;
    report.check(&context)?;
    let (analysis, pending) = pass_for(&context, &[report]);
    let schema = Schema { report: report.name(), version: report.version() };
    let about = About { session, selection: Some(selection), keys: report.keys(), schema };
    let Some(pending) = pending.first() else { return Ok(Outcome::Done) };
    let answer = match pending.answer(&context, &analysis) {
        Err(reason) => return refuse(&about, &analysis, &output, report.title(), &reason),
        Ok(answer) => answer,
    };
    emit(
        &about,
        &analysis,
        &output,
        |out| out.extend(answer.document()),
        || vec![(String::new(), answer.screen(&context.view(output.show.look)))],
    )
}

/// The rows of one report, for those who print them otherwise; why there are none, if so.
pub fn rows_of(
    context: &Context<'_, '_>,
    report: &dyn AnyReport,
) -> (Analysis, std::result::Result<Map<String, Value>, String>) {
    let (analysis, pending) = pass_for(context, &[report]);
    let answer = match pending.first() {
        None => Ok(Map::new()),
        Some(pending) => pending.answer(context, &analysis).map(|answer| answer.document()),
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
    let context = Context { session, selection, limit: output.rows() };
    // Several reports heed what they know.
    selection.check(session, "all", Keys::All)?;
    for report in reports {
        report.check(&context)?;
    }
    let (analysis, pending) = pass_for(&context, reports);
    let about = About { session, selection: Some(selection), keys: Keys::All, schema: Schema::first("all") };
    let (mut document, mut refused, mut screens) = (Map::new(), Map::new(), Vec::new());
    for (report, pending) in reports.iter().zip(&pending) {
        let answer = pending.answer(&context, &analysis);
        if output.json {
            let answer = answer.map(|answer| Value::from(answer.document())).unwrap_or_else(|reason| {
                refused.insert(report.key().into(), reason.into());
                Value::Null
            });
            document.insert(report.key().into(), answer);
        } else {
            let answer = answer.map(|answer| answer.screen(&context.view(output.show.look)));
            let answer = answer.unwrap_or_else(|reason| Screen::new(format!("No answer: {reason}.")));
            screens.push((report.title().to_owned(), answer));
        }
    }
    let versions = reports.iter().map(|report| (report.key().to_owned(), report.version().into()));
    document.insert("versions".into(), Value::Object(versions.collect()));
    if !refused.is_empty() {
        document.insert("refused".into(), refused.into());
    }
    emit(&about, &analysis, &output, |out| out.extend(document), || screens)
}
