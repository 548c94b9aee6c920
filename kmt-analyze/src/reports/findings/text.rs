//! The first screen.

use super::parts::{Part, Parts};
use super::rows::FindingRows;
use crate::render::screen::{Cell, Column, Lead, Screen, Table};
use crate::render::words::share;
use crate::reports::common::View;
use crate::reports::summary::SummaryRows;

/// Findings, the recording, and short totals.
pub fn screen(rows: &FindingRows, view: &View) -> Screen {
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
    if let Some(parts) = &rows.parts {
        screen.note(by_part(parts));
        screen.next("callers --by dir", "by directory");
    }
    screen.next("summary", "all totals");
    screen.next("all", "every report");
    screen
}

/// `Slab memory still allocated: ~fs 51 %, ~mm 20 %.`
fn by_part(parts: &Parts) -> String {
    let name = |part: &Part| format!("{} {}", part.subsystem, share(part.bytes, parts.bytes_total));
    let unknown = (parts.bytes_unknown > 0)
        .then(|| format!("unknown {}", share(parts.bytes_unknown, parts.bytes_total)));
    let names: Vec<String> = parts.largest.iter().map(name).chain(unknown).collect();
    let is_inferred = parts.largest.iter().any(|part| part.subsystem.starts_with('~'));
    format!(
        "Slab memory {}: {}{}.",
        if parts.is_live { "still allocated" } else { "allocated" },
        names.join(", "),
        if is_inferred { " (~: inferred from names of functions)" } else { "" }
    )
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
    if let Some(pages) = rows.pages.as_ref().filter(|pages| !pages.sums.is_empty()) {
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
