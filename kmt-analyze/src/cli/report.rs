//! Commands of the reports, made of their registry.

use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::args::{LineArgs, SelectArgs, Target};
use crate::failure::{Failure, Outcome, Result};
use crate::pass::selection::Selection;
use crate::reports::registry::{Entry, REPORTS, named};
use crate::reports::run::{Output, one};
use crate::trace::session::Session;

/// Adds a command for each report that has none of its own, behind the first ones.
pub fn with_reports(mut cli: Command) -> Command {
    /// Commands before the reports: summary, info, dump.
    const FIRST: usize = 3;
    let names: Vec<String> = cli.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for (place, name) in names.iter().enumerate() {
        let order = if place < FIRST { place } else { place + REPORTS.len() };
        cli = cli.mut_subcommand(name, |command| command.display_order(order));
    }
    let own = REPORTS.iter().filter(|entry| !names.iter().any(|name| name == entry.name));
    cli.subcommands(own.enumerate().map(|(place, entry)| command(entry).display_order(FIRST + place)))
}

/// Options of all reports around those of its own.
fn command(entry: &Entry) -> Command {
    let command = SelectArgs::augment_args((entry.with_options)(Command::new(entry.name)));
    let command = if entry.has_lines { LineArgs::augment_args(command) } else { command };
    // Each group of options brings the description of its own.
    Target::augment_args(command).about(entry.about).long_about(None)
}

/// The report that was asked for, if it is one without a command of its own.
pub fn asked(matches: &ArgMatches) -> Option<(&'static Entry, &ArgMatches)> {
    let (name, matches) = matches.subcommand()?;
    // summary has options that are no report's.
    named(name).filter(|entry| entry.name != "summary").map(|entry| (entry, matches))
}

/// Prints a report.
pub fn run(entry: &Entry, matches: &ArgMatches) -> Result<Outcome> {
    let wrong = |error: clap::Error| Failure::new(error.to_string());
    let selection = Selection::from(SelectArgs::from_arg_matches(matches).map_err(wrong)?);
    let target = Target::from_arg_matches(matches).map_err(wrong)?;
    let limit = match entry.has_lines {
        true => LineArgs::from_arg_matches(matches).map_err(wrong)?.lines,
        false => None,
    };
    let report = (entry.parse)(matches, &selection).map_err(wrong)?;
    let output = Output { limit, json: target.json };
    let print = |session: &Session<'_>| one(session, &selection, output, &*report);
    if entry.accounts { super::with(&target.file, print) } else { super::shown(&target.file, print) }
}
