//! Command lines run in this process, on files in memory, with their output kept: for fuzz targets and tests. It is no
//! public API.
//!
//! What a thread runs here reads the files that were given by name, and writes to memory instead of standard output.

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use crate::analysis::term::Term;
use crate::cli;
use crate::failure::Outcome;

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

#[derive(Default)]
struct Held {
    files: Vec<(String, Vec<u8>)>,
    written: Vec<u8>,
}

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
    let before = HELD.replace(Some(Held { files, written: Vec::new() }));
    let _restored = Restored(before);
    let ended = cli::run_line(args.iter().copied()).map_err(|failure| failure.to_string());
    let written = HELD.with_borrow_mut(|held| held.take().map(|held| held.written).unwrap_or_default());
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
        HELD.set(self.0.take());
    }
}

/// A file that is held in memory.
pub(crate) fn file(path: &Path) -> Option<Vec<u8>> {
    HELD.with_borrow(|held| {
        let found = held.as_ref()?.files.iter().find(|(name, _)| Path::new(name) == path);
        found.map(|(_, bytes)| bytes.clone())
    })
}

/// Whether what is written is kept in memory.
pub(crate) fn is_held() -> bool {
    HELD.with_borrow(Option::is_some)
}

/// Standard output, or what is held instead.
pub(crate) fn stdout() -> Box<dyn Write> {
    if is_held() { Box::new(Sink) } else { Box::new(io::stdout()) }
}

/// Whether standard output is a terminal.
pub(crate) fn stdout_is_terminal() -> bool {
    !is_held() && io::stdout().is_terminal()
}

struct Sink;

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        HELD.with_borrow_mut(|held| {
            if let Some(held) = held {
                held.written.extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
