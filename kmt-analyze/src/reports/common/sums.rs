//! Columns of slab sums, and how many rows are shown.

use super::known::{Known, about, cell};
use crate::ledger::totals::Totals;
use crate::limits::ROWS_MAX;
use crate::pass::weights::Estimate;
use crate::render::table::Align;
use crate::render::text::count;
use crate::trace::losses::Losses;

/// Columns of any trace.
const SUMS: [(&str, Align); 9] = [
    ("allocs", Align::Right),
    ("bytes_req", Align::Right),
    ("bytes_alloc", Align::Right),
    ("wasted", Align::Right),
    ("frag", Align::Right),
    ("freed", Align::Right),
    ("unseen", Align::Right),
    ("live", Align::Right),
    ("bytes_live", Align::Right),
];

/// Headings of the columns of slab sums; where events were lost, lives that cross a loss stand beside them.
pub fn sum_columns(losses: &Losses) -> Vec<(&'static str, Align)> {
    let uncertain = losses.any().then_some(("uncertain", Align::Right));
    SUMS.into_iter().chain(uncertain).collect()
}

/// The cells under [`sum_columns`]; a mark where it is not known when objects end, or where there are only samples.
pub fn sums(t: &Totals, estimate: Option<Estimate>, known: Known, losses: &Losses) -> Vec<String> {
    let lives = |text| cell(known.lives, text);
    let cells = [
        about(estimate.map(|e| e.alloc_events), t.alloc_events),
        about(estimate.map(|e| e.bytes_req), t.bytes_req),
        about(estimate.map(|e| e.bytes_alloc), t.bytes_alloc),
        about(estimate.map(|e| e.bytes_alloc - e.bytes_req), t.bytes_wasted()),
        format!("{:.1}%", t.internal_fragmentation_percent()),
        lives(count(t.bytes_freed)),
        lives(count(t.bytes_freed_unseen)),
        lives(count(t.live)),
        lives(count(t.bytes_live)),
    ];
    cells.into_iter().chain(losses.any().then(|| lives(count(t.uncertain)))).collect()
}

/// How many of `rows` rows are shown.
pub fn shown(limit: Option<usize>, rows: usize) -> usize {
    limit.unwrap_or(ROWS_MAX).min(rows)
}

/// The line under a table that is cut.
pub fn more(shown: usize, rows: usize, what: &str) -> String {
    if shown < rows { format!("... {} more {what}\n", count((rows - shown) as u64)) } else { String::new() }
}
