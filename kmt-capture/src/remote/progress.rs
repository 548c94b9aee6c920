//! The line of status of a recording on another machine.

use std::io::IsTerminal;

use kmt_common::terminal::{fitted, line_width};
use kmt_common::text::escaped;

/// Longest text that is read, in bytes.
const TEXT_MAX: usize = 500;

/// The line, if standard error is a terminal.
#[derive(Debug)]
pub struct Progress {
    is_on: bool,
    is_shown: bool,
}

impl Progress {
    /// Nothing is shown yet.
    pub fn new(quiet: bool) -> Self {
        Self { is_on: !quiet && std::io::stderr().is_terminal(), is_shown: false }
    }

    /// Shows a text of the target.
    pub fn show(&mut self, text: &[u8]) {
        if self.is_on {
            let text = escaped(text.get(..TEXT_MAX).unwrap_or(text));
            let line = fitted(text.split("  "), line_width().unwrap_or(0));
            kmt_common::text::to_stderr(format_args!("\r\x1b[K{line}"));
            self.is_shown = true;
        }
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            kmt_common::text::to_stderr(format_args!("\r\x1b[K"));
        }
    }
}
