//! The tables of counts.

use super::rows::{CountTable, EventRows};
use crate::render::table::{Align, table};
use crate::render::text::{count, escaped, percent};
use crate::reports::common::shown::more;

/// Tables by event, task and CPU.
pub fn of(rows: &EventRows) -> String {
    let tables = [("event", &rows.by_event), ("task", &rows.by_task), ("CPU", &rows.by_cpu)];
    tables.map(|(heading, counts)| counts_text(heading, counts, rows.events_total)).join("\n")
}

fn counts_text(heading: &str, counts: &CountTable, all: u64) -> String {
    use Align::{Left, Right};
    let columns = [(heading, Left), ("events", Right), ("share", Right), ("per second", Right)];
    let rate = |rate: Option<f64>| rate.map_or("?".to_owned(), |rate| count(rate.round() as u64));
    let rows = counts.rows.iter().map(|(name, row)| {
        vec![
            escaped(name.as_bytes()),
            count(row.events),
            percent(row.events, all),
            rate(row.events_per_second),
        ]
    });
    table(&columns, &rows.collect::<Vec<_>>()) + &more(counts.rows.len(), counts.total, "rows")
}
