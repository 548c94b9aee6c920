//! Command lines with a mistake: words in another order, a mistyped command, words of other tools or of other reports.
//!
//! The line that was meant is run or shown as a hint. A foreign word is replaced only if the parser accepts the whole
//! line then, and if the line names a file that exists.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use kmt_common::programs::{OF_CAPTURE, line};
use kmt_common::text::escaped;
use kmt_common::usage::{asked, nearest, without_false_tips};

use super::foreign_words::replaced;
use super::other_report;
use crate::trace::parts::is_part;

/// Puts a command that comes after options or after the file before them; reports a first word that is neither a command nor
/// a file.
pub fn corrected(cli: &Command, args: Vec<OsString>) -> Result<Vec<OsString>, clap::Error> {
    let mut args = command_first(cli, args);
    if are_parts(&args) {
        // The first screen is that of this report.
        args.insert(1, "findings".into());
        return Ok(args);
    }
    let names: Vec<&str> = cli.get_subcommands().map(Command::get_name).chain(["help"]).collect();
    let is_command = |word: &OsString| word.to_str().is_some_and(|word| names.contains(&word));
    let Some(first) = args.get(1).filter(|word| !is_command(word)) else { return Ok(args) };
    if is_option(first) {
        return Ok(args);
    }
    if args.get(2).is_some_and(is_command) {
        args.swap(1, 2);
        // The first of two files comes first; an address comes before its file.
        let has_two = args
            .get(1)
            .is_some_and(|word| ["diff", "allocinfo", "balance", "slabinfo"].iter().any(|two| word == two));
        if !has_two {
            let file = args.remove(2);
            args.push(file);
        }
        return Ok(args);
    }
    let is_file = first == "-" || Path::new(first).exists();
    if let Some(name) = first.to_str().filter(|name| OF_CAPTURE.contains(name) && !is_file) {
        let line = line("kmt-capture", args.iter().skip(1).cloned());
        let message = format!("{name} is a command of kmt-capture\nhint: {line}\n");
        return Err(clap::Error::raw(ErrorKind::InvalidSubcommand, message).with_cmd(cli));
    }
    match first.to_str().filter(|_| !is_file).and_then(|word| nearest(word, &names)) {
        Some(name) => {
            let first = escaped(first.as_encoded_bytes());
            let other = foreign_hint(cli, &args);
            let message = format!("'{first}' is neither a command nor a file; did you mean '{name}'?{other}");
            Err(cli.clone().error(ErrorKind::InvalidSubcommand, message))
        }
        None => Ok(args),
    }
}

/// True if a line consists of files of one recording.
fn are_parts(args: &[OsString]) -> bool {
    let mut files = args.iter().skip(1).map(Path::new);
    let are_files = args.len() > 2 && files.clone().all(Path::is_file);
    are_files && files.next().is_some_and(is_part)
}

/// The error of a command line, without tips of the parser that mislead.
pub fn explained(error: clap::Error, cli: &Command, args: &[OsString]) -> clap::Error {
    match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::MissingRequiredArgument, _) => without_command(error, cli, args),
        (ErrorKind::ArgumentConflict, Some(ContextValue::String(word))) => second_word(cli, word, args),
        (ErrorKind::InvalidValue, _) if is_of_sort(&error) => match foreign_hint(cli, args) {
            hint if hint.is_empty() => error,
            hint => with_names_and_hint(&error, &hint, cli, args),
        },
        (ErrorKind::ValueValidation, _) if is_of_pid(&error) => match foreign_hint(cli, args) {
            hint if hint.is_empty() => error,
            hint => {
                let message = format!("--pid is the number of a thread, --comm its name{hint}");
                asked(cli, args).error(ErrorKind::ValueValidation, message)
            }
        },
        (ErrorKind::UnknownArgument, _) if unknown_first_word(cli, args).is_some() => {
            let word = unknown_first_word(cli, args).unwrap_or_default();
            cli.clone().error(ErrorKind::InvalidSubcommand, neither(&word, &foreign_hint(cli, args)))
        }
        (kind, _) => {
            let error = without_false_tips(error, cli, args);
            match foreign_hint(cli, args) {
                hint if hint.is_empty() || kind != ErrorKind::UnknownArgument => error,
                hint => with_hint(&error, &hint, cli, args),
            }
        }
    }
}

