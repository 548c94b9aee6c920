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
    let is_all = view.look.is_wide() || is_more(view.limit);
    if rows.pinners == 0 && !is_all {
        return;
    }
    let columns = [
        Column::name("call site of live objects"),
        Column::whole("verdict"),
        Column::number("sparse slabs"),
        Column::number("unused there"),
        Column::number("live there").leaves(2),
        Column::number("mean age").leaves(1),
        Column::number("live in all").leaves(4),
        Column::number("unused in all").leaves(3),
    ];
    let title = "between objects: nearly empty slabs";
    let total = if is_all { rows.pinned_by_total } else { rows.pinned_by_total.max(rows.pinners) };
    let mut table = Table::new(title, columns).of("call site", "call sites", total);
    for row in rows.pinned_by.iter().take(part(view.limit, ROWS)) {
        table.row(cells(row, view));
    }
    table.explain(
        "verdict",
        format!(
            "pins: keeps at least {} unused on {PINNED_SLABS_MIN} sparse slabs or more; the objects of a slab share its unused bytes equally.",
            size(PINNED_BYTES_MIN as u64)
        ),
    );
    table.explain("sparse slabs", SPARSE_NOTE);
    screen.table(table);
}

fn cells(row: &PinRow, view: &View) -> [Cell; 8] {
    [
        Cell::from(&row.symbol),
        if row.is_pinner { Cell::Verdict("pins".to_owned(), Ink::Bad) } else { Cell::Empty },
        Cell::text(format!("{:.1}", row.sparse_slabs)),
        Cell::Bytes(row.pinned_sparse_bytes),
        Cell::Count(row.sparse_objects),
        row.sparse_age_mean.map_or(Cell::Empty, |age| Cell::Duration(age, view.unit)),
        Cell::Count(row.objects),
        Cell::Bytes(row.pinned_bytes),
    ]
}
