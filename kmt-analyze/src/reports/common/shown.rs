//! How many rows are shown.

use crate::limits::ROWS_MAX;
use crate::render::text::count;

/// How many of `rows` rows are shown.
pub fn shown(limit: Option<usize>, rows: usize) -> usize {
    limit.unwrap_or(ROWS_MAX).min(rows)
}

/// The line under a table that is cut.
pub fn more(shown: usize, rows: usize, what: &str) -> String {
    if shown < rows { format!("... {} more {what}\n", count((rows - shown) as u64)) } else { String::new() }
}
