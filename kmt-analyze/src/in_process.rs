//! Runs command lines in this process, on files in memory, and captures their output: for fuzz targets and tests. Not a
//! public API.
//!
//! A thread in [`run`] reads the given files by name, and writes to memory instead of standard output.

use crate::cli;
use crate::failure::Outcome;
use crate::pass::condition::Condition;
use crate::stdio::{Held, hold};

/// Result of a command line.
#[derive(Debug)]
pub struct Ran {
    /// Outcome, or the message of the failure.
    pub ended: Result<Outcome, String>,
    /// Captured standard output.
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

/// True if a text is a valid condition for `--where`.
pub fn is_condition(text: &str) -> bool {
    Condition::parse(text).is_ok()
}

/// Restores the previous state, also if the run panics.
struct Restored(Option<Held>);

impl Drop for Restored {
    fn drop(&mut self) {
        hold(self.0.take());
    }
}
