//! Columns of the call sites that free.

use super::life::LifeRow;
use crate::render::screen::{Cell, Column};
use crate::render::words::share;
use crate::trace::names::function_of;

/// Call sites in the column of the others at most.
const OTHERS: usize = 3;

/// Columns of the call sites that free the objects of a row. Where events were lost they leave before the column of
/// uncertain objects does.
pub fn columns(is_lossy: bool) -> [Column; 3] {
    let most = Column::name("freed at").leaves(if is_lossy { 2 } else { 0 });
    [most, Column::number("freed there").leaves(5), Column::text("other free sites").leaves(9)]
}

/// Cells under [`columns`].
pub fn cells(row: &LifeRow) -> [Cell; 3] {
    let Some((most, others)) = row.freed_by.split_first() else {
        return [Cell::Empty, Cell::Empty, Cell::Empty];
    };
    let of = |frees: u64| share(frees, row.lifetime.n);
    let mut names: Vec<String> = others
        .iter()
        .take(OTHERS)
        .map(|site| format!("{} {}", function_of(&site.symbol), of(site.frees)))
        .collect();
    let more = others.len().saturating_sub(OTHERS);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    [Cell::from(&most.symbol), Cell::share(most.frees, row.lifetime.n), Cell::text(names.join(", "))]
}
