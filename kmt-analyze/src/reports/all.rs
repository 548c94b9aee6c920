//! `all`: every report over one pass.

use super::registry::REPORTS;
use super::report::AnyReport;
use super::run::{Output, several};
use crate::failure::{Failure, Outcome, Result};
use crate::pass::selection::Selection;
use crate::trace::session::Session;

/// Prints every report that answers without options.
pub fn run(session: &Session<'_>, selection: &Selection, output: Output) -> Result<Outcome> {
    if selection.filter(session).is_about_lifetimes() {
        return Err(Failure::new(
            "not all reports can select by lifetime: what is live at an instant has none yet",
        )
        .hint("lifetimes, callers, caches and timeline can"));
    }
    let reports: Vec<Box<dyn AnyReport>> = REPORTS.iter().filter_map(|entry| (entry.usual)()).collect();
    let reports: Vec<&dyn AnyReport> = reports.iter().map(|report| &**report).collect();
    several(session, selection, output, &reports)
}

/// The report of that name, as it is among others.
pub fn report(name: &str) -> Result<Box<dyn AnyReport>> {
    // Rows of events are called events.
    let command = if name == "event-counts" { "events" } else { name };
    let found = REPORTS.iter().find(|entry| entry.name == command && name != "events");
    found.and_then(|entry| (entry.usual)()).ok_or_else(|| {
        let names = REPORTS.iter().filter(|entry| (entry.usual)().is_some()).map(|entry| entry.name);
        let names: Vec<&str> =
            names.map(|name| if name == "events" { "event-counts" } else { name }).collect();
        Failure::new(format!("there is no report {name:?}"))
            .hint(format!("one of events, objects, call-sites, {}", names.join(", ")))
    })
}
