//! First words that other recorders have (`trace-cmd start`), and commands whose output file is named in another way.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use kmt_common::programs::line;
use kmt_common::shell;

/// What is done here in place of such a first word, and a command.
pub fn of(first: &str) -> Option<(String, String)> {
    let (what, hint) = match first {
        "start" => (
            "kmt-capture has no start: record runs until Ctrl-C or for -d TIME; record --ring waits for a condition; arm records until a crash",
            "kmt-capture record -d 30s -o trace.kmt",
        ),
        "stop" => (
            "kmt-capture has no stop: a recording ends at Ctrl-C, SIGTERM, or after -d TIME; arm --off ends arm",
            "kmt-capture record --help",
        ),
        _ => return None,
    };
    Some((what.to_owned(), hint.to_owned()))
}

/// The line of `convert IN OUT` or `snippet FILE`, with the output as the command accepts it. `None`: it is another line.
pub fn output(error: &clap::Error, args: &[OsString], cli: &clap::Command) -> Option<(String, String)> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let ContextValue::String(word) = error.get(ContextKind::InvalidArg)? else { return None };
    match args.get(1)?.to_str()? {
        "convert" => {
            let at = args.iter().rposition(|arg| arg == word.as_str()).filter(|_| !word.starts_with('-'))?;
            let (before, after) = args.split_at(at);
            let words = before.iter().cloned().chain([OsString::from("-o")]).chain(after.iter().cloned());
            let words: Vec<OsString> = words.collect();
            cli.clone().try_get_matches_from(&words).ok()?;
            Some((
                "the output of convert comes after -o".to_owned(),
                line("kmt-capture", words.into_iter().skip(1)),
            ))
        }
        "snippet" => {
            let words = args.get(2..)?.iter().filter(|word| *word != "-o" && *word != "--output");
            let words: Vec<&str> = words.filter_map(|word| word.to_str()).collect();
            let [file] = words.as_slice() else { return None };
            let file = file.strip_prefix("--output=").or_else(|| file.strip_prefix("-o")).unwrap_or(file);
            if file.is_empty() || file.starts_with('-') {
                return None;
            }
            let hint = format!("kmt-capture snippet > {}", shell::path(Path::new(file)));
            Some(("snippet prints the script to standard output".to_owned(), hint))
        }
        _ => None,
    }
}
