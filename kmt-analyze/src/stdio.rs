//! Files and standard output, or buffers in memory instead of them (`in_process`).

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Files by name, and the output.
#[derive(Debug, Default)]
pub struct Held {
    /// Files by name.
    pub files: Vec<(String, Vec<u8>)>,
    /// Captured standard output.
    pub written: Vec<u8>,
}

/// Replaces files and output of this thread by buffers, or restores them; returns the previous ones.
pub fn hold(held: Option<Held>) -> Option<Held> {
    HELD.replace(held)
}

/// Contents of a file in memory.
pub fn file(path: &Path) -> Option<Vec<u8>> {
    HELD.with_borrow(|held| {
        let found = held.as_ref()?.files.iter().find(|(name, _)| Path::new(name) == path);
        found.map(|(_, bytes)| bytes.clone())
    })
}

/// True if output is captured in memory.
pub fn is_held() -> bool {
    HELD.with_borrow(Option::is_some)
}

/// Standard output, or its buffer.
pub fn stdout() -> Box<dyn Write> {
    if is_held() { Box::new(Sink) } else { Box::new(io::stdout()) }
}

/// True if standard output is a terminal.
pub fn stdout_is_terminal() -> bool {
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
