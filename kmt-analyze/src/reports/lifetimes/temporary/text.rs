//! The screen of temporary objects.

use super::rows::{TemporaryRow, TemporaryRows};
use crate::render::screen::{Cell, Column, Screen, Table, function_of};
use crate::render::words::{counted, share};
use crate::reports::common::View;
use crate::reports::lifetimes::freed_at;

/// Temporary objects by call site.
pub fn of(rows: &TemporaryRows, view: &View) -> Screen {
    let mut screen = Screen::new(answer(rows, view));
    screen.table(table(rows, view));
    if rows.temporary_total > 0 {
        screen.note("Objects this short-lived can often be on the stack, or be kept for reuse.");
    }
    screen.next("lifetimes", "all lifetimes");
    screen
}

/// One sentence: the number of temporary objects, and the first call site.
fn answer(rows: &TemporaryRows, view: &View) -> String {
    let bound = view.duration(rows.temporary_bound);
    if rows.objects == 0 {
        return format!(
            "No object was freed within {bound} of its allocation; --within TIME sets another limit."
        );
    }
    let sites = counted(rows.temporary_total as u64, "call site", "call sites");
    let first = rows.temporary.first().filter(|_| rows.temporary_total > 1).map_or(String::new(), |row| {
        format!(
            ", {} of them from {}",
            share(row.temporary, rows.objects),
            function_of(&row.lifetimes.symbol)
        )
    });
    format!(
        "{} ({}, {} of the frees of {sites}) were freed within {bound} of their allocation{first}.",
        counted(rows.objects, "object", "objects"),
        view.bytes(rows.bytes),
        share(rows.objects, rows.all.n),
    )
}

fn table(rows: &TemporaryRows, view: &View) -> Table {
    let mut columns = vec![Column::name("call site"), Column::whole("api").leaves(8)];
    columns.extend([Column::number("objects"), Column::number("bytes"), Column::number("of frees")]);
    columns.extend([Column::number("p50").leaves(6), Column::number("freed elsewhere").leaves(4)]);
    columns.extend(freed_at::columns(false));
    let mut table = Table::new("", columns).of("call site", "call sites", rows.temporary_total);
    for row in &rows.temporary {
        table.row(cells(row, view));
    }
    table.explain("of frees", "of frees: temporary objects as a share of all that were freed.");
    table.explain("p50", "p50: median lifetime of all objects of the call site.");
    table.explain(
        "freed elsewhere",
        "freed elsewhere: on another CPU, by another task or on another interrupt level.",
    );
    table
}

fn cells(row: &TemporaryRow, view: &View) -> Vec<Cell> {
    let lifetime = &row.lifetimes.lives.lifetime;
    let mut cells = vec![Cell::from(&row.lifetimes.symbol), Cell::text(row.lifetimes.api)];
    cells.extend([Cell::Count(row.temporary), Cell::Bytes(row.bytes_temporary)]);
    cells.extend([Cell::share(row.temporary, lifetime.n), view.duration_cell(lifetime.p50)]);
    cells.push(Cell::share(row.temporary_freed_elsewhere, row.temporary));
    cells.extend(freed_at::cells(&row.lifetimes.lives));
    cells
}
