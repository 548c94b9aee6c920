//! The screen of the objects at an address.

use super::rows::{LifeEnd, Neighbour, WhoLifeRow, WhoRows};
use crate::render::screen::{Cell, Column, Screen, Table, function_of};
use crate::render::text::escaped;
use crate::render::words::counted;
use crate::reports::common::View;

/// The objects that held an address, and their neighbours.
pub fn of(rows: &WhoRows, view: &View) -> Screen {
    let mut screen = Screen::new(answer(rows, view));
    screen.table(lives(rows, view));
    screen.table(neighbours(rows));
    if rows.lives.iter().any(|life| life.end == LifeEnd::FreedUnseen) {
        screen.note("Implied free: the address or its page was reused, and no free event was recorded; the lifetime is the longest possible.");
    }
    if rows.lives.iter().any(|life| life.uncertain) {
        screen.note("Uncertain: the object crosses a loss, or its free is ambiguous.");
    }
    if rows.lives.iter().any(|life| life.freed.as_ref().is_some_and(|free| free.late)) {
        screen.note("Late free event: it was recorded after the address had been allocated again.");
    }
    if let Some(function) = rows.lives.last().and_then(|life| plain_function(&life.symbol)) {
        screen.next(format!("callers --call-site {function}"), "all objects of this call site");
    }
    screen.next("lifetimes", "lifetimes of all call sites");
    screen
}

/// The function of a symbol, if it is harmless on a command line.
fn plain_function(symbol: &str) -> Option<&str> {
    let function = symbol.split('+').next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    (!function.is_empty() && function.chars().all(is_plain)).then_some(function)
}

/// One sentence: the number of objects, and the last of them.
fn answer(rows: &WhoRows, view: &View) -> String {
    let address = rows.address.0;
    let Some(last) = rows.lives.last() else {
        return format!(
            "No object that was allocated in the trace held {address:#x}. Objects allocated before the trace are unknown."
        );
    };
    let held = counted(rows.lives_total as u64, "object", "objects");
    let which = match (rows.lives_total, rows.lives.len()) {
        (1, _) => "it",
        (total, shown) if shown < total => "the last one shown",
        _ => "the last one",
    };
    format!(
        "{held} held {address:#x}; {which} was allocated at {} by {} in {}{}.",
        view.time(last.born),
        last.task,
        function_of(&last.symbol),
        end(last, view)
    )
}

/// The end of an object, in words.
fn end(life: &WhoLifeRow, view: &View) -> String {
    let lifetime = life.ended.map(|ended| view.duration(ended.saturating_sub(life.born)));
    match (&life.freed, lifetime) {
        (Some(free), Some(lifetime)) => {
            format!(", and freed after {lifetime} by {} in {}", free.task, function_of(&free.symbol))
        }
        (None, Some(lifetime)) => format!(", and freed without an event after at most {lifetime}"),
        (_, None) => ", and is still allocated".to_owned(),
    }
}

/// A row for each object.
fn lives(rows: &WhoRows, view: &View) -> Table {
    let columns = [
        Column::number("#"),
        Column::number("allocated"),
        Column::number("bytes"),
        Column::number("requested").leaves(8),
        Column::text("cache").leaves(3),
        Column::name("call site"),
        Column::name("task").leaves(2),
        Column::number("cpu").leaves(6),
        Column::number("lifetime"),
        Column::name("end"),
        Column::name("freed by").leaves(4),
        Column::number("freed on cpu").leaves(7),
        Column::text("address").leaves(9),
        Column::text("trust").leaves(1),
    ];
    let mut table = Table::new("", columns).of("object", "objects", rows.lives_total);
    for (number, life) in (1..).zip(&rows.lives) {
        table.row(cells(number, life, view));
    }
    table.explain("end", "end: call site of the free, or the reason why there is none.");
    table
}

fn cells(number: u64, life: &WhoLifeRow, view: &View) -> Vec<Cell> {
    let end = match (life.end, &life.freed) {
        (_, Some(free)) => Cell::from(&free.symbol),
        (LifeEnd::Live, _) => Cell::text("still allocated"),
        (_, None) => Cell::text("implied free"),
    };
    let lifetime = life.ended.map(|ended| Cell::Duration(ended.saturating_sub(life.born), view.unit));
    let late = life.freed.as_ref().is_some_and(|free| free.late);
    let trust = match (life.uncertain, late) {
        (true, _) => "uncertain",
        (false, true) => "late free event",
        (false, false) => "",
    };
    let free = life.freed.as_ref();
    vec![
        Cell::Count(number),
        Cell::text(view.time(life.born)),
        Cell::Bytes(life.bytes_alloc),
        Cell::Bytes(life.bytes_req),
        cache(life.cache.as_deref()),
        Cell::from(&life.symbol),
        Cell::text(&life.task),
        Cell::Count(life.cpu.into()),
        lifetime.unwrap_or(Cell::Empty),
        end,
        free.map_or(Cell::Empty, |free| Cell::text(&free.task)),
        free.map_or(Cell::Empty, |free| Cell::Count(free.cpu.into())),
        Cell::text(format!("{:#x}", life.address.0)),
        Cell::text(trust),
    ]
}

/// Objects beside each of these objects, live at the same time.
fn neighbours(rows: &WhoRows) -> Table {
    let columns = [
        Column::number("#"),
        Column::whole("side"),
        Column::text("address").leaves(3),
        Column::number("bytes"),
        Column::text("cache").leaves(2),
        Column::name("call site"),
        Column::name("task").leaves(1),
        Column::number("cpu").leaves(4),
    ];
    let beside = |life: &WhoLifeRow| [life.neighbour_below.is_some(), life.neighbour_above.is_some()];
    let total = rows.lives.iter().flat_map(beside).filter(|is_there| *is_there).count();
    let mut table = Table::new("neighbours in memory", columns).of("neighbour", "neighbours", total);
    for (number, life) in (1..).zip(&rows.lives) {
        for (side, other) in [("below", &life.neighbour_below), ("above", &life.neighbour_above)] {
            if let Some(other) = other {
                table.row(neighbour(number, side, other));
            }
        }
    }
    table
}

fn neighbour(number: u64, side: &str, other: &Neighbour) -> Vec<Cell> {
    vec![
        Cell::Count(number),
        Cell::text(side),
        Cell::text(format!("{:#x}", other.address.0)),
        Cell::Bytes(other.bytes_alloc),
        cache(other.cache.as_deref()),
        Cell::from(&other.symbol),
        Cell::text(&other.task),
        Cell::Count(other.cpu.into()),
    ]
}

fn cache(name: Option<&str>) -> Cell {
    name.map_or(Cell::Empty, |name| Cell::text(escaped(name.as_bytes())))
}
