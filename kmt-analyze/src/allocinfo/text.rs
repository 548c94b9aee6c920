//! The screen of `allocinfo`.

use super::rows::{AllocinfoKey, AllocinfoRow, AllocinfoRows};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{counted, size};

/// The totals in a sentence, and the rows.
pub fn screen(rows: &AllocinfoRows) -> Screen {
    let mut screen = Screen::new(answer(rows));
    let (one, several) = nouns(rows.by);
    let mut table = Table::of_rows("", &rows.rows)
        .of(one, several, rows.rows_total)
        .column(Column::name(one), |row| Cell::text(&row.name))
        .column_if(rows.by == AllocinfoKey::CallSite, Column::name("function").leaves(1), |row| {
            Cell::text(row.function.as_deref().unwrap_or_default())
        })
        .column_if(
            rows.rows.iter().any(|row| row.module.is_some()),
            Column::name("module").leaves(3),
            |row| Cell::text(row.module.as_deref().unwrap_or_default()),
        );
    if rows.is_compared {
        table = table
            .column(Column::number("before").leaves(2), |row| bytes(row.figures.bytes_before))
            .column(Column::number("after"), |row| bytes(Some(row.figures.bytes)))
            .column(Column::number("change"), |row| {
                row.figures.bytes_change.map_or(Cell::Unknown, Cell::BytesChange)
            })
            .column(Column::number("calls before").leaves(5), |row| calls(row.figures.calls_before))
            .column(Column::number("calls after").leaves(4), |row| calls(Some(row.figures.calls)))
            .column(Column::number("calls change"), |row| {
                row.figures.calls_change.map_or(Cell::Unknown, Cell::Change)
            });
    } else {
        table = table
            .column(Column::number("live"), |row| bytes(Some(row.figures.bytes)))
            .column(Column::number("calls"), |row| calls(Some(row.figures.calls)));
    }
    screen.table(table);
    notes(&mut screen, rows);
    screen
}

fn notes(screen: &mut Screen, rows: &AllocinfoRows) {
    if let Some(unchanged) = rows.unchanged.filter(|unchanged| *unchanged > 0) {
        let (one, several) = nouns(rows.by);
        screen.note(format!("{} without a change are left out.", counted(unchanged, one, several)));
    }
    let inaccurate = rows.total.inaccurate;
    if inaccurate > 0 {
        let lines = counted(inaccurate, "line", "lines");
        screen.note(format!("Not accurate: the kernel could not count all allocations of {lines}."));
    }
}

fn answer(rows: &AllocinfoRows) -> String {
    let total = &rows.total;
    let sized = |bytes: i64| size(bytes.unsigned_abs());
    let (_, several) = nouns(rows.by);
    let (Some(before), Some(change)) = (total.bytes_before, total.bytes_change) else {
        let largest = rows.rows.first().map_or(String::new(), |row| {
            format!("; the first is {} ({})", row.name, sized(row.figures.bytes))
        });
        let (one, several) = nouns(rows.by);
        let number = counted(rows.rows_total as u64, one, several);
        return format!("{} are in use, of {number}{largest}.", sized(total.bytes));
    };
    let direction = match change {
        0 => "did not change".to_owned(),
        1.. => format!("grew by {}", sized(change)),
        _ => format!("shrank by {}", sized(change)),
    };
    let first = rows.rows.first().map_or(String::new(), |row: &AllocinfoRow| {
        let change = row.figures.bytes_change.unwrap_or(0);
        let sign = if change < 0 { "-" } else { "+" };
        format!(" First: {} ({sign}{}).", row.name, sized(change))
    });
    format!(
        "Memory in use {direction}, from {} to {}: {} {several} grew and {} shrank.{first}",
        sized(before),
        sized(total.bytes),
        rows.grown.unwrap_or(0),
        rows.shrunk.unwrap_or(0),
    )
}

fn nouns(by: AllocinfoKey) -> (&'static str, &'static str) {
    match by {
        AllocinfoKey::Function => ("function", "functions"),
        AllocinfoKey::File => ("file", "files"),
        AllocinfoKey::Dir => ("directory", "directories"),
        AllocinfoKey::Module => ("module", "modules"),
        AllocinfoKey::CallSite => ("call site", "call sites"),
    }
}

fn bytes(bytes: Option<i64>) -> Cell {
    bytes.map_or(Cell::Unknown, |bytes| u64::try_from(bytes).map_or(Cell::BytesChange(bytes), Cell::Bytes))
}

fn calls(calls: Option<i64>) -> Cell {
    calls.map_or(Cell::Unknown, |calls| u64::try_from(calls).map_or(Cell::Change(calls), Cell::Count))
}
