//! `anomalies`: objects and frees that contradict each other, each kind with its meaning.
//!
//! The collector `Anomalies` finds them in the ledger's events. Options and the screen are here, rows in `rows`, meanings in
//! `meanings`.

mod meanings;
mod rows;

use meanings::Meaning;
pub use rows::AnomalyRows;
use rows::{AnomalyKind, AnomalyRow, AnomalySite, Detail};

use crate::collect::{Anomalies, Collectors, Handle};
use crate::render::screen::{Cell, Column, CommandLine, Ink, Screen, ScreenPart, Table};
use crate::render::words::{count, counted};
use crate::reports::common::basis::Input;
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::report::Report;
use crate::trace::names::function_of;

/// Objects and frees that contradict each other.
#[derive(Debug, Default, clap::Args)]
pub struct AnomalyReport;

impl Report for AnomalyReport {
    type Handles = Handle<Anomalies>;
    type Rows = AnomalyRows;

    const NAME: &'static str = "anomalies";
    const ABOUT: &'static str = "Events that contradict each other, with their causes";
    const RESTS_ON: Input = Input::SlabLives;

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(Anomalies)
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handle: &Self::Handles) -> AnomalyRows {
        meanings::anomaly_rows(context, context.analysis.get(*handle))
    }

    /// Kinds that occurred with their verdicts, then the sites of each.
    fn screen(&self, rows: &AnomalyRows, view: &View) -> Screen {
        let found: Vec<&AnomalyKind> = rows.anomalies.iter().filter(|kind| kind.count > 0).collect();
        let mut screen = Screen::default();
        answer(&mut screen, &found, view);
        if found.is_empty() {
            let titles: Vec<&str> = rows.anomalies.iter().map(|kind| kind.title).collect();
            screen.note(format!("Checked: {}.", titles.join(", ")));
        }
        screen.table(kinds(&found, view));
        for kind in &found {
            let heading = format!("{}: {}", kind.title, count(kind.count));
            let sentences =
                kind.explanation.split_inclusive(". ").map(|sentence| sentence.trim_end().to_owned());
            screen.parts.push(ScreenPart::Lines { heading, lines: sentences.collect() });
            screen.table(sites(kind, view));
        }
        first_free(&mut screen, &found, view);
        screen.next("caches", "implied frees and live memory by cache");
        screen
    }
}

/// Kinds that may be bugs, or else the most frequent one.
fn verdict(kind: &AnomalyKind, view: &View) -> &'static str {
    Meaning::of(kind).verdict(kind, view.is_lossy)
}

fn answer(screen: &mut Screen, found: &[&AnomalyKind], view: &View) {
    let Some(most) = found.iter().max_by_key(|kind| kind.count) else {
        screen.answer("No anomalies: allocations and frees do not contradict each other.");
        return;
    };
    for kind in found.iter().filter(|kind| kind.doubtful() > 0) {
        let number = counted(kind.doubtful(), Meaning::of(kind).one, kind.title);
        let most = kind.rows.iter().map(|row| (row, kind.doubtful_of(row))).find(|(_, count)| *count > 0);
        let most = most.map_or(String::new(), |(row, count)| by(row, count));
        screen.answer(format!("{number} ({}){most}.", verdict(kind, view)));
    }
    if screen.answer.is_empty() {
        let number = counted(most.count, Meaning::of(most).one, most.title);
        screen.answer(format!("No sign of a kernel bug. Most frequent: {number} ({}).", verdict(most, view)));
    }
}

/// Address and time of the first event that may be a double free.
fn first_free(screen: &mut Screen, found: &[&AnomalyKind], view: &View) {
    let rows = found.iter().flat_map(|kind| &kind.rows);
    let Some(first) = rows.filter_map(|row| row.first).min_by_key(|first| first.time) else { return };
    let at = view.time(first.time);
    screen.note(format!("The first possible double free is that of {:x}, at {at}.", first.ptr.0));
    let who = CommandLine::from("who").argument(format!("{:#x}", first.ptr.0));
    screen.next(who, "who allocated and freed that address");
}

