//! Exports of files with survivors as events and the other objects as sums: those with whole numbers, those with rows of survivors
//! alone, which report how many objects have none, and those that refuse.
//!
//! `check` refuses exports whose numbers would be of survivors alone; `report` counts the objects without rows on
//! standard error. `sqlite` writes the same number into the database.

use kmt_common::shell;
use kmt_common::tell;
use kmt_common::text::count;

use super::{ExportOf, ExportOptions, Format, Weight};
use crate::failure::{Failure, Result};
use crate::pass::folded::needs_events;
use crate::pass::selection::Selection;
use crate::trace::folded::{self, FoldedLifeCount};
use crate::trace::session::Session;

/// Refuses an export whose numbers would be those of a part of the objects.
pub fn check(session: &Session<'_>, options: &ExportOptions, of: &ExportOf) -> Result<()> {
    if !session.trace.header().folded {
        return Ok(());
    }
    let selection = &options.selection;
    let has_sums = match (options.format, of) {
        // Reports refuse by themselves.
        (Format::Csv | Format::Ndjson, ExportOf::Report(_)) => false,
        // Rows of single objects and events: any of them can be selected.
        (Format::Csv | Format::Ndjson, ExportOf::Events | ExportOf::Objects) => false,
        (Format::Csv | Format::Ndjson, ExportOf::CallSites) | (Format::Perfetto | Format::Sqlite, _) => true,
        (Format::Folded | Format::Pprof, _) => {
            let is_live = options.format == Format::Folded && options.by == Weight::Live;
            return check_profile(session, selection, is_live);
        }
        (Format::Dhat, _) => return Err(refused(session, "a profile of all allocations would lack them")),
        (Format::Parquet, _) => return Err(refused(session, "a data set of many traces would lack them")),
    };
    match needs_events(selection).filter(|_| has_sums) {
        Some(reason) => Err(Failure::new(format!("{}: {reason}: {}", session.path.display(), DIED_YOUNG))),
        None => Ok(()),
    }
}

/// Refuses a profile by stack, unless it is of live memory: each live object has its events.
pub fn check_profile(session: &Session<'_>, selection: &Selection, is_live: bool) -> Result<()> {
    if !session.trace.header().folded || is_live || selection.at.is_some() {
        return Ok(());
    }
    Err(refused(session, "a profile of allocations would lack them"))
}

const DIED_YOUNG: &str = "the file has the events of survivors alone, and sums of objects that died young";

fn refused(session: &Session<'_>, why: &str) -> Failure {
    let file = shell::path(&session.path);
    Failure::new(format!(
        "{} has sums of objects that died young, without stacks and times: {why}",
        session.path.display()
    ))
    .hint(format!(
        "kmt-analyze export folded --by live {file} has live memory by stack, export csv --of call-sites {file} all objects by call site"
    ))
}

/// Objects of the selected time that no row of an export has; `None`: the export has no rows of single objects or events.
pub fn without_rows(
    session: &Session<'_>,
    options: &ExportOptions,
    of: &ExportOf,
) -> Option<FoldedLifeCount> {
    let has_rows = match (options.format, of) {
        (Format::Csv | Format::Ndjson, of) => matches!(of, ExportOf::Events | ExportOf::Objects),
        (Format::Perfetto, _) => options.events,
        (format, _) => format == Format::Sqlite,
    };
    let is_folded = session.trace.header().folded && has_rows;
    is_folded.then(|| folded::lives_within(session.trace, options.selection.bounds(session)))
}

/// Reports on standard error how many objects have no row.
pub fn report(session: &Session<'_>, options: &ExportOptions, of: &ExportOf) {
    let Some(lives) = without_rows(session, options, of) else { return };
    let least = if lives.is_exact { "" } else { "at least " };
    tell!(
        "note: {least}{} died young and {} only in sums: this export has no rows or events of them",
        count(lives.count, "object"),
        if lives.count == 1 { "is" } else { "are" },
    );
}
