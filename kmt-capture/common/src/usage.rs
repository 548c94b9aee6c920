//! Errors of the command line.

use std::process::exit;

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
