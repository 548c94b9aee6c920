//! One report, or several, over one pass; `all` runs every report.
//!
//! Reports come from the registry, collectors go to one pass, and its result becomes screens, one JSON document, or CSV. Reports
//! that refuse leave a sentence in place of rows.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::column_order::ColumnOrder;
use super::common::stated::Keys;
use super::common::{Context, ReportContext, View};
use super::document::{About, emit, refuse};
use super::output::Output;
use super::registry::{REPORTS, named};
use super::report::{Answer, AnyReport, Pending, Report};
use crate::collect::Collectors;
use crate::failure::{Failure, Outcome, Result};
use crate::limits::ROWS_MAX;
use crate::pass::condition::Key;
use crate::pass::selection::Selection;
use crate::pass::{self, Analysis, Needs, Request};
use crate::render::out::Schema;
use crate::render::screen::Screen;
use crate::trace::session::Session;

/// Adds the collectors of several reports to those of one pass.
///
/// A tool adds its own collectors to the same [`Collectors`], runs a pass with their [`needs`], and gets the rows of
/// each report from its [`Pending`]. Nothing is printed.
pub fn collect<'r>(
    context: &Context<'_, '_>,
    reports: &[&'r dyn AnyReport],
    collectors: &mut Collectors,
) -> Vec<Pending<'r>> {
    reports.iter().map(|report| report.collect(context, collectors)).collect()
}

/// Needs of these reports besides their collectors.
pub fn needs(reports: &[&dyn AnyReport]) -> Needs {
    reports.iter().map(|report| report.needs()).collect()
}

/// Runs a pass of these collectors.
fn pass_for(context: &Context<'_, '_>, collectors: &Collectors, needs: Needs) -> Analysis {
    pass::run(context.session, &Request::new(context.selection, collectors).with(needs))
}

/// Runs one report over a pass of its own.
fn alone<'r>(context: &Context<'_, '_>, report: &'r dyn AnyReport) -> (Analysis, Pending<'r>) {
    let mut collectors = Collectors::default();
    let pending = report.collect(context, &mut collectors);
    (pass_for(context, &collectors, report.needs()), pending)
}

/// Prints one report; its tables in that order, if any is given.
pub fn one(
    session: &Session<'_>,
    selection: &Selection,
    output: Output,
    (report, order): (&dyn AnyReport, &ColumnOrder),
) -> Result<Outcome> {
    let request = Context { session, selection, limit: output.rows() };
    selection.check(session, report.title(), report.keys())?;
    report.check(&request)?;
    let (analysis, pending) = alone(&request, report);
    let context = ReportContext::new(&request, &analysis);
    let schema = Schema { report: report.name(), version: report.version() };
    let about = About { keys: report.keys(), schema };
    let answer = match pending(&context) {
        Err(reason) => return refuse(&about, &context, &output, report.title(), &reason),
        Ok(answer) => answer,
    };
    let screen = || suggested(answer.screen(&context.view(output.show.look)), &context);
    if order.is_empty() {
        return emit(&about, &context, &output, || answer.rows(), || vec![(String::new(), screen())]);
    }
    let all = Context { limit: ROWS_MAX.max(request.limit), ..request };
    let all = ReportContext::new(&all, &analysis);
    let Ok(whole) = pending(&all) else { return Ok(Outcome::Done) };
    let (mut document, mut screen) = (Map::new(), screen());
    if output.json {
        document = answer.document();
        order.sort_document(&mut document, whole.document())?;
    } else {
        order.sort_screen(&mut screen, whole.screen(&all.view(output.show.look)))?;
    }
    emit(&about, &context, &output, || document, || vec![(String::new(), screen)])
}

/// The screen whose suggested reports have the selection, where they heed it, without those that refuse.
fn suggested(screen: Screen, context: &ReportContext<'_, '_>) -> Screen {
    let options = context.selection.given();
    let mut screen = without_refused(screen, context);
    let commands = screen.leads.iter_mut().map(|lead| &mut lead.command);
    for command in commands.chain(screen.next.iter_mut().map(|next| &mut next.command)) {
        let report = named(command.name()).and_then(|entry| (entry.with_defaults)());
        let is_heeded = report.is_some_and(|report| {
            context.selection.check(context.session, report.title(), report.keys()).is_ok()
        });
        // A command of its own time, or of other tasks, has that option already. A moment is of the table that is shown.
        let own = command.clone();
        let is_new = |name: &str| name != "--at" && !own.has_option(name);
        // Each report, and all of them, heed a time.
        let is_report = command.name() == "all" || named(command.name()).is_some();
        let is_heeded = |name: &str| is_heeded || is_report && name == "--time";
        for (name, value) in options.iter().filter(|(name, _)| is_heeded(name) && is_new(name)) {
            command.add(name, value.as_deref());
        }
    }
    screen
}

/// The screen without suggested reports that refuse this trace: each answers with its default options, or not at all.
/// Those of a part of its time are suggested where they answer.
fn without_refused(mut screen: Screen, context: &ReportContext<'_, '_>) -> Screen {
    screen.next.retain(|next| {
        let report = named(next.command.name()).and_then(|entry| (entry.with_defaults)());
        let is_of_part = next.command.has_option("--time");
        is_of_part || report.is_none_or(|report| report.refuses(context).is_none())
    });
    screen
}

