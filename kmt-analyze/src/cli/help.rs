//! The list of commands, by the question that they answer.

use std::fmt::Write;

use clap::Command;

use crate::pass::selection::SELECTION;
use crate::reports::registry::{REPORTS, ReportGroup};
use crate::source::SOURCE;

/// Commands that are no reports, by group, in the order of the help.
const OTHERS: [(ReportGroup, &[&str]); 4] = [
    (ReportGroup::Memory, &["all"]),
    (ReportGroup::Compare, &["diff", "allocinfo", "reconcile"]),
    (ReportGroup::Events, &["info", "dump", "verify"]),
    (
        ReportGroup::Exchange,
        &[
            "report",
            "chart",
            "export",
            "slice",
            "symbolize",
            "recover",
            "anonymize",
            "account",
            "footprint",
            "completions",
            "man",
        ],
    ),
];

/// What all commands have in common.
const COMMON: &str = "Sizes are in bytes, or end in K, M, G, KiB, MiB or GiB: powers of 1,024. Lengths
of time end in ns, us, ms, s, min or h; a plain number counts in the unit of the
trace's clock.

Exit codes: 0 done, 1 failed, or a report has no answer for this file, 2 usage,
3 done, but events were lost or input was damaged";

/// Layout of the help of the program.
const TEMPLATE: &str = "{about-with-newline}
Usage: kmt-analyze FILE              findings: the most important facts of the trace
       kmt-analyze COMMAND … FILE    one question, one command
       kmt-analyze COMMAND --help    its options, with examples
{before-help}{common}

Options:
{options}";

/// Gives the program's help a list of commands by group. Options that select events are in the help of each command.
pub fn grouped(cli: Command) -> Command {
    let list = list(&cli);
    let hide = |arg: clap::Arg| {
        let is_shared = [Some(SELECTION), Some(SOURCE)].contains(&arg.get_help_heading());
        let is_compat = matches!(
            arg.get_id().as_str(),
            "compat" | "slab" | "page" | "caller" | "alloc" | "sort" | "lines"
        );
        if is_shared || is_compat { arg.hide(true) } else { arg }
    };
    cli.mut_args(hide)
        .before_help(list)
        .after_help(COMMON)
        .help_template(TEMPLATE.replace("{common}", COMMON))
}

/// The commands of all groups.
fn list(cli: &Command) -> String {
    let mut out = String::new();
    for group in ReportGroup::ALL {
        let _ = writeln!(out, "\n{}:", group.title());
        for name in commands(group) {
            // A build may lack a command.
            let Some(command) = cli.find_subcommand(name) else { continue };
            let about = command.get_about().map(ToString::to_string);
            let _ = writeln!(out, "  {name:<14} {}", about.unwrap_or_default());
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Names of the commands of a group: reports first.
fn commands(group: ReportGroup) -> impl Iterator<Item = &'static str> {
    let reports = REPORTS.iter().filter(move |entry| entry.group == group).map(|entry| entry.name);
    let others =
        OTHERS.iter().filter(move |(of, _)| *of == group).flat_map(|(_, names)| names.iter().copied());
    reports.chain(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let cli = crate::cli::whole();
        let mut listed: Vec<&str> = ReportGroup::ALL.into_iter().flat_map(commands).collect();
        let mut all: Vec<&str> = cli.get_subcommands().map(Command::get_name).collect();
        listed.sort_unstable();
        all.sort_unstable();
        assert_eq!(listed, all);
    }

    #[test]
    fn options_come_last() {
        let help = crate::cli::whole().render_help().to_string();
        let at = |words: &str| help.find(words).unwrap_or_else(|| panic!("{words}: {help}"));
        assert!(at("callers ") < at("Exit codes:") && at("Exit codes:") < at("Options:"), "{help}");
        assert!(at("Options:") < at("--wide"), "{help}");
    }

    #[test]
    fn the_list_fits_80_columns() {
        let list = list(&crate::cli::whole());
        let long: Vec<&str> = list.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:#?}");
    }
}
