//! The screen of wasted memory.

use super::rows::{PlaceRow, WasteRows, WasteTable};
use super::wasted::Wasted;
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::reports::common::shown::part;
use crate::reports::common::sorting::SortKey;
use crate::reports::common::{ReportContext, View};
use crate::trace::names::function_of;

/// Changes that are shown, unless more are allowed.
const CHANGES: usize = 6;

/// All places in one table, and what would save the first.
pub fn screen(
    context: &ReportContext<'_, '_>,
    rows: &WasteRows,
    sort: Option<SortKey>,
    view: &View,
) -> Screen {
    let rows = &rows.waste;
    let mut screen = Screen::new(answer(rows, sort, view));
    screen.table(
        Table::of_rows("", &rows.places)
            .of("place", "places", rows.places_total.unwrap_or(0))
            .column(Column::whole("kind"), |row| Cell::text(row.kind))
            .column(Column::name("call site or cache"), |row| name(context, row))
            .column(Column::number("wasted"), |row| at_times(row, row.wasted.bytes_wasted))
            .column(Column::number("live waste"), |row| Cell::bytes(row.wasted.bytes_wasted_live))
            .column(Column::number("mean waste").leaves(2), |row| {
                at_times(row, row.wasted.bytes_wasted_on_average)
            })
            .column(Column::number("objects").leaves(3), |row| Cell::count(row.wasted.objects))
            .explain(
                "wasted",
                "wasted: by all allocations; live waste: at the end, also of slabs; mean waste: on average over the window.",
            ),
    );
    let change = |row: &PlaceRow| format!("{} ({}): {}", function_of(&row.name), row.kind, row.saves);
    let changed = rows.places.iter().filter(|row| !row.saves.is_empty());
    let changes = changed.take(part(view.limit, CHANGES)).map(change);
    screen.lines("what would save it", changes.collect());
    if rows.places.iter().any(|row| row.api.is_none()) {
        screen.note(
            "Slab tails are those of all slabs of the machine (/proc/slabinfo), and sparse slabs have tails too: do not add up kinds.",
        );
    }
    unknown(rows).into_iter().for_each(|note| screen.note(note));
    screen.next("fragmentation", "unused memory by place, with shares");
    screen.next("what-if", "size classes that would waste less");
    screen
}

/// Reasons why numbers are unknown, each with its kinds.
fn unknown(rows: &WasteTable) -> Vec<String> {
    let unknown: Vec<_> =
        rows.kinds.iter().filter_map(|row| Some((row.kind, row.unknown.as_ref()?))).collect();
    let same = unknown.chunk_by(|a, b| a.1 == b.1).filter_map(|kinds| {
        let names: Vec<&str> = kinds.iter().map(|(kind, _)| *kind).collect();
        Some(format!("{}: unknown; {}.", names.join(", "), kinds.first()?.1))
    });
    same.collect()
}

fn name(context: &ReportContext<'_, '_>, row: &PlaceRow) -> Cell {
    match row.call_site {
        Some(address) => Cell::from(&context.labels().located(address.0)),
        None => Cell::text(&row.name),
    }
}

/// Bytes over time, which slabs do not have.
fn at_times(row: &PlaceRow, bytes: Option<u64>) -> Cell {
    if row.bytes_req.is_none() { Cell::Empty } else { Cell::bytes(bytes) }
}

/// The place that wastes most, and the sums of the kinds.
fn answer(rows: &WasteTable, sort: Option<SortKey>, view: &View) -> String {
    let Some(first) = rows.places.first() else {
        return "No wasted memory was found. It needs allocations with their requested sizes, page events or /proc/slabinfo."
            .to_owned();
    };
    let bytes = |number: u64| view.bytes(number);
    let wasted = &first.wasted;
    let (number, when) = match sort {
        None if wasted.bytes_wasted > wasted.bytes_wasted_live => (wasted.bytes_wasted, BY_ALL),
        None | Some(SortKey::LiveWaste) => (wasted.bytes_wasted_live, AT_END),
        Some(SortKey::MeanWaste) => (wasted.bytes_wasted_on_average, "on average"),
        Some(SortKey::Waste) => (wasted.bytes_wasted, BY_ALL),
        Some(_) => (None, ""),
    };
    let most = number.filter(|number| *number > 0).map(|number| {
        format!("Largest waste {when}: {} in {} ({}). ", bytes(number), function_of(&first.name), first.kind)
    });
    format!("{}{}", most.unwrap_or_default(), by_kind(rows, view))
}

/// Waste of all allocations, and that of live objects and slabs.
const BY_ALL: &str = "by all allocations";
const AT_END: &str = "at the end";

/// Sums of the kinds, the largest first: of all allocations, and at the end.
fn by_kind(rows: &WasteTable, view: &View) -> String {
    let sums = |when: &str, of: fn(&Wasted) -> Option<u64>| {
        let known = rows.kinds.iter().filter_map(|row| Some((of(&row.wasted)?, row.kind)));
        let mut known: Vec<(u64, &str)> = known.filter(|(bytes, _)| *bytes > 0).collect();
        // The sort is stable: kinds of equal sums keep their order.
        known.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        let largest = known.first()?.0;
        let parts: Vec<String> =
            known.iter().map(|(bytes, kind)| format!("{kind} {}", view.bytes(*bytes))).collect();
        Some((largest, format!("{when}: {}", parts.join(", "))))
    };
    let all = sums(BY_ALL, |wasted| wasted.bytes_wasted);
    let live = sums(AT_END, |wasted| wasted.bytes_wasted_live);
    let mut sums: Vec<(u64, String)> = all.into_iter().chain(live).collect();
    sums.sort_by_key(|(largest, _)| std::cmp::Reverse(*largest));
    let texts: Vec<String> = sums.into_iter().map(|(_, text)| text).collect();
    if texts.is_empty() {
        return "No waste is known.".to_owned();
    }
    format!("{}.", capitalized(&texts.join("; ")))
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