/// `, 2,898 of them by mas_destroy`.
fn by(row: &AnomalyRow, number: u64) -> String {
    let site = row.freed_by.as_ref().or(row.call_site.as_ref());
    site.map_or(String::new(), |site| format!(", {} of them by {}", count(number), function_of(&site.symbol)))
}

/// `possible double free: 1`, if not all of the kind are.
fn with_number(kind: &AnomalyKind, view: &View) -> String {
    let (verdict, doubtful) = (verdict(kind, view), kind.doubtful());
    if doubtful == 0 || doubtful == kind.count {
        return verdict.to_owned();
    }
    format!("{verdict}: {}", count(doubtful))
}

/// One row for each kind.
fn kinds(found: &[&AnomalyKind], view: &View) -> Table {
    let ink = |kind: &AnomalyKind| if kind.suspect > 0 { Ink::Bad } else { Ink::Plain };
    Table::of_rows("", found)
        .of("kind", "kinds", found.len())
        .column(Column::name("anomaly"), |kind| Cell::text(kind.title))
        .column(Column::number("count"), |kind| Cell::Count(kind.count))
        .column(Column::text("verdict"), |kind| Cell::Verdict(with_number(kind, view), ink(kind)))
        .into()
}

/// Sites of one kind; columns that none of them has are left out.
fn sites(kind: &AnomalyKind, view: &View) -> Table {
    let has = |of: fn(&AnomalyRow) -> bool| kind.rows.iter().any(of);
    let (allocated, freed) = (has(|row| row.call_site.is_some()), has(|row| row.freed_by.is_some()));
    if !allocated && !freed {
        return Table::default();
    }
    let has_cache = has(|row| row.shown.cache.is_some());
    let name = |site: &Option<AnomalySite>| site.as_ref().map_or(Cell::Empty, |s| Cell::from(&s.symbol));
    let cache = |row: &AnomalyRow| row.shown.cache.as_ref().map_or(Cell::Empty, Cell::text);
    let is_again = has(|row| matches!(row.shown.numbers, Some(Detail::Again { .. })));
    let details = kind.rows.iter().find_map(|row| row.shown.numbers).map_or(Vec::new(), detail_columns);
    Table::of_rows("", &kind.rows)
        .of("site", "sites", kind.rows_total)
        .column_if(allocated, Column::name("allocated by"), |row| name(&row.call_site))
        .column_if(freed, Column::name("freed by"), |row| name(&row.freed_by))
        .column_if(has_cache, Column::text("cache"), |row| cache(row))
        .column(Column::number("count"), |row| Cell::Count(row.count))
        .column(Column::number("share").leaves(3), |row| Cell::share(row.count, kind.count))
        .column_if(is_again && kind.suspect > 0, Column::number("possible double free"), |row| {
            Cell::Count(row.suspect)
        })
        .column_if(kind.shown.maybe_lost > 0, Column::number("lost or double free"), |row| {
            Cell::Count(row.shown.maybe_lost)
        })
        .columns(details, |row| row.shown.numbers.map_or(Vec::new(), |numbers| detail_cells(numbers, view)))
        .into()
}

fn detail_columns(numbers: Detail) -> Vec<Column> {
    let headings: &[&'static str] = match numbers {
        Detail::Undersized { .. } => &["allocated", "requested"],
        Detail::Bytes(_) => &["bytes"],
        Detail::Delay(_) => &["longest delay"],
        Detail::Again { .. } => &[],
        Detail::Implied { .. } => &["address reused", "page reused"],
        Detail::Size(_) => &["size"],
    };
    headings.iter().map(|heading| Column::number(heading).leaves(1)).collect()
}

fn detail_cells(numbers: Detail, view: &View) -> Vec<Cell> {
    match numbers {
        Detail::Undersized { allocated, requested } => vec![Cell::Bytes(allocated), Cell::Bytes(requested)],
        Detail::Bytes(bytes) | Detail::Size(bytes) => vec![Cell::Bytes(bytes)],
        Detail::Delay(delay) => vec![view.duration_cell(Some(delay))],
        Detail::Again { .. } => Vec::new(),
        Detail::Implied { by_object, by_page } => vec![Cell::Count(by_object), Cell::Count(by_page)],
    }
}
