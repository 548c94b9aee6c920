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
use crate::render::head::is_minimum;
use crate::render::out::Schema;
use crate::render::screen::Screen;
use crate::render::words::{count, share};
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
    let lost = lost_in_words(session);
    let screens = || vec![(String::new(), Screen::verbatim(text::text(&rows, lost.as_deref())))];
    emit(&about, &context, output, || &rows, screens)
}

/// Lost events with their share of all; `None`: none is missing, so that exact sums are those of the recorded time.
fn lost_in_words(session: &Session<'_>) -> Option<String> {
    let losses = &session.losses;
    losses.any().then(|| match losses.lost_since_first() {
        0 => "Events were lost, not counted".to_owned(),
        lost => {
            let least = if is_minimum(losses) { "At least " } else { "" };
            let part = share(lost, lost.saturating_add(session.trace.event_count()));
            format!("{least}{} events ({part} of all) were lost", count(lost))
        }
    })
}
