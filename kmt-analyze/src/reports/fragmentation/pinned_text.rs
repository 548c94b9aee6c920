//! The table of call sites whose objects keep nearly empty slabs.

use super::occupancy_rows::Occupied;
use super::occupancy_text::SPARSE_NOTE;
use super::pinned::{PINNED_BYTES_MIN, PINNED_SLABS_MIN, PinRow};
use crate::render::screen::{Cell, Column, Ink, Screen, Table};
use crate::render::words::size;
use crate::reports::common::View;
use crate::reports::common::answer::MaybeRefused;
use crate::reports::common::shown::{is_more, part};

/// Call sites, unless more are allowed.
const ROWS: usize = 5;

/// Adds call sites that keep nearly empty slabs; those with smaller effects where more rows are allowed.
pub fn add(screen: &mut Screen, rows: &MaybeRefused<Occupied>, view: &View) {
    let MaybeRefused::Found(rows) = rows else { return };
    let is_all = view.look.wide || is_more(view.limit);
    if !is_all && !rows.pinned_by.iter().any(|row| row.is_pinner) {
        return;
    }
    let pins = |row: &PinRow| match row.is_pinner {
        true => Cell::Verdict("pins".to_owned(), Ink::Bad),
        false => Cell::Empty,
    };
    let age = |age: Option<u64>| age.map_or(Cell::Empty, |age| Cell::Duration(age, view.unit));
    let shown = rows.pinned_by.iter().take(part(view.limit, ROWS));
    screen.table(
        Table::of_rows("between objects: nearly empty slabs", shown)
            .of("call site", "call sites", rows.pinned_by_total)
            .column(Column::name("call site of live objects"), |row| Cell::from(&row.symbol))
            .column(Column::whole("verdict"), |row| pins(row))
            .column(Column::number("sparse slabs"), |row| Cell::text(format!("{:.1}", row.sparse_slabs)))
            .column(Column::number("unused there"), |row| Cell::Bytes(row.pinned_sparse_bytes))
            .column(Column::number("live there").leaves(2), |row| Cell::Count(row.sparse_objects))
            .column(Column::number("mean age").leaves(1), |row| age(row.sparse_age_mean))
            .column(Column::number("live in all").leaves(4), |row| Cell::Count(row.objects))
            .column(Column::number("unused in all").leaves(3), |row| Cell::Bytes(row.pinned_bytes))
            .explain(
                "verdict",
                format!(
                    "pins: keeps at least {} unused on {PINNED_SLABS_MIN} sparse slabs or more; the objects of a slab share its unused bytes equally.",
                    size(PINNED_BYTES_MIN as u64)
                ),
            )
            .explain("sparse slabs", SPARSE_NOTE),
    );
}
