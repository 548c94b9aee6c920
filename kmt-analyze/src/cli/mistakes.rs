//! Command lines with the words in another order, or with a mistyped command.

use std::ffi::OsString;
use std::path::Path;

use clap::Command;
use clap::error::ErrorKind;
use kmt_common::programs::{OF_CAPTURE, line};

/// Largest number of typing errors in a command that is recognized.
const TYPOS_MAX: usize = 2;

/// Puts a command that comes after the file before it; reports a first word that is neither a command nor a file.
pub fn corrected(cli: &Command, mut args: Vec<OsString>) -> Result<Vec<OsString>, clap::Error> {
    let names: Vec<&str> = cli.get_subcommands().map(Command::get_name).chain(["help"]).collect();
    let is_command = |word: &OsString| word.to_str().is_some_and(|word| names.contains(&word));
    let Some(first) = args.get(1).filter(|word| !is_command(word)) else { return Ok(args) };
    let is_option = first.to_str().is_some_and(|word| word.starts_with('-') && word != "-");
    if is_option {
        return Ok(args);
    }
    if args.get(2).is_some_and(is_command) {
        args.swap(1, 2);
        let file = args.remove(2);
        args.push(file);
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
            let first = kmt_common::text::escaped(first.as_encoded_bytes());
            let message = format!(
                "'{first}' is neither a command nor a file; did you mean '{name}'?\n\nFor the list of commands, try 'kmt-analyze --help'.\n"
            );
            Err(cli.clone().error(ErrorKind::InvalidSubcommand, message))
        }
        None => Ok(args),
    }
}

/// The only command that begins with the word, or the one with the fewest typing errors.
fn nearest<'n>(word: &str, names: &[&'n str]) -> Option<&'n str> {
    let mut longer = names.iter().filter(|name| word.len() >= 3 && name.starts_with(word));
    let only = longer.next().filter(|_| longer.next().is_none());
    let typos = |name: &&&str| strsim::osa_distance(word, name);
    let best = || names.iter().min_by_key(typos).filter(|name| typos(name) <= TYPOS_MAX.min(word.len() / 2));
    only.or_else(best).copied()
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
        let same = words("kmt-analyze callers trace.kmt");
        assert_eq!(corrected(&cli, same.clone()).unwrap(), same);
    }

    #[test]
    fn a_mistyped_command_is_answered_with_the_nearest() {
        let cli = crate::cli::whole();
        for (typed, meant) in
            [("calers", "callers"), ("leak", "leaks"), ("fragm", "fragmentation"), ("latnecy", "latency")]
        {
            let error = corrected(&cli, words(&format!("kmt-analyze {typed} x.kmt"))).unwrap_err();
            assert!(error.to_string().contains(&format!("did you mean '{meant}'?")), "{error}");
            assert_eq!(error.exit_code(), 2);
        }
        let file = words("kmt-analyze nothing-like-it.kmt");
        assert_eq!(corrected(&cli, file.clone()).unwrap(), file);
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