/// The error of options of reports without a report.
fn without_command(error: clap::Error, cli: &Command, args: &[OsString]) -> clap::Error {
    let mut meant = args.to_vec();
    meant.insert(1.min(meant.len()), "all".into());
    let is_it = args.get(1).is_some_and(is_option) && cli.clone().try_get_matches_from(&meant).is_ok();
    if !is_it {
        return error;
    }
    let hint = line("kmt-analyze", meant.into_iter().skip(1));
    let message = format!("the first screen has no list; these options are of a report\nhint: {hint}");
    cli.clone().error(ErrorKind::MissingRequiredArgument, message)
}

/// The error of an unknown option, with a line that is accepted.
fn with_hint(error: &clap::Error, hint: &str, cli: &Command, args: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else {
        return clap::Error::raw(error.kind(), error.to_string());
    };
    let message = format!("unexpected argument '{}' found{hint}", escaped(word.as_bytes()));
    asked(cli, args).error(ErrorKind::UnknownArgument, message)
}

/// The first word, if it is neither an option nor a command nor a file.
fn unknown_first_word(cli: &Command, args: &[OsString]) -> Option<String> {
    let first = args.get(1).filter(|word| !is_option(word) && *word != "-" && !Path::new(word).exists())?;
    let is_command = first.to_str().is_some_and(|word| cli.find_subcommand(word).is_some());
    (!is_command).then(|| escaped(first.as_encoded_bytes()))
}

/// The error of such a word, with the line that was meant, or where the commands are listed.
fn neither(word: &str, hint: &str) -> String {
    let hint = if hint.is_empty() { "\nhint: kmt-analyze --help lists the commands" } else { hint };
    format!("'{word}' is neither a command nor a file{hint}")
}

/// True if the value of `--pid` is not a number.
fn is_of_pid(error: &clap::Error) -> bool {
    matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(name)) if name.starts_with("--pid "))
}

/// True if the value of `--sort` is wrong.
fn is_of_sort(error: &clap::Error) -> bool {
    matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(name)) if name.starts_with("--sort "))
}

/// The error of a name of a column that the report lacks: the names that it has, and a report with that column.
fn with_names_and_hint(error: &clap::Error, hint: &str, cli: &Command, args: &[OsString]) -> clap::Error {
    let value = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) => escaped(value.as_bytes()),
        _ => String::new(),
    };
    let names = match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(names)) => names.join(", "),
        _ => String::new(),
    };
    let message = format!("invalid value '{value}' for '--sort'\n  [possible values: {names}]{hint}");
    asked(cli, args).error(ErrorKind::InvalidValue, message)
}

/// The error for a word behind the file, where the parser expects a command.
fn second_word(cli: &Command, word: &str, args: &[OsString]) -> clap::Error {
    let names: Vec<&str> = cli.get_subcommands().map(Command::get_name).collect();
    let name = escaped(word.as_bytes());
    if names.contains(&word) {
        let message = format!("the command '{name}' comes first, before its options and the file");
        return asked(cli, &["".into(), word.into()]).error(ErrorKind::ArgumentConflict, message);
    }
    let message = match nearest(word, &names).filter(|_| !Path::new(word).exists()) {
        Some(near) => format!("'{name}' is neither a command nor a file; did you mean '{near}'?"),
        None => match (foreign_hint(cli, args), args.get(1)) {
            (hint, Some(first)) if !Path::new(first).exists() => {
                neither(&escaped(first.as_encoded_bytes()), &hint)
            }
            _ => format!("'{name}' is one word too many: findings reads one file{}", compared(word, args)),
        },
    };
    cli.clone().error(ErrorKind::ArgumentConflict, message)
}

/// The command that compares two files, if a line consists of them.
fn compared(second: &str, args: &[OsString]) -> String {
    let are_files = args.len() == 3 && args.iter().skip(1).all(|file| Path::new(file).is_file());
    match args.get(1).filter(|_| are_files) {
        Some(first) => {
            let words = [OsString::from("diff"), first.clone(), second.into()];
            format!("\nhint: to compare two files: {}", line("kmt-analyze", words))
        }
        None => String::new(),
    }
}

