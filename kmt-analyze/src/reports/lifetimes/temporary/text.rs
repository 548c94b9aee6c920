//! The screen of temporary objects.

use super::rows::{TemporaryRow, TemporaryRows};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{counted, share};
use crate::reports::common::View;
use crate::reports::lifetimes::freed_at;
use crate::trace::names::function_of;

/// Temporary objects by call site.
pub fn screen(rows: &TemporaryRows, view: &View) -> Screen {
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
    let n = |row: &TemporaryRow| row.lifetimes.lives.lifetime.n;
    Table::of_rows("", &rows.temporary)
        .of("call site", "call sites", rows.temporary_total)
        .column(Column::name("call site"), |row| Cell::from(&row.lifetimes.symbol))
        .column(Column::whole("api").leaves(8), |row| Cell::text(row.lifetimes.api))
        .column(Column::number("temporary"), |row| Cell::Count(row.temporary))
        .column(Column::number("temporary bytes"), |row| Cell::Bytes(row.bytes_temporary))
        .column(Column::number("of frees"), |row| Cell::share(row.temporary, n(row)))
        .column(Column::number("p50").leaves(6), |row| view.duration_cell(row.lifetimes.lives.lifetime.p50))
        .column(Column::number("freed elsewhere").leaves(4), |row| {
            Cell::share(row.temporary_freed_elsewhere, row.temporary)
        })
        .columns(freed_at::columns(false), |row| freed_at::cells(&row.lifetimes.lives))
        .explain("of frees", "of frees: temporary objects as a share of all that were freed.")
        .explain("p50", "p50: median lifetime of all objects of the call site.")
        .explain(
            "freed elsewhere",
            "freed elsewhere: on another CPU, by another task or on another interrupt level.",
        )
        .into()
}
