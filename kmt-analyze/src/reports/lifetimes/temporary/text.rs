//! The table of temporary objects.

use super::rows::{TemporaryRow, TemporaryRows};
use crate::render::table::{Align, table};
use crate::render::text::{count, duration, percent};
use crate::reports::common::View;
use crate::reports::common::shown::more;
use crate::reports::lifetimes::text::freeing_sites;

/// The sums, and the table.
pub fn of(rows: &TemporaryRows, view: &View) -> String {
    use Align::{Left, Right};
    let columns = [
        ("allocated at", Left),
        ("of", Left),
        ("temporary", Right),
        ("of its frees", Right),
        ("bytes", Right),
        ("p50", Right),
        ("freed elsewhere", Right),
        ("freed at", Left),
    ];
    let cells: Vec<Vec<String>> = rows.temporary.iter().map(|row| cells(row, view)).collect();
    format!(
        "{} objects ({} of the frees at these call sites), {} bytes, were freed within {} of their birth\n\n{}{}\nfreed elsewhere: on another CPU, by another task or on another interrupt level\n",
        count(rows.objects),
        percent(rows.objects, rows.all.n),
        count(rows.bytes),
        duration(rows.temporary_bound, view.unit),
        table(&columns, &cells),
        more(rows.temporary.len(), rows.temporary_total, "call sites"),
    )
}

fn cells(row: &TemporaryRow, view: &View) -> Vec<String> {
    let lifetime = &row.lifetimes.lifetime;
    vec![
        row.lifetimes.symbol.clone(),
        row.lifetimes.api.to_owned(),
        count(row.temporary),
        percent(row.temporary, lifetime.n),
        count(row.bytes_temporary),
        lifetime.p50.map_or("-".to_owned(), |time| duration(time, view.unit)),
        percent(row.temporary_freed_elsewhere, row.temporary),
        freeing_sites(&row.lifetimes),
    ]
}
