//! Errors of the command line: the fact, what is near, the usage.

use std::ffi::OsString;
use std::process::exit;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::text::{is_hostile, tame};

/// Ends the program with a short help, if its command line is empty.
pub fn without_arguments(help: &str) {
    if std::env::args_os().len() < 2 {
        crate::message!("{}", help.trim_end());
        exit(2);
    }
}

/// Prints the help, or the error of a command line, and ends the program.
///
/// The error repeats words of the command line. If one of them could steer a terminal, the error is printed without
/// colours, and with those characters escaped.
pub fn end(error: &clap::Error) -> ! {
    let is_harmless = |word: std::ffi::OsString| !word.to_string_lossy().contains(is_hostile);
    if !error.use_stderr() || std::env::args_os().all(is_harmless) {
        error.exit();
    }
    crate::message!("{}", tame(error.render().to_string().trim_end()));
    exit(error.exit_code())
}

/// Largest number of typing errors in a word that is recognized.
const TYPOS_MAX: usize = 2;

/// The only name that begins with the word, or the one with the fewest typing errors.
pub fn nearest<'n>(word: &str, names: &[&'n str]) -> Option<&'n str> {
    let mut longer = names.iter().filter(|name| word.len() >= 3 && name.starts_with(word));
    let only = longer.next().filter(|_| longer.next().is_none());
    let typos = |name: &&&str| strsim::osa_distance(word, name);
    let best = || names.iter().min_by_key(typos).filter(|name| typos(name) <= TYPOS_MAX.min(word.len() / 2));
    only.or_else(best).copied()
}

/// The error for an unknown option or word, with a tip only where an option is near. The parser's own tips are an option that
/// shares some letters with the word, and `-- WORD`, which makes it a file.
pub fn without_false_tips(error: clap::Error, cli: &Command, args: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(given)) =
        error.get(ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::UnknownArgument)
    else {
        return error;
    };
    let mut command = asked(cli, args);
    let usage = command.render_usage();
    let mut clear = clap::Error::new(ErrorKind::UnknownArgument).with_cmd(&command);
    clear.insert(ContextKind::InvalidArg, ContextValue::String(given.clone()));
    clear.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
    let options: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
    if let Some(near) = given.strip_prefix("--").and_then(|name| nearest(name, &options)) {
        clear.insert(ContextKind::SuggestedArg, ContextValue::String(format!("--{near}")));
    }
    clear
}

/// The command of a command line, with its usage; the program, if the first word is not a command.
pub fn asked(cli: &Command, args: &[OsString]) -> Command {
    let mut cli = cli.clone();
    cli.build();
    let found = args.get(1).and_then(|word| cli.find_subcommand(word.to_str()?)).cloned();
    found.unwrap_or(cli)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cli() -> Command {
        let file = clap::Arg::new("file");
        let option = |name| clap::Arg::new(name).long(name);
        let command = Command::new("leaks").args([option("lines"), option("no-pager"), file]);
        Command::new("kmt").subcommand(command)
    }

    #[test]
    fn tips_are_for_what_is_near() {
        for (line, tip) in [
            ("kmt leaks --lnes", Some("  tip: a similar argument exists: '--lines'")),
            ("kmt leaks --line", Some("  tip: a similar argument exists: '--lines'")),
            ("kmt leaks --nope", None),
            ("kmt leaks -n", None),
            ("kmt --lines", None),
        ] {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let error = cli().try_get_matches_from(&args).unwrap_err();
            let said = without_false_tips(error, &cli(), &args).to_string();
            assert_eq!(said.lines().find(|line| line.contains("tip")), tip, "{said}");
            let word = args.last().and_then(|word| word.to_str()).unwrap();
            assert!(said.starts_with(&format!("error: unexpected argument '{word}' found\n\n")), "{said}");
            let usage = if args.len() > 2 { "Usage: kmt leaks [OPTIONS] [file]" } else { "Usage: kmt" };
            assert!(said.contains(usage) && said.ends_with("try '--help'.\n"), "{said}");
        }
    }

    #[test]
    fn names_are_near_by_their_begin_and_by_typing_errors() {
        let names = ["callers", "caches", "leaks"];
        assert_eq!(nearest("calers", &names), Some("callers"));
        assert_eq!(nearest("lea", &names), Some("leaks"));
        assert_eq!(nearest("ca", &names), None);
        assert_eq!(nearest("trace.kmt", &names), None);
    }
}
