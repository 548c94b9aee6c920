//! Screens of `footprint`.

use super::compare::ComparedRows;
use super::linked::{UNKNOWN, UNNAMED};
use super::rows::{Attribute, FootprintRows};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{counted, size};

/// Static and dynamic memory by directory.
pub fn footprint(rows: &FootprintRows, order: Attribute, lines: usize) -> Screen {
    let total = &rows.total;
    let within =
        if rows.start_branch.is_empty() { String::new() } else { format!(" of {}", rows.start_branch) };
    let mut named = rows.rows.iter().filter(|row| ![UNKNOWN, UNNAMED].contains(&row.path.as_str()));
    let largest = named.next().map_or(String::new(), |row| format!(", most of it {}", row.path));
    let answer = match rows.has_trace {
        true => format!(
            "Code and data{within} take {}, allocations in use {}{largest}.",
            size(total.static_bytes),
            total.current_dynamic.map_or("?".to_owned(), size)
        ),
        false => format!("Code and data{within} take {}{largest}.", size(total.static_bytes)),
    };
    let mut screen = Screen::new(answer);
    let mut columns = vec![
        Column::name("directory"),
        Column::number("static"),
        Column::number("text").leaves(3),
        Column::number("data").leaves(4),
        Column::number("rodata").leaves(5),
        Column::number("bss").leaves(4),
        Column::number("percpu").leaves(6),
        Column::number("init").leaves(6),
    ];
    if rows.has_trace {
        columns.extend([
            Column::number("live"),
            Column::number("static + live"),
            Column::number("allocated").leaves(1),
            Column::number("live waste").leaves(2),
        ]);
    }
    let mut table = Table::new("", columns).of("directory", "directories", rows.rows.len());
    for row in rows.rows.iter().take(lines) {
        let (sums, sizes) = (&row.sums, &row.sums.sizes);
        let numbers =
            [sums.static_bytes, sizes.text, sizes.data, sizes.rodata, sizes.bss, sizes.percpu, sizes.init];
        let dynamic = [sums.current_dynamic, sums.current, sums.total_dynamic, sums.waste];
        let dynamic = dynamic.into_iter().filter(|_| rows.has_trace).map(Cell::bytes);
        table.row(
            std::iter::once(Cell::text(&row.path)).chain(numbers.into_iter().map(Cell::Bytes)).chain(dynamic),
        );
    }
    screen.table(table);
    if rows.files_refused > 0 {
        let files = counted(rows.files_refused as u64, "file was", "files were");
        screen.note(format!("{files} not read (not regular files below the folder): sizes are minimums."));
    }
    if rows.has_trace && order == Attribute::Waste {
        screen.note("Live waste: bytes of objects in use beyond those requested.");
    }
    screen
}

/// Differences between two builds.
pub fn compared(rows: &ComparedRows, lines: usize) -> Screen {
    let change = i128::from(rows.after) - i128::from(rows.before);
    let percent = if rows.before == 0 { 0.0 } else { 100.0 * change as f64 / rows.before as f64 };
    let mut screen = Screen::new(format!(
        "add/remove: {}/{} grow/shrink: {}/{} up/down: {}/-{} ({})",
        rows.added,
        rows.removed,
        rows.grown,
        rows.shrunk,
        rows.up,
        rows.down,
        i128::from(rows.up) - i128::from(rows.down)
    ));
    screen.answer(format!("Total: Before={}, After={}, chg {percent:+.2}%", rows.before, rows.after));
    let columns =
        [Column::name("symbol"), Column::number("old"), Column::number("new"), Column::number("delta")];
    let mut table = Table::new("", columns).of("symbol", "symbols", rows.symbols.len());
    for row in rows.symbols.iter().take(lines) {
        let bytes = |bytes: Option<u64>| bytes.map_or(Cell::text("-"), Cell::Count);
        table.row([Cell::text(&row.name), bytes(row.old), bytes(row.new), Cell::Change(row.delta)]);
    }
    screen.table(table);
    if rows.symbols.is_empty() {
        screen.note(format!("{} are equal in both.", counted(rows.before, "byte", "bytes")));
    }
    screen
}
