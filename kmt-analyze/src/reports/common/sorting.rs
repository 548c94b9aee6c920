//! Orders of rows.

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
    /// Name
    #[value(name = "name")]
    Name,
}

impl SortKey {
    /// Compares two rows: numbers fall, names rise.
    pub fn compare(self, a: (&Totals, &str), b: (&Totals, &str)) -> std::cmp::Ordering {
        let number = |t: &Totals| match self {
            Self::Alloc => t.bytes_alloc,
            Self::Req => t.bytes_req,
            Self::Waste => t.bytes_wasted(),
            Self::Count => t.alloc_events,
            Self::Live => t.bytes_live,
            Self::LiveCount => t.live,
            Self::Freed => t.bytes_freed,
            // Parts per million: a total order without floating point.
            Self::Frag => (t.bytes_wasted() as u128 * 1_000_000 / u128::from(t.bytes_alloc.max(1))) as u64,
            Self::Name => 0,
        };
        number(b.0).cmp(&number(a.0))
    }
}

/// Sorts rows by several keys, then by name. Only numbers are sorted: a file can name 200,000 call sites, and sorting
/// needs room for half of what it moves.
pub fn sort_rows<R>(rows: &mut [R], keys: &[SortKey], view: impl Fn(&R) -> (Totals, &str)) {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (view(&rows[a]), view(&rows[b]));
        keys.iter()
            .take_while(|&&k| k != SortKey::Name)
            .map(|k| k.compare((&a.0, a.1), (&b.0, b.1)))
            .find(|o| o.is_ne())
            .unwrap_or_else(|| a.1.cmp(b.1))
    });
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
            sort_rows(&mut rows, &[SortKey::Alloc], |r| (r.1, &r.2));
            assert_eq!(rows, sorted);
        }
    }
}
