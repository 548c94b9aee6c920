//! The screen of the peak.

use super::rows::{PeakRow, PeakRows};
use crate::render::screen::{Cell, Column, CommandLine, Screen, Table};
use crate::render::words::{counted, share};
use crate::reports::common::View;
use crate::trace::names::function_of;

/// The peak, its range, and the call sites that allocated the memory.
pub fn screen(PeakRows { peak }: &PeakRows, view: &View) -> Screen {
    let (Some(bytes), Some(objects), Some(at)) = (peak.bytes_live, peak.live, peak.time) else {
        return Screen::new("No peak: no slab object was allocated in the selected part of the trace.");
    };
    let objects = counted(objects, "object", "objects");
    let mut screen = Screen::new(format!(
        "Slab memory peaked at {} with {} in {objects}{}.",
        view.time(at),
        view.bytes(bytes),
        most(peak, bytes),
    ));
    let least = least(peak);
    if let Some((bytes, objects)) = least {
        screen.answer(format!(
            "At least {} in {} is certain; frees of the rest may have no event.",
            view.bytes(bytes),
            counted(objects, "object", "objects"),
        ));
    }
    screen.table(callers(peak, bytes, least.is_some()));
    screen.note("Objects allocated before the trace are not counted.");
    if let Some(at) = view.time_option(at) {
        screen.next(CommandLine::from("caches").option("--at", at), "caches that held the memory then");
    }
    screen.next("timeline", "live memory over time");
    screen
}

/// The call site of most bytes, if there are several.
fn most(peak: &PeakRow, all_bytes: u64) -> String {
    let first = peak.callers.first().filter(|_| peak.callers_total > 1);
    first.map_or(String::new(), |row| {
        format!(", {} of it by {}", share(row.bytes_live, all_bytes), function_of(&row.symbol))
    })
}

/// Certain live bytes and objects, if there are fewer of them.
fn least(peak: &PeakRow) -> Option<(u64, u64)> {
    let ([bytes, _], [objects, _]) = (peak.bytes_live_range?, peak.live_range?);
    (Some(objects) < peak.live).then_some((bytes, objects))
}

/// Live objects at the peak by call site.
fn callers(peak: &PeakRow, all_bytes: u64, has_least: bool) -> Table {
    Table::of_rows("", &peak.callers)
        .of("call site", "call sites", peak.callers_total)
        .column(Column::name("call site"), |row| Cell::from(&row.symbol))
        .column(Column::whole("api").leaves(4), |row| Cell::text(row.api))
        .column(Column::number("live objects"), |row| Cell::Count(row.live))
        .column(Column::number("live"), |row| Cell::Bytes(row.bytes_live))
        .column(Column::number("share"), |row| Cell::share(row.bytes_live, all_bytes))
        .column(Column::whole("").leaves(2), |row| Cell::bar(row.bytes_live, all_bytes))
        .column_if(has_least, Column::number("live at least").leaves(3), |row| Cell::Count(row.live_least))
        .into()
}
