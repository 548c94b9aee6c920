//! One report, or several, over one pass; `all` runs every report.
//!
//! Reports come from the registry, collectors go to one pass, and its result becomes screens, one JSON document, or CSV. Reports
//! that refuse leave a sentence in place of rows.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::column_order::ColumnOrder;
use super::common::stated::Keys;
use super::common::{Context, ReportContext};
use super::document::{About, Printed, emit, refuse};
use super::output::Output;
use super::registry::{REPORTS, named};
use super::report::{AnyReport, Pending, Refusable, Report, refusal};
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
/// A tool adds its own collectors to the same [`Collectors`], runs a pass with their [`needs`], and gets the rows or the
/// screen of each report from its [`Pending`]. Nothing is printed.
pub fn collect<'r>(
    context: &Context<'_, '_>,
    reports: &[&'r dyn AnyReport],
    collectors: &mut Collectors,
) -> Vec<Box<dyn Pending + 'r>> {
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
fn alone<'r>(context: &Context<'_, '_>, report: &'r dyn AnyReport) -> (Analysis, Box<dyn Pending + 'r>) {
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
    let request = Context { session, selection, limit: output.rows_of(report.rows_shown()) };
    selection.check(session, report.title(), report.keys())?;
    report.check(&request)?;
    let (analysis, pending) = alone(&request, report);
    let context = ReportContext::new(&request, &analysis);
    let schema = Schema { report: report.name(), version: report.version() };
    let about = About { keys: report.keys(), schema };
    let all = Context { limit: ROWS_MAX.max(request.limit), ..request };
    let contexts = (&context, &ReportContext::new(&all, &analysis));
    match printed(&*pending, contexts, &output, order) {
        Err(reason) => refuse(&about, &context, &output, report.title(), &reason),
        Ok(printed) => emit(&about, &context, &output, printed?),
    }
}

/// The rows of a report of any type.
type ErasedRows = Box<dyn erased_serde::Serialize>;

/// Output of one report, with its tables in the given order, if there is one; `whole` has all their rows.
fn printed(
    pending: &dyn Pending,
    (context, whole): (&ReportContext<'_, '_>, &ReportContext<'_, '_>),
    output: &Output,
    order: &ColumnOrder,
) -> Refusable<Result<Printed<'static>>> {
    if output.json && order.is_empty() {
        return Ok(Ok(Printed::Document(pending.rows(context)?)));
    }
    if output.json {
        let (mut document, all) = (pending.document(context)?, pending.document(whole)?);
        let sorted = order.sort_document(&mut document, all);
        return Ok(sorted.map(|()| Printed::Document(Box::new(document))));
    }
    let screen = |context: &ReportContext<'_, '_>| pending.screen(context, &context.view(output.show.look));
    let mut shown = suggested(screen(context)?, context);
    let sorted = if order.is_empty() { Ok(()) } else { order.sort_screen(&mut shown, screen(whole)?) };
    Ok(sorted.map(|()| Printed::Screens(vec![("", shown)])))
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
pub fn typed<R: Report>(context: &Context<'_, '_>, report: &R) -> (Analysis, Refusable<R::Rows>) {
    let mut collectors = Collectors::default();
    let handles = Report::collect(report, context, &mut collectors);
    let analysis = pass_for(context, &collectors, Report::needs(report));
    let context = ReportContext::new(context, &analysis);
    let rows = match refusal(report, &context) {
        Some(reason) => Err(reason),
        None => Ok(Report::compute(report, &context, &handles)),
    };
    (analysis, rows)
}

/// The rows of one report for tables; why there are none, if so.
pub fn table_of(
    context: &Context<'_, '_>,
    report: &dyn AnyReport,
) -> (Analysis, Refusable<Map<String, Value>>) {
    let (analysis, pending) = alone(context, report);
    let rows = pending.table(&ReportContext::new(context, &analysis));
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
    let collected = reports.iter().copied().zip(pending).map(|(report, pending)| {
        let pending = report.left_out_of_all(&context).map_or(Ok(pending), Err);
        (report, pending)
    });
    let printed = if output.json {
        let rows = collected.map(|(report, pending)| (report, pending.and_then(|own| own.rows(&context))));
        Printed::Document(Box::new(AllRows(rows.collect())))
    } else {
        let view = context.view(output.show.look);
        let shown =
            collected.map(|(report, pending)| (report, pending.and_then(|own| own.screen(&context, &view))));
        Printed::Screens(screens(shown, &context))
    };
    emit(&about, &context, &output, printed)
}

/// Screens of several reports, and the reasons of those that refuse.
fn screens<'r>(
    all: impl Iterator<Item = (&'r dyn AnyReport, Refusable<Screen>)>,
    context: &ReportContext<'_, '_>,
) -> Vec<(&'static str, Screen)> {
    let (mut screens, mut refused) = (Vec::new(), Vec::new());
    for (report, screen) in all {
        match screen {
            Ok(screen) => screens.push((report.title(), suggested(screen, context))),
            Err(reason) => refused.push((report.key(), format!("{reason}."))),
        }
    }
    if !refused.is_empty() {
        let mut screen = Screen::default();
        screen.facts(refused);
        screens.push(("reports without an answer", screen));
    }
    screens
}

/// Rows of several reports under their keys.
struct AllRows<'r>(Vec<(&'r dyn AnyReport, Refusable<ErasedRows>)>);

impl Serialize for AllRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(None)?;
        for (report, rows) in &self.0 {
            out.serialize_entry(report.key(), &rows.as_ref().ok())?;
        }
        let versions = self.0.iter().map(|(report, _)| (report.key(), Value::from(report.version())));
        out.serialize_entry("versions", &object(versions))?;
        let refused = self.0.iter().filter_map(|(report, rows)| Some((report.key(), rows.as_ref().err()?)));
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
