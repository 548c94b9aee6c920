//! The screen of changes.

use super::changes::{ChangeRows, ZoneChange};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::counted;
use crate::reports::common::View;
use crate::reports::common::shown::part;

/// Rows of the tables after the first one, unless more are allowed.
const ROWS: usize = 10;

/// Free memory, slab memory, and the tables.
pub fn of(rows: &ChangeRows, view: &View) -> Screen {
    if rows.is_empty() {
        return Screen::new(
            "The file does not have the kernel's counts of its begin and its end; kmt-capture record stores them.",
        );
    }
    let mut screen = Screen { answer: answer(rows, view), ..Screen::default() };
    meminfo(rows, view).into_iter().for_each(|table| screen.table(table));
    caches(rows, view).into_iter().for_each(|table| screen.table(table));
    zones(rows).into_iter().for_each(|table| screen.table(table));
    vmstat(rows, view).into_iter().for_each(|table| screen.table(table));
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
    let columns =
        [Column::text("meminfo"), Column::number("begin"), Column::number("end"), Column::number("change")];
    let mut table = Table::new("", columns).of("line", "lines", lines.len());
    for line in lines.iter().take(view.limit) {
        table.row([
            Cell::text(&line.name),
            Cell::Bytes(line.bytes_before),
            Cell::Bytes(line.bytes_after),
            Cell::BytesChange(line.bytes_change),
        ]);
    }
    Some(table)
}

fn caches(rows: &ChangeRows, view: &View) -> Option<Table> {
    let caches = rows.slabinfo.as_ref()?;
    let columns = [
        Column::name("cache"),
        Column::number("active begin").leaves(2),
        Column::number("active end").leaves(1),
        Column::number("change"),
        Column::number("slabs begin").leaves(4),
        Column::number("slabs end").leaves(3),
        Column::number("change of slabs"),
    ];
    let mut table = Table::new("", columns).of("cache", "caches", caches.len());
    for cache in caches.iter().take(view.limit) {
        let about = |cell| if cache.active_estimated { Cell::About(Box::new(cell)) } else { cell };
        table.row([
            Cell::text(&cache.cache),
            about(Cell::Count(cache.active_before)),
            about(Cell::Count(cache.active_after)),
            about(Cell::Change(cache.active_change)),
            Cell::Bytes(cache.bytes_before),
            Cell::Bytes(cache.bytes_after),
            Cell::BytesChange(cache.bytes_change),
        ]);
    }
    Some(table)
}

fn zones(rows: &ChangeRows) -> Option<Table> {
    let zones = rows.buddyinfo.as_ref()?;
    let columns = [
        Column::number("node"),
        Column::text("zone"),
        Column::number("free begin"),
        Column::number("free end"),
        Column::number("change"),
        Column::number("largest block begin").leaves(2),
        Column::number("largest block end").leaves(1),
    ];
    let mut table = Table::new("", columns).of("zone", "zones", zones.len());
    let largest = |free: &[u64]| match free.iter().rposition(|blocks| *blocks > 0) {
        Some(order) => Cell::text(format!("order {order}")),
        None => Cell::text("none"),
    };
    for ZoneChange { node, zone, free_before, free_after, bytes_before, bytes_after, bytes_change } in zones {
        table.row([
            Cell::Count((*node).into()),
            Cell::text(zone),
            Cell::Bytes(*bytes_before),
            Cell::Bytes(*bytes_after),
            Cell::BytesChange(*bytes_change),
            largest(free_before),
            largest(free_after),
        ]);
    }
    Some(table)
}

fn vmstat(rows: &ChangeRows, view: &View) -> Option<Table> {
    let lines = rows.vmstat.as_ref()?;
    let columns =
        [Column::text("vmstat"), Column::number("begin"), Column::number("end"), Column::number("change")];
    let mut table = Table::new("", columns).of("number", "numbers", lines.len());
    for line in lines.iter().take(part(view.limit, ROWS)) {
        table.row([
            Cell::text(&line.name),
            Cell::Count(line.before),
            Cell::Count(line.after),
            Cell::Change(line.change),
        ]);
    }
    Some(table)
}
