//! Orders of rows.

use std::cmp::Ordering;

use crate::ledger::totals::Totals;

/// Key of the order of a table of sums, named as the heading of its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SortKey {
    /// Allocations
    #[value(name = "allocs", aliases = ["alloc_events", "count"])]
    Count,
    /// Bytes requested
    #[value(name = "requested", aliases = ["bytes_req", "req"])]
    Req,
    /// Bytes allocated
    #[value(name = "allocated", aliases = ["bytes_alloc", "alloc"])]
    Alloc,
    /// Bytes allocated beyond those requested
    #[value(name = "wasted", aliases = ["bytes_wasted", "waste"])]
    Waste,
    /// Share of the allocated bytes that were not requested
    #[value(name = "waste_percent", aliases = ["internal_fragmentation_percent", "waste-percent", "frag"])]
    Frag,
    /// Bytes freed
    #[value(name = "freed", alias = "bytes_freed")]
    Freed,
    /// Objects live at the end
    #[value(name = "live_objects", aliases = ["live-objects", "live-count"])]
    LiveCount,
    /// Bytes live at the end
    #[value(name = "live", alias = "bytes_live")]
    Live,
    /// Pages allocated, of tasks
    #[value(name = "pages", aliases = ["page_bytes", "pages_alloc"])]
    Pages,
    /// Pages live at the end, of tasks
    #[value(name = "live_pages", alias = "pages_live")]
    LivePages,
    /// Name
    #[value(name = "name")]
    Name,
}

impl SortKey {
    /// True for sums of pages: only tasks have them beside slab objects.
    pub fn is_of_pages(self) -> bool {
        matches!(self, Self::Pages | Self::LivePages)
    }

    /// Number of these sums; the larger one is the first. `None`: the name.
    pub fn number(self, sums: &Totals) -> Option<u128> {
        Some(match self {
            Self::Alloc => sums.bytes_alloc.into(),
            Self::Req => sums.bytes_req.into(),
            Self::Waste => sums.bytes_wasted().into(),
            Self::Count => sums.alloc_events.into(),
            Self::Live => sums.bytes_live.into(),
            Self::LiveCount => sums.live.into(),
            Self::Freed => sums.bytes_freed.into(),
            // Parts per million: a total order without floating point.
            Self::Frag => u128::from(sums.bytes_wasted()) * 1_000_000 / u128::from(sums.bytes_alloc.max(1)),
            Self::Pages | Self::LivePages | Self::Name => return None,
        })
    }
}

/// Sorts rows by several keys, then by name: the largest number of a key is the first, and a key without numbers is the
/// last one. All rows have a number of a key, or none has.
///
/// Only numbers are sorted: a file can name 200,000 call sites, and sorting needs room for half of what it moves.
pub fn sort_rows<R, K: Copy>(
    rows: &mut [R],
    keys: &[K],
    number: impl Fn(&R, K) -> Option<u128>,
    by_name: impl Fn(&R, &R) -> Ordering,
) {
    let number = &number;
    let numbers_of = |row| keys.iter().map_while(move |key| number(row, *key));
    let numbers: Vec<u128> = rows.iter().flat_map(numbers_of).collect();
    let each = numbers.len() / rows.len().max(1);
    let numbers = |row: usize| &numbers[row * each..(row + 1) * each];
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|&a, &b| numbers(b).cmp(numbers(a)).then_with(|| by_name(&rows[a], &rows[b])));
    rearrange(rows, order);
}

/// Moves each row to its place in `order`, cycle by cycle.
fn rearrange<R>(rows: &mut [R], mut order: Vec<usize>) {
    for start in 0..rows.len() {
        let mut at = start;
        loop {
            let from = std::mem::replace(&mut order[at], at);
            if from == start || from == at {
                break;
            }
            rows.swap(at, from);
            at = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::render::screen::Column;
    use crate::reports::common::cells::slab_columns;

    #[test]
    fn every_column_sorts_by_its_heading() {
        let columns = slab_columns(None, false).map(|column| column.heading);
        for heading in columns.filter(|heading| *heading != "implied freed") {
            let key = heading.replace(" %", "_percent").replace(' ', "_");
            let sort = SortKey::from_str(&key, false).unwrap();
            let column = slab_columns(Some(sort), false).find(|column| column.heading == heading);
            assert_eq!(column, Some(Column::number(heading)), "{key} keeps its column");
        }
    }

    #[test]
    fn json_keys_and_former_keys_sort_too() {
        for (key, as_well) in [
            ("allocs", &["alloc_events", "count"][..]),
            ("requested", &["bytes_req", "req"]),
            ("allocated", &["bytes_alloc", "alloc"]),
            ("wasted", &["bytes_wasted", "waste"]),
            ("waste_percent", &["internal_fragmentation_percent", "frag"]),
            ("freed", &["bytes_freed"]),
            ("live_objects", &["live-count"]),
            ("live", &["bytes_live"]),
            ("name", &[]),
        ] {
            for alias in as_well {
                assert_eq!(SortKey::from_str(key, false), SortKey::from_str(alias, false), "{alias}");
            }
            assert!(SortKey::from_str(key, false).is_ok(), "{key}");
        }
    }

    #[test]
    fn rows_are_sorted_as_a_stable_sort_does() {
        let row = |n: u64| {
            let totals = Totals { bytes_alloc: n * 7919 % 13, ..Totals::default() };
            (n, totals, format!("name{}", n * 31 % 5))
        };
        for len in 0..200 {
            let mut rows: Vec<(u64, Totals, String)> = (0..len).map(row).collect();
            let mut sorted = rows.clone();
            sorted.sort_by(|a, b| (b.1.bytes_alloc, &a.2).cmp(&(a.1.bytes_alloc, &b.2)));
            sort_rows(&mut rows, &[SortKey::Alloc], |row, key| key.number(&row.1), |a, b| a.2.cmp(&b.2));
            assert_eq!(rows, sorted);
        }
    }
}
