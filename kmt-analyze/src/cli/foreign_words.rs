//! Words of other tools and of other reports on the command line: the line that was meant, as a hint.
//!
//! A word is replaced only if the whole line then is one that the parser accepts, and names a file that exists.

use std::ffi::OsString;
use std::path::Path;

use clap::Command;
use kmt_common::programs::line;

use super::other_report;

/// Commands of other tools (perf kmem, trace-cmd mem), and the same tables here.
const COMMANDS: [(&str, [&str; 3]); 2] =
    [("kmem", ["summary", "--compat", "perf-kmem"]), ("mem", ["summary", "--compat", "trace-cmd-mem"])];

/// Words behind these commands.
const SUBCOMMANDS: [&str; 2] = ["stat", "report"];

/// The hint for a line that the parser refused: a line that it accepts. Empty: no word of it is known.
pub fn hint(cli: &Command, args: &[OsString]) -> String {
    let is_accepted = |meant: &Vec<OsString>| {
        let names_file = meant.iter().skip(1).any(|word| Path::new(word).is_file());
        names_file && meant.as_slice() != args && cli.clone().try_get_matches_from(meant).is_ok()
    };
    let replaced = replaced(args);
    let others =
        replaced.iter().map(Vec::as_slice).chain([args]).flat_map(|line| other_report::lines(cli, line));
    let others: Vec<Vec<OsString>> = others.collect();
    let meant = replaced.into_iter().chain(others).find(is_accepted);
    meant.map_or(String::new(), |meant| format!("\nhint: {}", line("kmt-analyze", meant.into_iter().skip(1))))
}

/// The value of an option, in its word or the next one.
fn value_of(joined: &Option<OsString>, next: Option<&&OsString>) -> Option<OsString> {
    joined.clone().or_else(|| next.map(|word| (*word).clone()))
}

/// True of a form that reports print.
fn is_form(value: &Option<OsString>) -> bool {
    value.as_ref().is_some_and(|value| value == "csv" || value == "json")
}

/// The line with the words of this program.
fn replaced(args: &[OsString]) -> Option<Vec<OsString>> {
    let mut words = args.iter().skip(1).peekable();
    let (mut meant, mut files): (Vec<OsString>, Vec<OsString>) = (Vec::new(), Vec::new());
    let (mut from, mut to) = (None, None);
    let command = words.peek().and_then(|word| word.to_str());
    if let Some((_, same)) = command.and_then(|word| COMMANDS.iter().find(|(name, _)| *name == word)) {
        words.next();
        words.next_if(|word| word.to_str().is_some_and(|word| SUBCOMMANDS.contains(&word)));
        meant.extend(same.iter().map(OsString::from));
    }
    while let Some(word) = words.next() {
        let (name, joined) = match word.to_str() {
            Some(text) if text.starts_with("--") => match text.split_once('=') {
                Some((name, value)) => (name, Some(OsString::from(value))),
                None => (text, None),
            },
            Some(text) => (text, None),
            None => ("", None),
        };
        let is_form = is_form(&value_of(&joined, words.peek()));
        let mut value = || joined.clone().or_else(|| words.next().cloned());
        match name {
            "-i" | "--input" => files.push(value()?),
            "--from" => from = Some(value()?),
            "--to" => to = Some(value()?),
            "--format" if is_form => {
                let form = value()?;
                meant.push(format!("--{}", form.to_string_lossy()).into());
            }
            "--group" | "--group-by" => meant.extend(["--by".into(), value()?]),
            _ => meant.push(word.clone()),
        }
    }
    if from.is_some() || to.is_some() {
        let mut range = from.unwrap_or_default();
        range.push("..");
        range.push(to.unwrap_or_default());
        // Options come before the file.
        let is_command =
            |word: &OsString| !word.to_string_lossy().starts_with('-') && !Path::new(word).exists();
        let at = usize::from(meant.first().is_some_and(is_command));
        meant.splice(at..at, ["--time".into(), range]);
    }
    // CSV is of a report: the first screen has none.
    let is_first_screen = meant.first().is_some_and(|word| word.to_string_lossy().starts_with('-'));
    if is_first_screen && meant.iter().any(|word| word == "--csv") {
        meant.insert(0, "callers".into());
    }
    // `summary` has several tables, and `dump` is the events: `export` writes them.
    let export: &[&str] = match meant.first().and_then(|word| word.to_str()) {
        Some("summary") => &["export", "csv", "--of", "summary"],
        Some("dump") => &["export", "csv"],
        _ => &[],
    };
    if !export.is_empty() && meant.iter().any(|word| word == "--csv") {
        meant.remove(0);
        meant.retain(|word| word != "--csv");
        meant.splice(0..0, export.iter().map(OsString::from));
    }
    let program = args.first().cloned();
    Some(program.into_iter().chain(meant).chain(files).collect())
}
