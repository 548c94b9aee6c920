//! Anomalies, kind by kind.

use super::rows::{AnomalyKind, AnomalyRows, Site};
use crate::render::table::{Align, table};
use crate::render::text::count;
use crate::reports::common::shown::more;
use Align::{Left, Right};

/// Kinds that happened with their places, then those that did not.
pub fn of(rows: &AnomalyRows) -> String {
    let (found, absent): (Vec<_>, Vec<_>) = rows.anomalies.iter().partition(|kind| kind.count > 0);
    let found: String = found.into_iter().map(kind).collect();
    let absent: String = absent.into_iter().map(|kind| format!("none: {}\n", kind.title)).collect();
    found + &absent
}

/// One kind: its meaning, and a table of its places without empty columns.
fn kind(kind: &AnomalyKind) -> String {
    let name = |site: &Option<Site>| site.as_ref().map_or(String::new(), |site| site.symbol.clone());
    let rows: Vec<Vec<String>> = kind
        .rows
        .iter()
        .map(|row| vec![count(row.count), name(&row.call_site), name(&row.freed_by), row.detail.clone()])
        .collect();
    let has = |column: usize| rows.iter().any(|row| row.get(column).is_some_and(|cell| !cell.is_empty()));
    let all = [("times", Right), ("allocated by", Left), ("freed by", Left), ("", Left)];
    let columns: Vec<usize> = (0..all.len()).filter(|&column| column == 0 || has(column)).collect();
    let mut out = format!("{}: {}\n{}\n", count(kind.count), kind.title, kind.explanation);
    if columns.len() > 1 {
        let cells =
            |row: &Vec<String>| columns.iter().filter_map(|&column| row.get(column).cloned()).collect();
        let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
        let columns: Vec<_> = columns.iter().filter_map(|&column| all.get(column).copied()).collect();
        out.push_str(&table(&columns, &rows));
        out.push_str(&more(kind.rows.len(), kind.rows_total, "places"));
    }
    out + "\n"
}
