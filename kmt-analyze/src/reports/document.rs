//! The frame of every report: heading, selection, trust, schema, and where it is printed.
//!
//! A report gives its rows or its screen; keys that every report has stand around them in JSON, and the sentences on
//! trust below them as text. A report that cannot answer has a document with the reason. `run` and the commands that
//! are not reports print through `emit`.

use serde::Serialize;

use super::common::ReportContext;
use super::common::lead::MaybeRefused;
use super::common::stated::{Keys, SelectionRow, Stated};
use super::common::trust::{TrustRow, warnings_behind};
use super::output::{Output, Show};
use crate::failure::{Failure, Outcome, Result};
use crate::pass::sum_of;
use crate::render::head::Head;
use crate::render::out::{self, Schema, print_json};
use crate::render::screen::{Ink, Screen, page, paint};
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Subject of a report.
#[derive(Clone, Copy)]
pub struct About {
    /// Conditions that the report heeds.
    pub keys: Keys,
    /// Name and version of the document.
    pub schema: Schema,
}

/// Keys that every report has, and its own between them.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReportDocument<R> {
    /// The trace and its clock.
    #[serde(flatten)]
    pub head: Head,
    /// Selection of the command line; `null`: everything is counted.
    pub selection: Option<SelectionRow>,
    /// The report's own keys.
    #[serde(flatten)]
    #[cfg_attr(test, schemars(skip))]
    pub rows: R,
    /// How far the numbers can be trusted.
    pub trust: TrustRow,
}

/// Output of a report: a document, or screens with their headings.
pub enum Printed<'r> {
    /// Keys of the report itself.
    Document(Box<dyn erased_serde::Serialize + 'r>),
    /// Screens; a heading is empty if there is one screen.
    Screens(Vec<(&'static str, Screen)>),
}

/// Prints a report: either a document or screens.
pub fn emit(
    about: &About,
    context: &ReportContext<'_, '_>,
    output: &Output,
    printed: Printed<'_>,
) -> Result<Outcome> {
    let About { keys, schema } = *about;
    let session = context.session;
    let all = sum_of(context.analysis, None);
    let stated = Stated::of(context);
    match printed {
        Printed::Document(rows) => {
            let head = Head::of(session.trace, &session.losses);
            let trust = TrustRow::of(context, &all);
            let selection = stated.map(|stated| stated.row);
            let env = &session.env;
            match output.limit.filter(|limit| *limit < usize::MAX) {
                None => print_json(env, schema, &ReportDocument { head, selection, rows, trust })?,
                Some(limit) => {
                    let rows = out::limited(&*rows, limit)?;
                    print_json(env, schema, &ReportDocument { head, selection, rows, trust })?;
                }
            }
        }
        Printed::Screens(screens) => {
            let screens = match stated.as_ref().and_then(|s| s.nothing(keys)) {
                Some(nothing) => vec![("", nothing)],
                None => screens,
            };
            let mut trust = stated.as_ref().map_or(Vec::new(), Stated::lines);
            let says_losses = screens.iter().all(|(_, screen)| screen.says_losses);
            trust.extend(warnings_behind(context, &all, says_losses));
            print(session, &screens, &trust, &output.show)?;
        }
    }
    Ok(outcome(session, &context.analysis.faults))
}

/// Prints a screen about a file, of a command that needs no pass.
pub fn print_screen(session: &Session<'_>, screen: Screen, show: &Show) -> Result<()> {
    print(session, &[("", screen)], &[], show)
}

/// Prints screens, each under its heading, and below them how far they can be trusted.
fn print(session: &Session<'_>, screens: &[(&str, Screen)], trust: &[String], show: &Show) -> Result<()> {
    let arguments: Vec<String> = session.env.source.options().chain([session.file_arguments()]).collect();
    let mut text = String::new();
    for (index, (title, screen)) in screens.iter().enumerate() {
        let is_last = index + 1 == screens.len();
        let heading = format!("== {title} ==");
        if !title.is_empty() {
            text.push_str(&format!("{}\n\n", paint(&heading, Ink::Heading, show.look.colour)));
        }
        text.push_str(&page(screen, if is_last { trust } else { &[] }, &arguments, &show.look));
        text.push_str(if is_last { "" } else { "\n" });
    }
    // Each line was made harmless before colour was added.
    out::print(&session.env, show.pager, text.as_bytes())
}

/// A report that cannot answer: a document that says so, one line on standard error, exit code 1.
pub fn refuse(
    about: &About,
    context: &ReportContext<'_, '_>,
    output: &Output,
    title: &str,
    reason: &str,
) -> Result<Outcome> {
    if output.json {
        let refused = MaybeRefused::<()>::Refused { refused: reason.to_owned() };
        emit(about, context, output, Printed::Document(Box::new(refused)))?;
    }
    Err(Failure::new(format!("{}: no {title}: {reason}", context.session.path.display())))
}
