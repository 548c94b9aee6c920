//! The screen of the objects at an address.

use super::life_end::LifeEnd;
use super::rows::{WhoFreeRow, WhoLifeRow, WhoRows};
use crate::render::screen::{Cell, Column, CommandLine, Screen, Table};
use crate::render::words::{counted, escaped};
use crate::reports::common::View;
use crate::reports::common::labels::Labels;
use crate::reports::common::rows::Address;
use crate::trace::names::function_of;

/// The objects that held an address, and their neighbours.
pub fn screen(labels: &Labels<'_, '_>, rows: &WhoRows, view: &View) -> Screen {
    let mut screen = Screen::new(answer(labels, rows, view));
    screen.table(lives(labels, rows, view));
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
        screen.next(
            CommandLine::from("callers").option("--call-site", function),
            "all objects of this call site",
        );
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
fn answer(labels: &Labels<'_, '_>, rows: &WhoRows, view: &View) -> String {
    let address = rows.address.map_or(0, |address| address.0);
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
        labels.task_at(last.pid, last.born),
        function_of(&last.symbol),
        end(labels, last, view)
    )
}

/// The end of an object, in words.
fn end(labels: &Labels<'_, '_>, life: &WhoLifeRow, view: &View) -> String {
    let lifetime = life.ended.map(|ended| view.duration(ended.saturating_sub(life.born)));
    match (&life.freed, lifetime) {
        (Some(free), Some(lifetime)) => {
            let task = labels.task_at(free.pid, free.time);
            format!(", and freed after {lifetime} by {task} in {}", function_of(&free.symbol))
        }
        (None, Some(lifetime)) => format!(", and freed without an event after at most {lifetime}"),
        (_, None) => ", and is still allocated".to_owned(),
    }
}

/// A row for each object.
fn lives(labels: &Labels<'_, '_>, rows: &WhoRows, view: &View) -> Table {
    let lifetime = |life: &WhoLifeRow| life.ended.map(|ended| ended.saturating_sub(life.born));
    let free =
        |life: &WhoLifeRow, cell: &dyn Fn(&WhoFreeRow) -> Cell| life.freed.as_ref().map_or(Cell::Empty, cell);
    Table::of_rows("", (1..).zip(&rows.lives))
        .of("object", "objects", rows.lives_total)
        .column(Column::number("#"), |(number, _)| Cell::Count(*number))
        .column(Column::number("allocated"), |(_, life)| Cell::text(view.time(life.born)))
        .column(Column::number("bytes"), |(_, life)| Cell::Bytes(life.bytes_alloc))
        .column(Column::number("requested").leaves(8), |(_, life)| Cell::Bytes(life.bytes_req))
        .column(Column::text("cache").leaves(3), |(_, life)| cache(life.cache.as_deref()))
        .column(Column::name("call site"), |(_, life)| Cell::from(&life.symbol))
        .column(Column::name("task").leaves(2), |(_, life)| Cell::text(labels.task_at(life.pid, life.born)))
        .column(Column::number("cpu").leaves(6), |(_, life)| Cell::Count(life.cpu.into()))
        .column(Column::number("lifetime"), |(_, life)| {
            lifetime(life).map_or(Cell::Empty, |lifetime| Cell::Duration(lifetime, view.unit))
        })
        .column(Column::name("end"), |(_, life)| match (life.end, &life.freed) {
            (_, Some(free)) => Cell::from(&free.symbol),
            (LifeEnd::Live, _) => Cell::text("still allocated"),
            (_, None) => Cell::text("implied free"),
        })
        .column(Column::name("freed by").leaves(4), |(_, life)| {
            free(life, &|free| Cell::text(labels.task_at(free.pid, free.time)))
        })
        .column(Column::number("freed on cpu").leaves(7), |(_, life)| {
            free(life, &|free| Cell::Count(free.cpu.into()))
        })
        .column(Column::text("address").leaves(9), |(_, life)| address(life.address))
        .column(Column::text("trust").leaves(1), |(_, life)| {
            match (life.uncertain, life.freed.as_ref().is_some_and(|free| free.late)) {
                (true, _) => Cell::text("uncertain"),
                (false, true) => Cell::text("late free event"),
                (false, false) => Cell::text(""),
            }
        })
        .explain("end", "end: call site of the free, or the reason why there is none.")
        .into()
}

fn address(address: Address) -> Cell {
    Cell::text(format!("{:#x}", address.0))
}

/// Objects beside each of these objects, live at the same time.
fn neighbours(rows: &WhoRows) -> Table {
    let lives = (1..).zip(&rows.lives);
    let beside = lives.flat_map(|(number, life)| {
        let sides = [("below", &life.neighbour_below), ("above", &life.neighbour_above)];
        sides.into_iter().filter_map(move |(side, other)| Some((number, side, other.as_ref()?)))
    });
    Table::of_rows("neighbours in memory", beside)
        .of("neighbour", "neighbours", 0)
        .column(Column::number("#"), |(number, ..)| Cell::Count(*number))
        .column(Column::whole("side"), |(_, side, _)| Cell::text(*side))
        .column(Column::text("address").leaves(3), |(.., other)| address(other.address))
        .column(Column::number("bytes"), |(.., other)| Cell::Bytes(other.bytes_alloc))
        .column(Column::text("cache").leaves(2), |(.., other)| cache(other.cache.as_deref()))
        .column(Column::name("call site"), |(.., other)| Cell::from(&other.symbol))
        .column(Column::name("task").leaves(1), |(.., other)| Cell::text(&other.task))
        .column(Column::number("cpu").leaves(4), |(.., other)| Cell::Count(other.cpu.into()))
        .into()
}

fn cache(name: Option<&str>) -> Cell {
    name.map_or(Cell::Empty, |name| Cell::text(escaped(name.as_bytes())))
}
