//! The first screen.

use super::rows::FindingRows;
use crate::render::screen::{Cell, Column, Lead, Screen, Table};
use crate::reports::common::View;
use crate::reports::summary::SummaryRows;

/// Findings, the recording, and short totals.
pub fn of(rows: &FindingRows, view: &View) -> Screen {
    let mut screen = Screen::default();
    let sentence = |finding: &super::Finding| match view.look.exact_bytes {
        true => finding.exact_sentence.clone(),
        false => finding.sentence.clone(),
    };
    let leads = rows
        .findings
        .iter()
        .map(|finding| Lead { sentence: sentence(finding), command: finding.command.to_owned() });
    screen.leads(leads.collect());
    screen.answer(rows.recording.sentence.clone());
    screen.table(totals(&rows.totals));
    screen.next("summary", "all totals");
    screen.next("all", "every report");
    screen
}

/// Totals of kmalloc, caches and pages.
fn totals(rows: &SummaryRows) -> Table {
    let columns = [
        Column::whole("memory"),
        Column::number("allocs"),
        Column::number("allocated"),
        Column::number("freed"),
        Column::number("still allocated"),
        Column::number("wasted").leaves(1),
    ];
    let mut table = Table::new("", columns);
    if let Some(slab) = &rows.slab {
        for (name, totals) in [("kmalloc", &slab.kmalloc.totals), ("slab caches", &slab.cache.totals)] {
            table.row([
                Cell::text(name),
                Cell::count(totals.alloc_events),
                Cell::bytes(totals.bytes_alloc),
                Cell::bytes(totals.bytes_freed),
                Cell::bytes(totals.bytes_live),
                Cell::bytes(totals.bytes_wasted),
            ]);
        }
    }
    if let Some(pages) = rows.pages.as_ref().filter(|pages| !pages.sums.is_empty) {
        let sums = &pages.sums.sums;
        table.row([
            Cell::text("pages (slabs included)"),
            Cell::count(sums.alloc_events),
            Cell::bytes(sums.bytes_alloc),
            Cell::bytes(sums.bytes_freed),
            Cell::bytes(sums.bytes_live),
            Cell::Empty,
        ]);
    }
    table.explain("still allocated", "Still allocated: of what was allocated during the recording.");
    table
}
