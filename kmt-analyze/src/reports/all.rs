//! `all`: every report, with one pass over the trace.

use super::output::Output;
use super::registry::REPORTS;
use super::report::AnyReport;
use super::run::several;
use crate::failure::{Failure, Outcome, Result};
use crate::pass::condition::Key;
use crate::pass::selection::Selection;
use crate::trace::session::Session;

/// Prints every report that needs no options.
pub fn run(session: &Session<'_>, selection: &Selection, output: Output) -> Result<Outcome> {
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
pub fn report(name: &str) -> Result<Box<dyn AnyReport>> {
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
