//! Anomalies in the results of a pass, by kind.

use super::finder::Finder;
use super::meanings::{KINDS, Meaning};
use super::rows::{AnomalyKind, AnomalyRow, AnomalyRows};
use crate::collect::anomalies::AnomalySums;
use crate::reports::common::ReportContext;

/// Rows of a trace.
pub fn compute(context: &ReportContext<'_, '_>, sums: &AnomalySums) -> AnomalyRows {
    let mut kinds = kinds(context, sums);
    for kind in &mut kinds {
        kind.rows.sort_by(|a, b| {
            fn rank(row: &AnomalyRow) -> [u64; 3] {
                [row.suspect, row.maybe_lost, row.count]
            }
            fn names(row: &AnomalyRow) -> [Option<&str>; 2] {
                [&row.call_site, &row.freed_by].map(|site| site.as_ref().map(|site| site.symbol.as_str()))
            }
            rank(b).cmp(&rank(a)).then_with(|| names(a).cmp(&names(b)))
        });
        kind.rows.truncate(context.limit);
    }
    AnomalyRows { anomalies: kinds }
}

/// All kinds, also those that did not occur.
fn kinds(context: &ReportContext<'_, '_>, sums: &AnomalySums) -> Vec<AnomalyKind> {
    let finder = Finder { context, sums };
    let kind = |meaning: &'static Meaning| {
        let rows = (meaning.rows)(&finder);
        AnomalyKind {
            kind: meaning.kind,
            title: meaning.title,
            explanation: meaning.explanation,
            may_be_a_fault: meaning.may_be_a_fault,
            count: rows.iter().map(|row| row.count).sum(),
            rows_total: rows.len(),
            suspect: rows.iter().map(|row| row.suspect).sum(),
            maybe_lost: rows.iter().map(|row| row.maybe_lost).sum(),
            is_bulk: rows.iter().all(|row| row.is_bulk),
            rows,
        }
    };
    KINDS.iter().map(kind).collect()
}
