//! Columns and cells shared by several reports, numbers of rows on a screen, and differences of unsigned numbers.
//!
//! Tables of sums have the same columns in each report, so that they can be compared.

use super::rows::{Estimated, LiveRange, SlabSums};
use super::sorting::SortKey;
use crate::render::screen::{Cell, Column};
use crate::reports::output::ROWS_SHOWN;

/// Columns of slab sums, and the key that sorts by each.
const SUMS: [(Column, SortKey); 9] = [
    (Column::number("allocs").leaves(2), SortKey::Count),
    (Column::number("requested").leaves(8), SortKey::Req),
    (Column::number("allocated"), SortKey::Alloc),
    (Column::number("wasted").leaves(1), SortKey::Waste),
    (Column::number("waste %").leaves(3), SortKey::Frag),
    (Column::number("freed").leaves(7), SortKey::Freed),
    (Column::number("implied freed").leaves(6), SortKey::Freed),
    (Column::number("live objects").leaves(4), SortKey::LiveCount),
    (Column::number("live").leaves(1), SortKey::Live),
];

/// Columns of slab sums; the one that sorts never leaves. Where events were lost, a column counts uncertain objects.
pub fn slab_columns(sort: Option<SortKey>, is_lossy: bool) -> impl Iterator<Item = Column> {
    let column =
        move |(column, key): (Column, SortKey)| if sort == Some(key) { column.leaves(0) } else { column };
    SUMS.into_iter().map(column).chain(is_lossy.then_some(Column::number("uncertain").leaves(1)))
}

/// Cells under [`slab_columns`]; estimates from samples are marked.
pub fn slab_cells(sums: &SlabSums, estimated: Option<&Estimated>, is_lossy: bool) -> Vec<Cell> {
    let exact = [
        Cell::count(sums.alloc_events),
        Cell::bytes(sums.bytes_req),
        Cell::bytes(sums.bytes_alloc),
        Cell::bytes(sums.bytes_wasted),
    ];
    let about = |cell: Cell| Cell::About(Box::new(cell));
    let allocs = match estimated {
        None => exact,
        Some(all) => [
            about(Cell::Count(all.alloc_events)),
            about(Cell::Bytes(all.bytes_req)),
            about(Cell::Bytes(all.bytes_alloc)),
            about(Cell::Bytes(all.bytes_wasted())),
        ],
    };
    let lives = [
        Cell::percent(sums.internal_fragmentation_percent),
        Cell::bytes(sums.bytes_freed),
        Cell::bytes(sums.bytes_freed_unseen),
        Cell::count(sums.live),
        Cell::bytes(sums.bytes_live),
    ];
    allocs.into_iter().chain(lives).chain(is_lossy.then(|| Cell::count(sums.uncertain))).collect()
}

/// Columns of bounds of live figures.
pub const LIVE_RANGE: [Column; 2] =
    [Column::number("frees with event").leaves(5), Column::number("live at most").leaves(4)];

/// These columns where live objects of a row may be free.
pub fn live_range(has_doubts: bool) -> impl Iterator<Item = Column> {
    LIVE_RANGE.into_iter().filter(move |_| has_doubts)
}

/// Upper bound of a live figure. Without one: unknown where the live figure is, else events were lost.
pub fn at_most(live: Option<u64>, most: Option<u64>, bound: fn(u64) -> Cell) -> Cell {
    match (live, most) {
        (None, _) => Cell::Unknown,
        (Some(_), None) => Cell::text("no bound"),
        (Some(_), Some(most)) => bound(most),
    }
}

/// Cells under [`LIVE_RANGE`]; `live` is the live figure that they bound.
pub fn live_range_cells(
    has_doubts: bool,
    range: &LiveRange,
    live: Option<u64>,
) -> impl Iterator<Item = Cell> {
    let most = range.live_range.map(|[_, most]| most);
    let share = match (live, range.frees_seen_percent) {
        // None was freed: a share would be of nothing.
        (Some(_), None) => Cell::Empty,
        (_, percent) => Cell::percent(percent),
    };
    let cells = has_doubts.then(|| [share, at_most(live, most, Cell::Count)]);
    cells.into_iter().flatten()
}

/// Rows of one of several tables on a screen: at most `usual`, unless `-l` allows more rows than usual.
pub fn part(limit: usize, usual: usize) -> usize {
    if is_more(limit) { limit } else { limit.min(usual) }
}

/// True if `-l` allows more rows than usual.
pub fn is_more(limit: usize) -> bool {
    limit > ROWS_SHOWN
}

/// `after` - `before`; it saturates.
pub fn difference(before: u64, after: u64) -> i64 {
    (i128::from(after) - i128::from(before)).clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

#[cfg(test)]
mod tests {
    use super::{difference, *};

    #[test]
    fn parts_grow_with_the_limit() {
        assert_eq!([3, ROWS_SHOWN, 50].map(|limit| part(limit, 5)), [3, 5, 50]);
    }

    #[test]
    fn extremes_saturate() {
        assert_eq!((difference(3, 5), difference(5, 3)), (2, -2));
        assert_eq!((difference(u64::MAX, 0), difference(0, u64::MAX)), (i64::MIN, i64::MAX));
    }
}
