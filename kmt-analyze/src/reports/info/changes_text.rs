//! The screen of changes.
//!
//! Rows are in `changes`: the kernel's own counters at the begin and at the end of a recording. The answer has the
//! change of free and slab memory; tables follow for meminfo, caches, zones and vmstat. A text that was read once has
//! no table.

use super::changes::ChangeRows;
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::counted;
use crate::reports::common::View;
use crate::reports::common::cells::part;

/// Rows of the tables after the first one, unless more are allowed.
const ROWS: usize = 10;

/// Free memory, slab memory, and the tables.
pub fn screen(rows: &ChangeRows, view: &View) -> Screen {
    if rows.is_empty() {
        return Screen::new(
            "The file does not have the kernel's counts of its begin and its end; kmt-capture record stores them.",
        );
    }
    let mut screen = Screen { answer: answer(rows, view), ..Screen::default() };
    view.part.iter().for_each(|part| screen.answer(part.sentence(view.unit)));
    let tables =
        [meminfo(rows, view), caches(rows, view), zones(rows), zone_pages(rows, view), vmstat(rows, view)];
    tables.into_iter().flatten().for_each(|table| screen.table(table));
    screen.note("The kernel's own counts, read before the first and after the last event: of the whole machine, with what happened between reading and recording.");
    screen.next("slabinfo", "live objects by events beside these counts");
    screen.next("info --show slabinfo.after", "a stored file as it was read");
    screen
}

fn answer(rows: &ChangeRows, view: &View) -> Vec<String> {
    let by = |change: i64| match change {
        0 => "did not change".to_owned(),
        ..0 => format!("fell by {}", view.bytes(change.unsigned_abs())),
        _ => format!("grew by {}", view.bytes(change.unsigned_abs())),
    };
    let line = |name: &str, what: &str| {
        let lines = rows.meminfo.as_ref()?;
        let change = lines.iter().find(|line| line.name == name).map_or(0, |line| line.bytes_change);
        Some(format!("{what} {}.", by(change)))
    };
    let caches = || {
        let caches = rows.slabinfo.as_ref()?;
        let largest = caches.first().filter(|cache| cache.bytes_change != 0)?;
        let number = counted(caches.len() as u64, "cache", "caches");
        let size = by(largest.bytes_change);
        Some(format!("The slabs of {number} changed, most those of {}: they {size}.", largest.cache))
    };
    let lines = [line("MemFree", "Free memory"), line("Slab", "Slab memory"), caches()];
    let lines: Vec<String> = lines.into_iter().flatten().collect();
    match lines.is_empty() {
        true => vec!["Neither /proc/meminfo nor /proc/slabinfo shows a change.".to_owned()],
        false => lines,
    }
}

fn meminfo(rows: &ChangeRows, view: &View) -> Option<Table> {
    let lines = rows.meminfo.as_ref()?;
    let table = Table::of_rows("", lines.iter().take(view.limit))
        .of("line", "lines", lines.len())
        .column(Column::text("meminfo"), |line| Cell::text(&line.name))
        .column(Column::number("begin"), |line| Cell::Bytes(line.bytes_before))
        .column(Column::number("end"), |line| Cell::Bytes(line.bytes_after))
        .column(Column::number("change"), |line| Cell::BytesChange(line.bytes_change));
    Some(table.into())
}

fn caches(rows: &ChangeRows, view: &View) -> Option<Table> {
    let caches = rows.slabinfo.as_ref()?;
    let about = |is_about, cell| if is_about { Cell::About(Box::new(cell)) } else { cell };
    let table = Table::of_rows("", caches.iter().take(view.limit))
        .of("cache", "caches", caches.len())
        .column(Column::name("cache"), |c| Cell::text(&c.cache))
        .column(Column::number("active begin").leaves(2), |c| {
            about(c.active_estimated, Cell::Count(c.active_before))
        })
        .column(Column::number("active end").leaves(1), |c| {
            about(c.active_estimated, Cell::Count(c.active_after))
        })
        .column(Column::number("change"), |c| about(c.active_estimated, Cell::Change(c.active_change)))
        .column(Column::number("slabs begin").leaves(4), |c| Cell::Bytes(c.bytes_before))
        .column(Column::number("slabs end").leaves(3), |c| Cell::Bytes(c.bytes_after))
        .column(Column::number("change of slabs"), |c| Cell::BytesChange(c.bytes_change));
    Some(table.into())
}

fn zones(rows: &ChangeRows) -> Option<Table> {
    let zones = rows.buddyinfo.as_ref()?;
    let largest = |free: &[u64]| match free.iter().rposition(|blocks| *blocks > 0) {
        Some(order) => Cell::text(format!("order {order}")),
        None => Cell::text("none"),
    };
    let table = Table::of_rows("", zones)
        .of("zone", "zones", zones.len())
        .column(Column::number("node"), |zone| Cell::Count(zone.node.into()))
        .column(Column::text("zone"), |zone| Cell::text(&zone.zone))
        .column(Column::number("free begin"), |zone| Cell::Bytes(zone.bytes_before))
        .column(Column::number("free end"), |zone| Cell::Bytes(zone.bytes_after))
        .column(Column::number("change"), |zone| Cell::BytesChange(zone.bytes_change))
        .column(Column::number("largest block begin").leaves(2), |zone| largest(&zone.free_before))
        .column(Column::number("largest block end").leaves(1), |zone| largest(&zone.free_after));
    Some(table.into())
}

/// Free pages beside the watermarks of the end.
fn zone_pages(rows: &ChangeRows, view: &View) -> Option<Table> {
    let zones = rows.zoneinfo.as_ref()?;
    let table = Table::of_rows("", zones.iter().take(part(view.limit, ROWS)))
        .of("zone", "zones", zones.len())
        .column(Column::number("node"), |zone| Cell::Count(zone.node.into()))
        .column(Column::text("zoneinfo"), |zone| Cell::text(&zone.zone))
        .column(Column::number("free pages begin"), |zone| Cell::Count(zone.pages_free_before))
        .column(Column::number("free pages end"), |zone| Cell::Count(zone.pages_free_after))
        .column(Column::number("change"), |zone| Cell::Change(zone.pages_free_change))
        .column(Column::number("low").leaves(1), |zone| Cell::Count(zone.pages_low_after))
        .column(Column::number("high").leaves(2), |zone| Cell::Count(zone.pages_high_after))
        .column(Column::number("low begin").leaves(4), |zone| Cell::Count(zone.pages_low_before))
        .column(Column::number("high begin").leaves(3), |zone| Cell::Count(zone.pages_high_before))
        .explain("low", "low, high: watermarks in pages. Below low kswapd wakes up, at high it stops.");
    Some(table.into())
}

fn vmstat(rows: &ChangeRows, view: &View) -> Option<Table> {
    let lines = rows.vmstat.as_ref()?;
    let table = Table::of_rows("", lines.iter().take(part(view.limit, ROWS)))
        .of("number", "numbers", lines.len())
        .column(Column::text("vmstat"), |line| Cell::text(&line.name))
        .column(Column::number("begin"), |line| Cell::Count(line.before))
        .column(Column::number("end"), |line| Cell::Count(line.after))
        .column(Column::number("change"), |line| Cell::Change(line.change));
    Some(table.into())
}
