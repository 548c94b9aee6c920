//! Orders of rows.

use crate::ledger::totals::Totals;
use crate::pass::selection::Selection;

/// What a table of sums is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SortKey {
    /// Bytes handed out
    Alloc,
    /// Bytes asked for
    Req,
    /// Bytes handed out beyond those asked for
    Waste,
    /// Allocations
    Count,
    /// Bytes live at the end
    Live,
    /// Objects live at the end
    LiveCount,
    /// Bytes freed
    Freed,
    /// Internal fragmentation in percent
    Frag,
    /// Name
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

/// How its rows are sorted.
#[derive(Debug, clap::Args)]
pub struct SortOptions {
    /// Sort by these, the most important first [default: alloc; with --at: live]
    #[arg(short, long, value_enum, value_delimiter = ',')]
    sort: Vec<SortKey>,
}

impl SortOptions {
    /// The keys that are given, or those that fit the selection.
    pub fn keys(self, selection: &Selection) -> Vec<SortKey> {
        match (self.sort.is_empty(), selection.at.is_some()) {
            (false, _) => self.sort,
            (true, true) => vec![SortKey::Live],
            (true, false) => vec![SortKey::Alloc],
        }
    }
}

/// Sorts rows by several keys, then by name. Numbers are sorted, not the rows: a file can name 200,000 call sites, and
/// sorting needs room for half of what it moves.
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

/// Puts at each place the row that stands at its number, cycle by cycle.
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
    use super::*;

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
