//! The answer of fragmentation, and the table of all places.

use super::losses::{Loss, Requested, UnusedIn, wasted_in_all};
use super::rows::FragmentationTables;
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::share;
use crate::reports::common::View;
use crate::reports::common::answer::MaybeRefused;
use crate::trace::names::function_of;

/// A screen with the largest loss, and a table of all.
pub fn screen(rows: &FragmentationTables, losses: &[Loss], requested: Requested, view: &View) -> Screen {
    let mut screen = Screen::new(answer(rows, losses, requested, view));
    let largest = |loss: &Loss| loss.largest.clone().filter(|(_, bytes)| *bytes > 0);
    screen.table(
        Table::of_rows("", losses.iter().filter(|loss| loss.bytes.is_some()))
            .column(Column::whole("place"), |loss| Cell::text(name(loss.place)))
            .column(Column::number("unused"), |loss| Cell::bytes(loss.bytes))
            .column(Column::number("of"), |loss| Cell::bytes(loss.of))
            .column(Column::number("share"), |loss| {
                loss.bytes.zip(loss.of).map_or(Cell::Unknown, |(part, all)| Cell::share(part, all))
            })
            .column(Column::name("largest part").leaves(1), |loss| {
                largest(loss).map_or(Cell::Empty, |(name, _)| Cell::symbol(name))
            })
            .column(Column::number("its bytes").leaves(2), |loss| {
                largest(loss).map_or(Cell::Empty, |(_, bytes)| Cell::Bytes(bytes))
            })
            .explain("of", meaning(losses, requested)),
    );
    for reason in unknown(rows, losses) {
        screen.note(reason);
    }
    screen
}

/// Meaning of the sizes.
fn meaning(losses: &[Loss], requested: Requested) -> String {
    let known = losses.iter().filter(|loss| loss.bytes.is_some());
    let parts = known.map(|loss| match loss.place {
        UnusedIn::Objects => "live objects of the trace".to_owned(),
        UnusedIn::Slabs => "all slabs".to_owned(),
        UnusedIn::BetweenObjects => "slabs allocated in the trace".to_owned(),
        UnusedIn::BetweenPages => {
            let largest = if requested.is_traced { ", the largest requested" } else { "" };
            format!("free memory (unused: in blocks below order {}{largest})", requested.order)
        }
    });
    format!("of: {}.", parts.collect::<Vec<_>>().join("; "))
}

/// Name of a place.
fn name(place: UnusedIn) -> &'static str {
    match place {
        UnusedIn::Objects => "inside objects",
        UnusedIn::Slabs => "inside slabs",
        UnusedIn::BetweenObjects => "between objects",
        UnusedIn::BetweenPages => "between pages",
    }
}

/// The answer where all losses at the end are unknown.
fn unknown_at_end(wasted_in_all: Option<(u64, u64)>, view: &View) -> String {
    const NEEDS: &str = "it needs frees, page events, and snapshots of /proc/slabinfo and /proc/buddyinfo";
    match wasted_in_all.filter(|(wasted, _)| *wasted > 0) {
        Some((wasted, all)) => format!(
            "Objects wasted {} of {} over all allocations ({}). Unused memory at the end is unknown: {NEEDS}.",
            view.bytes(wasted),
            view.bytes(all),
            share(wasted, all)
        ),
        None => format!("Unused memory is unknown: {NEEDS}."),
    }
}

/// The largest loss.
fn answer(rows: &FragmentationTables, losses: &[Loss], requested: Requested, view: &View) -> String {
    let loss = losses.iter().find_map(|loss| Some((loss, loss.bytes?)));
    let Some((loss, bytes)) = loss else { return unknown_at_end(wasted_in_all(&rows.internal), view) };
    if bytes == 0 {
        return "No unused memory was found: at the end of the trace, none of its live objects and slabs has any."
            .to_owned();
    }
    let of = match loss.place {
        UnusedIn::Objects => "of the live objects of the trace".to_owned(),
        UnusedIn::Slabs => "of all slab memory".to_owned(),
        UnusedIn::BetweenObjects => "of the slabs allocated in the trace".to_owned(),
        UnusedIn::BetweenPages => format!("of the free memory, in blocks below order {}", requested.order),
    };
    let part = loss.of.map_or(String::new(), |all| format!(" ({} {of})", share(bytes, all)));
    let largest = loss.largest.as_ref().filter(|(_, bytes)| *bytes > 0);
    let largest = largest.map_or(String::new(), |(name, part)| {
        let preposition = if loss.place == UnusedIn::Objects { "at" } else { "in" };
        let part = if *part == bytes { "all".to_owned() } else { view.bytes(*part) };
        format!(", {part} of it {preposition} {}", function_of(name))
    });
    format!("Largest loss: {} {}{part}{largest}.", view.bytes(bytes), name(loss.place))
}

/// Reasons why the loss of a place is unknown.
fn unknown(rows: &FragmentationTables, losses: &[Loss]) -> Vec<String> {
    let of = |place: UnusedIn| losses.iter().any(|loss| loss.place == place && loss.bytes.is_none());
    let mut reasons = Vec::new();
    if of(UnusedIn::Objects) {
        reasons.push("inside objects: unknown at the end; it needs allocations and frees.".to_owned());
    }
    if of(UnusedIn::Slabs) {
        reasons.push("inside slabs: unknown; the file has no /proc/slabinfo.".to_owned());
    }
    if let MaybeRefused::Refused { refused } = &rows.occupancy {
        reasons.push(format!("between objects: unknown; {refused}."));
    }
    if of(UnusedIn::BetweenPages) {
        reasons.push("between pages: unknown; the file has no /proc/buddyinfo.".to_owned());
    }
    reasons
}