/// Puts the command before the options that precede it, if it has all of them.
fn command_first(cli: &Command, mut args: Vec<OsString>) -> Vec<OsString> {
    if !args.get(1).is_some_and(is_option) {
        return args;
    }
    let is_it = |(at, word): &(usize, &OsString)| {
        let command = word.to_str().and_then(|word| cli.find_subcommand(word));
        let end = command.and_then(|command| options_end(cli, command, &args));
        // The file may stand between the options and the command.
        end.is_some_and(|end| end == *at || end + 1 == *at)
    };
    if let Some(at) = args.iter().enumerate().skip(2).find(is_it).map(|(at, _)| at) {
        let command = args.remove(at);
        args.insert(1, command);
        // A file stands behind all options.
        if !args.get(at).is_some_and(is_option) && options_end_of(cli, &args) == Some(at) {
            let file = args.remove(at);
            args.push(file);
        }
    }
    args
}

fn is_option(word: &OsString) -> bool {
    word.to_str().is_some_and(|word| word.starts_with('-') && word.len() > 1 && word != "--")
}

/// Where the options end on a line whose first word is the command.
fn options_end_of(cli: &Command, args: &[OsString]) -> Option<usize> {
    let command = cli.find_subcommand(args.get(1)?.to_str()?)?;
    options_end(cli, command, args.get(1..)?).map(|end| end + 1)
}

/// Number of the first word behind the options at the begin; `None`: the command lacks one of them.
fn options_end(cli: &Command, command: &Command, args: &[OsString]) -> Option<usize> {
    let known = || command.get_arguments().chain(cli.get_arguments().filter(|arg| arg.is_global_set()));
    let mut at = 1;
    while let Some(word) = args.get(at).filter(|word| is_option(word)).and_then(|word| word.to_str()) {
        let (name, has_value) = word.split_once('=').map_or((word, false), |(name, _)| (name, true));
        let is_it = |arg: &&clap::Arg| match name.strip_prefix("--") {
            Some(long) => arg.get_long() == Some(long),
            None => arg.get_short() == name.chars().nth(1),
        };
        let arg = known().find(is_it)?;
        // The value of `-l3` is in the same word.
        let is_joined = has_value || !name.starts_with("--") && name.chars().count() > 2;
        at += if arg.get_action().takes_values() && !is_joined { 2 } else { 1 };
    }
    Some(at)
}

/// The hint for a line that the parser refused: a line that it accepts. Empty: no word of it is known.
fn foreign_hint(cli: &Command, args: &[OsString]) -> String {
    let is_accepted = |meant: &Vec<OsString>| {
        let names_file = meant.iter().skip(1).any(|word| Path::new(word).is_file());
        let Ok(parsed) = cli.clone().try_get_matches_from(meant) else { return false };
        names_file && meant.as_slice() != args && files_of(&parsed).all(|file| file.exists())
    };
    let replaced = replaced(cli, args);
    let others =
        replaced.iter().map(Vec::as_slice).chain([args]).flat_map(|line| other_report::lines(cli, line));
    let others: Vec<Vec<OsString>> = others.collect();
    let meant = replaced.into_iter().chain(others).find(is_accepted);
    meant.map_or(String::new(), |meant| format!("\nhint: {}", line("kmt-analyze", meant.into_iter().skip(1))))
}

