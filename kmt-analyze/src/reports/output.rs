//! Options of what is printed: rows, JSON or text, and display.
//!
//! The command line makes an `Output` for a report. Without `-l` the number of rows depends on the form: as many as fit
//! a screen, or up to a limit in JSON. `-l 0` is all rows.

use crate::limits::ROWS_MAX;
use crate::render::look::Look;

/// Display options of a report, and use of a pager.
#[derive(Debug, Clone, Copy, Default)]
pub struct Show {
    /// Display options.
    pub look: Look,
    /// Through a pager, on a terminal.
    pub pager: bool,
}

/// Rows to print, and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct Output {
    /// At most this many rows of each table. `None`: [`ROWS_SHOWN`] or fewer as text, at most 20,000 as JSON.
    pub limit: Option<usize>,
    pub json: bool,
    /// Display options.
    pub show: Show,
}

/// Rows of a table on a screen, unless `-l` says otherwise.
pub const ROWS_SHOWN: usize = 20;

impl Output {
    /// At most this many rows of each table.
    pub fn rows(&self) -> usize {
        self.rows_of(ROWS_SHOWN)
    }

    /// At most this many rows of each table of a report whose screen has `shown` rows without `-l`.
    pub fn rows_of(&self, shown: usize) -> usize {
        match self.limit {
            Some(limit) => limit,
            None if self.json => ROWS_MAX,
            None => shown,
        }
    }
}
