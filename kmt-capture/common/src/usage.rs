//! Errors of the command line.

use std::process::exit;

use clap::error::{ContextKind, ContextValue};

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
pub fn end(error: clap::Error) -> ! {
    let error = without_false_tips(error);
    let is_harmless = |word: std::ffi::OsString| !word.to_string_lossy().contains(is_hostile);
    if !error.use_stderr() || std::env::args_os().all(is_harmless) {
        error.exit();
    }
    crate::message!("{}", tame(error.render().to_string().trim_end()));
    exit(error.exit_code())
}

/// The error without the tip to give an unknown option as a value: no option of the programs is meant as a file.
fn without_false_tips(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
        tips.retain(|tip| !tip.to_string().contains(" as a value, use "));
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_option_is_not_offered_as_a_file() {
        let file = clap::Arg::new("file");
        let list = clap::Command::new("list").arg(clap::Arg::new("deep").long("deep"));
        let cli = clap::Command::new("kmt").arg(file).subcommand(list);
        let said = |words: &str| {
            let error = cli.clone().try_get_matches_from(words.split(' ')).unwrap_err();
            (error.to_string(), without_false_tips(error).to_string())
        };
        let (before, after) = said("kmt -n");
        assert!(
            before.contains("use '-- -n'") && after.contains("'-n'") && !after.contains("tip"),
            "{after}"
        );
        let (_, after) = said("kmt --deep list");
        assert!(after.contains("'list --deep' exists") && !after.contains("as a value"), "{after}");
    }
}