/// Files that a line reads: a word in their place may be a command that this program lacks.
fn files_of(parsed: &clap::ArgMatches) -> impl Iterator<Item = &PathBuf> {
    let command = parsed.subcommand().map(|(_, matches)| matches);
    let read = ["file", "files"]
        .into_iter()
        .filter_map(move |id| command.and_then(|command| command.try_get_many::<PathBuf>(id).ok().flatten()));
    read.flatten().filter(|file| file.as_path() != Path::new("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_command_behind_the_file_works() {
        let cli = crate::cli::whole();
        let args = corrected(&cli, words("kmt-analyze trace.kmt callers -l 3")).unwrap();
        assert_eq!(args, words("kmt-analyze callers -l 3 trace.kmt"));
        let args = corrected(&cli, words("kmt-analyze a.kmt diff b.kmt")).unwrap();
        assert_eq!(args, words("kmt-analyze diff a.kmt b.kmt"));
        let same = words("kmt-analyze callers trace.kmt");
        assert_eq!(corrected(&cli, same.clone()).unwrap(), same);
    }

    #[test]
    fn options_may_come_before_the_command() {
        let cli = crate::cli::whole();
        for (given, meant) in [
            ("--wide leaks x.kmt", "leaks --wide x.kmt"),
            ("--limit metadata=1G leaks x.kmt", "leaks --limit metadata=1G x.kmt"),
            ("--json callers x.kmt", "callers --json x.kmt"),
            ("-l 3 callers x.kmt", "callers -l 3 x.kmt"),
            ("-l3 --pid=7 callers x.kmt", "callers -l3 --pid=7 x.kmt"),
            ("--pid 7 --wide x.kmt leaks --json", "leaks --pid 7 --wide --json x.kmt"),
            // A value that is a word of the list, no command, an option that the command lacks.
            ("--where leaks x.kmt", "--where leaks x.kmt"),
            ("--wide x.kmt", "--wide x.kmt"),
            ("--nonsense leaks x.kmt", "--nonsense leaks x.kmt"),
            ("--top-down leaks x.kmt", "--top-down leaks x.kmt"),
            ("--help", "--help"),
        ] {
            let args = corrected(&cli, words(&format!("kmt-analyze {given}"))).unwrap();
            assert_eq!(args, words(&format!("kmt-analyze {meant}")), "{given}");
        }
    }

    #[test]
    fn a_mistyped_command_is_answered_with_the_nearest() {
        let cli = crate::cli::whole();
        for (typed, meant) in
            [("calers", "callers"), ("leak", "leaks"), ("fragm", "fragmentation"), ("latnecy", "latency")]
        {
            let error = corrected(&cli, words(&format!("kmt-analyze {typed} x.kmt"))).unwrap_err();
            assert!(error.to_string().contains(&format!("did you mean '{meant}'?\n\nUsage:")), "{error}");
            assert_eq!(error.exit_code(), 2);
        }
        let file = words("kmt-analyze nothing-like-it.kmt");
        assert_eq!(corrected(&cli, file.clone()).unwrap(), file);
    }

    #[test]
    fn errors_of_the_parser_are_explained() {
        let cli = crate::cli::whole();
        let this = std::env::current_exe().unwrap();
        let this = this.to_str().unwrap();
        let two = format!("{this} {this}");
        let diff = format!("reads one file\nhint: to compare two files: kmt-analyze diff {two}\n");
        let json = format!("{this} --json extra");
        let (glossary, other) = (format!("glossary {this}"), format!("frobnicate --slab {this}"));
        for (given, part) in [
            ("x.kmt leks", "'leks' is neither a command nor a file; did you mean 'leaks'?\n\nUsage:"),
            (&json, "'extra' is one word too many: findings reads one file\n\nUsage:"),
            (&two, &diff),
            (
                &glossary,
                "'glossary' is neither a command nor a file\nhint: kmt-analyze --help lists the commands\n",
            ),
            (&other, "'frobnicate' is neither a command nor a file\nhint: kmt-analyze --help lists"),
            (
                "--json x.kmt export",
                "comes first, before its options and the file\n\nUsage: kmt-analyze export ",
            ),
            ("leaks -n x.kmt", "error: unexpected argument '-n' found\n\nUsage: kmt-analyze leaks [OPTIONS]"),
            ("--nope x.kmt", "error: unexpected argument '--nope' found\n\nUsage: kmt-analyze [OPTIONS]"),
            (
                "leaks --lnes 3 x.kmt",
                "a similar argument exists: '--lines'\n\nUsage: kmt-analyze leaks [OPTIONS]",
            ),
        ] {
            let args = corrected(&cli, words(&format!("kmt-analyze {given}"))).unwrap();
            let error = cli.clone().try_get_matches_from(&args).unwrap_err();
            let error = explained(error, &cli, &args);
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(part), "{given}: {error}");
        }
    }

    #[test]
    fn commands_of_the_other_program_are_named() {
        let cli = crate::cli::whole();
        let error = corrected(&cli, words("kmt-analyze record -d 3s")).unwrap_err();
        assert!(error.to_string().ends_with("hint: kmt-capture record -d 3s\n"), "{error}");
        let mut names: Vec<&str> = cli.get_subcommands().map(Command::get_name).collect();
        names.retain(|name| !["completions", "man"].contains(name));
        names.sort_unstable();
        assert_eq!(names, kmt_common::programs::OF_ANALYZE);
    }
}
