//! Words of other tools on a command line (perf kmem, trace-cmd, slabtop), and of options that other commands have, in the words
//! of this program.
//!
//! Used after the parser has refused the words of a command line: `mistakes` tries the replaced line, and shows it as a
//! hint if the parser accepts it. The lists are pairs of the other word and the word of this program. Nothing is run
//! instead of the given command.

use std::ffi::OsString;
use std::path::Path;

use clap::Command;

/// Commands of other tools (perf kmem, trace-cmd mem, slabtop), and the same tables here.
const COMMANDS: [(&str, &[&str]); 7] = [
    ("kmem", &["summary", "--compat", "perf-kmem"]),
    ("mem", &["summary", "--compat", "trace-cmd-mem"]),
    ("script", &["dump"]),
    ("stat", &["summary"]),
    ("slabtop", &["caches", "--sort", "live"]),
    ("top", &["callers"]),
    ("cgroups", &["memory", "--by", "cgroup"]),
];

/// Words behind these commands.
const SUBCOMMANDS: [&str; 2] = ["stat", "report"];

/// Options of `perf kmem stat` that select what is shown here anyway.
const WITHOUT_MEANING: [&str; 1] = ["--slab"];

/// Options named after a property of allocations, and its key in `--where`.
const PROPERTIES: [(&str, &str); 5] = [
    ("--cache", "cache"),
    ("--task", "comm"),
    ("--cgroup", "cgroup"),
    ("--module", "module"),
    ("--call-site", "call_site"),
];

/// Columns by the names that `perf kmem` gives them.
const COLUMNS: [(&str, &str); 4] =
    [("bytes", "allocated"), ("hit", "allocs"), ("frag", "waste_percent"), ("callsite", "name")];

/// Weights of the call graph by the names of columns.
const WEIGHTS: [(&str, &str); 5] =
    [("live", "live"), ("allocated", "alloc"), ("bytes", "alloc"), ("allocs", "count"), ("hit", "count")];

/// The other name of a word in a list.
fn other_name(word: &OsString, names: &[(&str, &str)]) -> Option<OsString> {
    names.iter().find(|(name, _)| word == name).map(|(_, other)| (*other).into())
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
pub fn replaced(cli: &Command, args: &[OsString]) -> Option<Vec<OsString>> {
    let mut words = args.iter().skip(1).peekable();
    let (mut meant, mut files): (Vec<OsString>, Vec<OsString>) = (Vec::new(), Vec::new());
    let (mut from, mut to) = (None, None);
    let command = words.peek().and_then(|word| word.to_str());
    if let Some((_, same)) = command.and_then(|word| COMMANDS.iter().find(|(name, _)| *name == word)) {
        words.next();
        words.next_if(|word| word.to_str().is_some_and(|word| SUBCOMMANDS.contains(&word)));
        meant.extend(same.iter().map(OsString::from));
    }
    let own = meant.first().or(args.get(1)).and_then(|word| cli.find_subcommand(word.to_str()?)).cloned();
    let lacks = |option: &str| {
        let long = option.trim_start_matches('-');
        own.as_ref().is_some_and(|own| own.get_arguments().all(|argument| argument.get_long() != Some(long)))
    };
    let is_perf = !meant.is_empty();
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
            option if is_perf && WITHOUT_MEANING.contains(&option) && joined.is_none() => {}
            "-n" => meant.extend(["-l".into(), value()?]),
            "--sort" | "-s" => {
                let key = value()?;
                let weight = other_name(&key, &WEIGHTS).filter(|_| lacks("--sort") && !lacks("--by"));
                match weight {
                    Some(weight) => meant.extend(["--by".into(), weight]),
                    None => meant.extend([name.into(), other_name(&key, &COLUMNS).unwrap_or(key)]),
                }
            }
            "--pid" => {
                let task = value()?;
                let is_number = task.to_str().is_some_and(|task| task.parse::<i64>().is_ok());
                meant.extend([if is_number { "--pid" } else { "--comm" }.into(), task]);
            }
            property if lacks(property) && PROPERTIES.iter().any(|(option, _)| *option == property) => {
                let key =
                    PROPERTIES.iter().find(|(option, _)| *option == property).map_or("", |(_, key)| *key);
                let mut condition = OsString::from(format!("{key}="));
                condition.push(value()?);
                meant.extend(["--where".into(), condition]);
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
