//! Command lines run in this process, on files in memory, with their output kept: for fuzz targets and tests. It is no
//! public API.
//!
//! What a thread runs here reads the files that were given by name, and writes to memory instead of standard output.

use crate::cli;
use crate::failure::Outcome;
use crate::pass::term::Term;
use crate::stdio::{Held, hold};

/// Result of a command line.
#[derive(Debug)]
pub struct Ran {
    /// How it ended; a failure by its message.
    pub ended: Result<Outcome, String>,
    /// What it wrote to standard output.
    pub written: Vec<u8>,
}

/// Runs a command line, without the name of the program, on files in memory.
pub fn run(args: &[&str], files: &[(&str, &[u8])]) -> Ran {
    let files = files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
    let restored = Restored(hold(Some(Held { files, written: Vec::new() })));
    let ended = cli::run_line(args.iter().copied()).map_err(|failure| failure.to_string());
    let written = hold(None).map(|held| held.written).unwrap_or_default();
    drop(restored);
    Ran { ended, written }
}

/// Whether a text is a condition for `--where`.
pub fn is_condition(text: &str) -> bool {
    Term::parse(text).is_ok()
}

/// Puts back what was there before, also when the run panics.
struct Restored(Option<Held>);

impl Drop for Restored {
    fn drop(&mut self) {
        hold(self.0.take());
    }
}
