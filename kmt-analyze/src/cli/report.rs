//! Commands of the reports, generated from the registry.
//!
//! An entry of the registry gives the options of a report; those that all reports have, such as `--json`, `--csv` and
//! `--sort`, are added here. `run` makes the report of the parsed line and prints it, or writes its table. Forms
//! without a trace, as of two copies of slabinfo, are chosen here too.

use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::command::{LineArgs, TableArgs, Target};
use crate::env::Env;
use crate::export::{self, ReportTable};
use crate::failure::{Failure, Outcome, Result};
use crate::pass::selection::Selection;
use crate::reports::column_order::ColumnOrder;
use crate::reports::latency::{Latency, LatencyOptions, live};
use crate::reports::output::{Output, Show};
use crate::reports::registry::{Entry, REPORTS, named};
use crate::reports::report::Report;
use crate::reports::run::one;
use crate::reports::slabinfo::SlabInfo;
use crate::slab_copies;
use crate::trace::parts;
use crate::trace::session::Session;

/// Id of the option that sorts.
const SORT: &str = "sort";

/// Adds a command for each report without its own, after the first ones.
pub fn with_reports(mut cli: Command) -> Command {
    /// Number of commands before the reports: summary, info, dump.
    const FIRST: usize = 3;
    let names: Vec<String> = cli.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for (index, name) in names.iter().enumerate() {
        let order = if index < FIRST { index } else { index + REPORTS.len() };
        cli = cli.mut_subcommand(name, |command| command.display_order(order));
    }
    let own = REPORTS.iter().filter(|entry| !names.iter().any(|name| name == entry.name));
    cli.subcommands(own.enumerate().map(|(index, entry)| command(entry).display_order(FIRST + index)))
}

/// Command of a report: its own options first, then those that all reports have.
fn command(entry: &Entry) -> Command {
    let command = (entry.with_options)(Command::new(entry.name));
    let has_keys = command.get_arguments().any(|arg| arg.get_id() == SORT);
    let command = if has_keys || !entry.has_lines { command } else { ColumnOrder::augment_args(command) };
    let command = if entry.has_lines { LineArgs::augment_args(command) } else { command };
    let command = Selection::augment_args(TableArgs::augment_args(Target::augment_args(command)));
    // Each group of options brings the description of its own.
    let command = command.about(entry.about).long_about(None).next_help_heading(None);
    let details = (entry.details)();
    if details.is_empty() { command } else { command.after_help(details) }
}

/// The report of a command line, if its command is in the registry.
pub fn asked(matches: &ArgMatches) -> Option<(&'static Entry, &ArgMatches)> {
    let (name, matches) = matches.subcommand()?;
    // The command summary has options besides the report's.
    named(name).filter(|entry| entry.name != "summary").map(|entry| (entry, matches))
}

/// Prints a report.
pub fn run(entry: &Entry, matches: &ArgMatches, show: Show, env: &Env) -> Result<Outcome> {
    let wrong = |error: clap::Error| Failure::new(error.to_string());
    let selection = Selection::from_arg_matches(matches).map_err(wrong)?;
    let target = Target::from_arg_matches(matches).map_err(wrong)?;
    let limit = match entry.has_lines {
        true => LineArgs::from_arg_matches(matches).map_err(wrong)?.lines,
        false => None,
    };
    if entry.name == Latency::NAME && matches.get_flag("follow") {
        let options = LatencyOptions::from_arg_matches(matches).map_err(wrong)?;
        let options =
            live::LiveOptions { threshold: options.threshold, pids: selection.pids, json: target.json };
        let newest = |files: &[PathBuf]| parts::the_newest(files, "latency", env);
        return live::run(parts::only(&target.files, "latency --follow", newest)?, &options, env);
    }
    let report = (entry.parse)(matches, &selection).map_err(wrong)?;
    let TableArgs { csv, table } = TableArgs::from_arg_matches(matches).map_err(wrong)?;
    let output = Output { limit, json: target.json, show };
    if entry.name == SlabInfo::NAME && slab_copies::are_copies(&target.files, env) {
        let is_sorted = matches.try_get_many::<String>(SORT).is_ok_and(|keys| keys.is_some());
        if selection.is_active() || is_sorted || table.is_some_and(|table| table != "caches") {
            return Err(Failure::new("copies of /proc/slabinfo have no events to select and one table")
                .hint("omit all options but --lines, --json and --csv")
                .usage());
        }
        return slab_copies::run(&target.files, csv, &output, env);
    }
    // The keys of a report of its own are of another type.
    let order = match matches.try_get_many::<String>(SORT) {
        Ok(_) => ColumnOrder::from_arg_matches(matches).map_err(wrong)?,
        Err(_) => ColumnOrder::default(),
    };
    let print = |session: &Session<'_>| match csv {
        true => {
            let table = ReportTable { report: &*report, name: table.as_deref(), lines: limit, order: &order };
            export::csv(session, &selection, &table)
        }
        false => one(session, &selection, output, (&*report, &order)),
    };
    if entry.accounts {
        super::with_sums(env, &target.files, print)
    } else {
        super::shown(env, &target.files, print)
    }
}
