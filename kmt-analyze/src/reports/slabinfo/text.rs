//! The screen of caches against /proc/slabinfo.

use super::rows::{SlabInfoCache, SlabInfoRows, SlabInfoTable};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{count, counted, escaped};
use crate::reports::common::View;

/// Caches with frees that have no event first.
pub fn screen(rows: &SlabInfoRows, view: &View) -> Screen {
    let rows = &rows.slabinfo;
    let mut screen = Screen::new(answer(rows, view));
    if let Some(growth) = rows.unseen_growth.first() {
        screen.answer(growth.sentence(&[], view));
    }
    let over = |cache: &SlabInfoCache| cache.most_over(&rows.times);
    let known = |number: Option<u64>| number.map_or(Cell::Empty, Cell::Count);
    let has_changes = rows.most_unseen.is_some();
    let mut table = Table::of_rows("", &rows.caches)
        .of("cache", "caches", rows.caches_total)
        .column(Column::name("cache"), |cache| Cell::text(name(cache)))
        .column(Column::number("live objects"), |cache| Cell::Count(cache.live.last().copied().unwrap_or(0)))
        .column(Column::number("at least").leaves(2), |cache| Cell::Count(live_range(cache).0))
        .column(Column::number("at most").leaves(1), |cache| known(live_range(cache).1))
        .column(Column::number("active"), |cache| active(cache))
        .column(Column::number("excess"), |cache| known(over(cache).map(|(over, _)| over)))
        .column(Column::number("excess at").leaves(3), |cache| {
            over(cache).map_or(Cell::Empty, |(_, at)| Cell::text(view.time(at)))
        })
        .columns(CHANGE.into_iter().filter(|_| has_changes), |cache| {
            changes(cache).into_iter().filter(|_| has_changes)
        })
        .explain(
            "active",
            "Active: objects that /proc/slabinfo counts, with those allocated before the trace and free ones in per-CPU slabs; empty: it does not list the cache.",
        );
    if rows.caches.iter().any(is_estimate) {
        table = table.explain(
            "active",
            "~: the cache has more than 10,000 slabs, of which the kernel (since 6.10) counts some and estimates the rest.",
        );
    }
    let excess = match rows.times_known {
        true => "Excess: most live objects beyond those that can be live, at one reading.",
        false => "Excess: live objects beyond the active ones: freed without an event, or after the trace.",
    };
    let unseen_note = "Unseen: change of the active objects over the recording that no event shows.";
    screen.table(table.explain("excess", excess).explain("unseen", unseen_note));
    screen.note(if rows.times_known { readings(rows, view) } else { UNTIMED.to_owned() });
    screen.note(unseen(rows));
    screen.next("caches --sort live", "live figures of caches and their bounds");
    screen
}

/// Limit of a reading whose time is unknown.
const UNTIMED: &str = "The time of this /proc/slabinfo is not in the file: it was read after the trace, and bounds no live figure. A change includes what happened between the readings and the trace. A directory can give the time as slabinfo.at.T0-T1 (docs/import.md).";

/// Columns of the change over the recording.
const CHANGE: [Column; 3] = [
    Column::number("change").leaves(6),
    Column::number("by events").leaves(5),
    Column::number("unseen").leaves(4),
];

/// Cells under [`CHANGE`].
fn changes(cache: &SlabInfoCache) -> [Cell; 3] {
    let Some(change) = cache.change else { return [Cell::Empty, Cell::Empty, Cell::Empty] };
    let about = |number| match change.is_estimate {
        true => Cell::About(Box::new(Cell::Change(number))),
        false => Cell::Change(number),
    };
    [about(change.active), Cell::Change(change.events), about(change.unseen)]
}

/// The largest change that no event shows.
fn unseen(rows: &SlabInfoTable) -> String {
    let Some((name, change)) = &rows.most_unseen else { return String::new() };
    let unseen = counted(change.unseen.unsigned_abs(), "object", "objects");
    format!(
        "The largest change that no event shows: {unseen} of {name}. Active objects include free ones in per-CPU slabs, so up to a slab for each CPU means nothing."
    )
}

/// Caches that slabinfo contradicts, and the worst.
fn answer(rows: &SlabInfoTable, view: &View) -> String {
    let all = counted(rows.caches_total as u64, "cache", "caches");
    if !rows.times_known {
        let than = "live at the end of the trace than /proc/slabinfo counted some time later";
        return match rows.caches_contradicted {
            0 => format!("In none of {all} were more objects {than}."),
            some => format!("In {} of {all} more objects were {than}.", count(some as u64)),
        };
    }
    if rows.caches_contradicted == 0 {
        return format!(
            "No sign of frees without events: in none of {all} more objects seem live than /proc/slabinfo counts as active."
        );
    }
    let worst = rows.caches.first().and_then(|cache| cache.most_over(&rows.times).map(|over| (cache, over)));
    let worst = worst.map_or(String::new(), |(cache, (over, at))| {
        format!(" {} has {} too many at {}.", name(cache), counted(over, "object", "objects"), view.time(at))
    });
    format!(
        "Objects were freed without events in {} of {all}: more seem live than /proc/slabinfo counts as active.{worst}",
        count(rows.caches_contradicted as u64)
    )
}

/// Name of a cache on one line.
fn name(cache: &SlabInfoCache) -> String {
    escaped(cache.cache.as_bytes())
}

/// A cache at the last reading.
fn live_range(cache: &SlabInfoCache) -> (u64, Option<u64>) {
    cache.live_range.last().copied().unwrap_or((0, None))
}

/// Objects that /proc/slabinfo counts as active at the end.
fn active(cache: &SlabInfoCache) -> Cell {
    match cache.active.last().copied().flatten().map(Cell::Count) {
        Some(active) if is_estimate(cache) => Cell::About(Box::new(active)),
        active => active.unwrap_or(Cell::Empty),
    }
}

/// True if the kernel may have estimated the number of active objects at the last reading.
fn is_estimate(cache: &SlabInfoCache) -> bool {
    cache.active.last() != cache.active_max.last()
}

/// Readings of slabinfo that were compared.
fn readings(rows: &SlabInfoTable, view: &View) -> String {
    let Some((last, during)) = rows.times.split_last() else { return String::new() };
    match during {
        [] => format!("/proc/slabinfo was read once, at the end ({}).", view.time(*last)),
        during => format!(
            "Live, at least, at most and active are at the end of the trace; /proc/slabinfo was also read {} during it.",
            counted(during.len() as u64, "time", "times")
        ),
    }
}
