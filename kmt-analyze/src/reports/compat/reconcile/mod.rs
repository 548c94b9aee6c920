//! `reconcile`: differences of the totals of other tools from the exact ones, term by term.

mod rows;
mod text;

#[cfg(test)]
pub use rows::ReconcileRows;

use super::others;
use crate::collect::{Collectors, Reasons};
use crate::failure::{Outcome, Result};
use crate::pass::selection::Selection;
use crate::pass::{self, Request};
use crate::render::out::Schema;
use crate::render::screen::Screen;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, ReportContext};
use crate::reports::document::{About, emit};
use crate::reports::output::Output;
use crate::trace::session::Session;

/// Prints the differences of the totals of other tools from the exact ones, term by term.
pub fn reconcile(session: &Session<'_>, output: &Output) -> Result<Outcome> {
    let others = others(session);
    let mut collectors = Collectors::default();
    let reasons = collectors.add(Reasons);
    let selection = Selection::default();
    let result = pass::run(session, &Request::new(&selection, &collectors));
    let context = ReportContext::new(&Context { session, selection: &selection, limit: 0 }, &result);
    let rows = rows::compute(&result, result.get(reasons), &others.legacy);
    let about = About { keys: Keys::All, schema: Schema::first("reconcile") };
    let screens = || vec![(String::new(), Screen::verbatim(text::text(&rows)))];
    emit(&about, &context, output, || &rows, screens)
}
