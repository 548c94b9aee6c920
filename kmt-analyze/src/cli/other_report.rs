//! An option that a command lacks and another report has (`--by`, `--sort`, `--csv`): that report, as a command line.
//!
//! Used by `mistakes` after the parser has refused a line. The lists have the reports with a table of the same subject;
//! the first line that the parser accepts is the hint. Nothing is run instead of the given command.

use std::ffi::OsString;

use clap::Command;

use crate::reports::registry::named;

/// Commands, and those that have a table of the same subject. Options of theirs keep the subject.
const NEAR: [(&str, &[&str]); 17] = [
    ("all", &["callers"]),
    ("anomalies", &["callers"]),
    ("balance", &["memory"]),
    ("baseline", &["caches", "--sort", "live"]),
    ("boot", &["callers", "--sort", "live"]),
    ("crosscpu", &["callers"]),
    ("dump", &["events"]),
    ("fragmentation", &["callers", "--sort", "wasted"]),
    ("info", &["events"]),
    ("latency", &["tasks"]),
    ("leaks", &["memory"]),
    ("peak", &["callers", "--sort", "live"]),
    ("reconcile", &["memory"]),
    ("slabinfo", &["caches", "--sort", "live"]),
    ("summary", &["callers"]),
    ("waste", &["callers", "--sort", "wasted"]),
    ("what-if", &["sizes", "--sort", "wasted"]),
];

/// Reports for other commands, and for options that the nearest report lacks.
const OTHERS: [&str; 10] = [
    "callers",
    "pages",
    "tasks",
    "memory",
    "lifetimes",
    "temporary",
    "caches",
    "waste",
    "events",
    "timeline",
];

/// Lines with another report in place of the command, the nearest first. Some may be wrong: the parser decides.
pub fn lines(cli: &Command, args: &[OsString]) -> Vec<Vec<OsString>> {
    let Some((program, rest)) = args.split_first() else { return Vec::new() };
    let first = rest.first().and_then(|word| word.to_str()).unwrap_or_default();
    let command = cli.find_subcommand(first).map(Command::get_name);
    // The first screen has the options of its report, findings.
    let (name, options) =
        command.map_or(("findings", rest), |name| (name, rest.get(1..).unwrap_or_default()));
    let near = NEAR.iter().find(|(of, _)| *of == name).map(|(_, words)| *words);
    let has_tables = near.is_some() || named(name).is_some();
    let line = |words: &[&str]| -> Vec<OsString> {
        let words = words.iter().map(OsString::from);
        std::iter::once(program.clone()).chain(words).chain(options.iter().cloned()).collect()
    };
    let is_sort =
        |word: &OsString| word.to_str().is_some_and(|word| word.starts_with("--sort") || word == "-s");
    let is_sorted = options.iter().any(is_sort);
    // Options of a line are its own. The parser does not know the columns of a report that accepts any.
    let near = near.map(|words| if is_sorted { words.get(..1).unwrap_or_default() } else { words });
    let fits = |report: &&str| !is_sorted || has_own_names(cli, report);
    let near = near.filter(|words| words.first().is_some_and(fits)).map(line);
    let others = OTHERS.iter().filter(|other| has_tables && **other != name && fits(other));
    let others = others.map(|other| line(&[*other]));
    // Commands that are not reports have JSON in place of tables.
    let words = rest.iter().map(|word| if word == "--csv" { "--json".into() } else { word.clone() });
    let json: Vec<OsString> = std::iter::once(program.clone()).chain(words).collect();
    near.into_iter().chain(others).chain([json]).collect()
}

/// True if a report accepts a list of names as columns.
fn has_own_names(cli: &Command, report: &str) -> bool {
    let sort = cli
        .find_subcommand(report)
        .and_then(|command| command.get_arguments().find(|argument| argument.get_long() == Some("sort")));
    sort.is_some_and(|sort| !sort.get_possible_values().is_empty())
}