/// The typed rows of one report; why there are none, if so.
pub fn typed<R: Report>(
    context: &Context<'_, '_>,
    report: &R,
) -> (Analysis, std::result::Result<R::Rows, String>) {
    let mut collectors = Collectors::default();
    let handles = Report::collect(report, context, &mut collectors);
    let analysis = pass_for(context, &collectors, Report::needs(report));
    let context = ReportContext::new(context, &analysis);
    let rows = match Report::refuses(report, &context) {
        Some(reason) => Err(reason),
        None => Ok(Report::compute(report, &context, &handles)),
    };
    (analysis, rows)
}

/// The rows of one report, for those who print them otherwise; why there are none, if so.
pub fn rows_of(
    context: &Context<'_, '_>,
    report: &dyn AnyReport,
) -> (Analysis, std::result::Result<Map<String, Value>, String>) {
    let (analysis, pending) = alone(context, report);
    let answer = pending(&ReportContext::new(context, &analysis));
    let rows = answer.and_then(|answer| answer.lacks_table().map_or(Ok(answer.document()), Err));
    (analysis, rows)
}

/// Rows of each table of several reports, unless `-l` says otherwise.
const ROWS_OF_EACH: usize = 10;

/// Prints several reports, each under its heading, or its key.
fn several(
    session: &Session<'_>,
    selection: &Selection,
    output: Output,
    reports: &[&dyn AnyReport],
) -> Result<Outcome> {
    let context = Context { session, selection, limit: output.limit.unwrap_or(ROWS_OF_EACH) };
    // Several reports heed what they know.
    selection.check(session, "all", Keys::All)?;
    for report in reports {
        report.check(&context)?;
    }
    let mut collectors = Collectors::default();
    let pending = collect(&context, reports, &mut collectors);
    let analysis = pass_for(&context, &collectors, needs(reports));
    let context = ReportContext::new(&context, &analysis);
    let about = About { keys: Keys::All, schema: Schema::first("all") };
    let answers = reports.iter().zip(&pending);
    let answers = answers.map(|(&report, pending)| (report, pending(&context)));
    let all = Answers(answers.collect());
    emit(&about, &context, &output, || &all, || all.screens(&context, &context.view(output.show.look)))
}

/// A report, and its answer or why it has none.
type ReportAnswer<'r> = (&'r dyn AnyReport, std::result::Result<Box<dyn Answer + 'r>, String>);

/// Answers of several reports.
struct Answers<'r>(Vec<ReportAnswer<'r>>);

impl Answers<'_> {
    fn screens(&self, context: &ReportContext<'_, '_>, view: &View) -> Vec<(String, Screen)> {
        let mut screens = Vec::new();
        let mut refused = Vec::new();
        for (report, answer) in &self.0 {
            match answer {
                Ok(answer) => {
                    screens.push((report.title().to_owned(), suggested(answer.screen(view), context)));
                }
                Err(reason) => refused.push((report.key(), format!("{reason}."))),
            }
        }
        if !refused.is_empty() {
            let mut screen = Screen::default();
            screen.facts(refused);
            screens.push(("reports without an answer".to_owned(), screen));
        }
        screens
    }
}

impl Serialize for Answers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(None)?;
        for (report, answer) in &self.0 {
            out.serialize_entry(report.key(), &answer.as_ref().ok().map(|answer| answer.rows()))?;
        }
        let versions = self.0.iter().map(|(report, _)| (report.key(), Value::from(report.version())));
        out.serialize_entry("versions", &object(versions))?;
        let refused =
            self.0.iter().filter_map(|(report, answer)| Some((report.key(), answer.as_ref().err()?)));
        let refused = object(refused.map(|(key, reason)| (key, Value::from(reason.as_str()))));
        if !refused.is_empty() {
            out.serialize_entry("refused", &refused)?;
        }
        out.end()
    }
}

fn object<'k>(entries: impl Iterator<Item = (&'k str, Value)>) -> Map<String, Value> {
    entries.map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Prints every report that needs no options.
pub fn all(session: &Session<'_>, selection: &Selection, output: Output) -> Result<Outcome> {
    if selection.has_term_on(Key::Lifetime) {
        return Err(Failure::new(
            "not all reports can select by lifetime: objects that are still allocated have none",
        )
        .hint("lifetimes, callers, caches and timeline can"));
    }
    let reports: Vec<Box<dyn AnyReport>> =
        REPORTS.iter().filter_map(|entry| (entry.with_defaults)()).collect();
    let reports: Vec<&dyn AnyReport> = reports.iter().map(|report| &**report).collect();
    several(session, selection, output, &reports)
}

/// The report of that name, with its usual options.
pub fn all_report(name: &str) -> Result<Box<dyn AnyReport>> {
    // An export of `events` has one row for each event; the report is `event-counts` there.
    let command = if name == "event-counts" { "events" } else { name };
    let found = REPORTS.iter().find(|entry| entry.name == command && name != "events");
    found.and_then(|entry| (entry.with_defaults)()).ok_or_else(|| {
        let names = REPORTS.iter().filter(|entry| (entry.with_defaults)().is_some()).map(|entry| entry.name);
        let names: Vec<&str> =
            names.map(|name| if name == "events" { "event-counts" } else { name }).collect();
        Failure::new(format!("no report has the name {name:?}"))
            .hint(format!("one of events, objects, call-sites, {}", names.join(", ")))
    })
}
