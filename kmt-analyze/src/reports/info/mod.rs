//! `info`: contents, losses and integrity of the file.

mod changes;
mod changes_text;
mod chunks;
mod cpus;
mod facts;
mod losses;
mod rows;
mod show;
mod text;
mod zone_changes;

#[cfg(test)]
pub use changes::ChangeRows;
#[cfg(test)]
pub use rows::InfoRows;

use crate::failure::{Outcome, Result};
use crate::pass::selection::Selection;
use crate::render::out::{Schema, print_rows};
use crate::reports::common::Context;
use crate::reports::document::print_screen;
use crate::reports::output::Output;
use crate::trace::open::outcome;
use crate::trace::session::Session;
use crate::trace::time_range::TimeRange;

/// Prints a stored file of the target: the last one, or the last that was read until `at`.
pub fn show(session: &Session<'_>, name: &str, at: Option<&TimeRange>) -> Result<Outcome> {
    let selection = Selection { at: at.cloned(), ..Selection::default() };
    let context = Context { session, selection: &selection, limit: 0 };
    let at = at.map(|_| selection.span(session).1);
    show::run(&context, name, at)
}

/// Prints what the stored counts of the kernel say changed.
pub fn diff(session: &Session<'_>, output: &Output) -> Result<Outcome> {
    let rows = changes::compute(session);
    if output.json {
        print_rows(&session.env, Schema::first("info-diff"), &rows, output.limit)?;
    } else {
        let context = Context { session, selection: &Selection::default(), limit: output.rows() };
        let screen = changes_text::screen(&rows, &context.view(output.show.look));
        print_screen(session, screen, &output.show)?;
    }
    Ok(Outcome::Done)
}

/// Prints the report.
pub fn run(session: &Session<'_>, output: &Output) -> Result<Outcome> {
    let (rows, faults) = rows::compute(session);
    if output.json {
        print_rows(&session.env, Schema::first("info"), &rows, output.limit)?;
    } else {
        let context = Context { session, selection: &Selection::default(), limit: output.rows() };
        let screen = text::screen(&rows, session, &context.view(output.show.look));
        print_screen(session, screen, &output.show)?;
    }
    Ok(outcome(session, &faults))
}
