//! Runs command lines in this process, on files in memory, and captures their output: for fuzz targets and tests. Not a
//! public API.

use crate::cli;
use crate::env::Env;
use crate::failure::Outcome;
use crate::files::InMemory;
use crate::pass::condition::Condition;

/// Result of a command line.
#[derive(Debug)]
pub struct CommandResult {
    /// Outcome, or the message of the failure.
    pub ended: Result<Outcome, String>,
    /// Captured standard output.
    pub written: Vec<u8>,
}

/// Runs a command line, without the name of the program, on files in memory.
pub fn run(args: &[&str], files: &[(&str, &[u8])]) -> CommandResult {
    let files = files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
    let memory = InMemory::new(files);
    let ended = cli::run_line(args.iter().copied(), Env::in_memory(memory.clone()));
    CommandResult { ended: ended.map_err(|failure| failure.to_string()), written: memory.take_written() }
}

/// True if a text is a valid condition for `--where`.
pub fn is_condition(text: &str) -> bool {
    Condition::parse(text).is_ok()
}
