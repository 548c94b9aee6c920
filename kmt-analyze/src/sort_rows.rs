//! Sorting of rows, compiled once.
//!
//! Each call of the standard library's stable sort is 8 KiB of code of its own: two hundred of them were a seventh of the program,
//! and of the time that it takes to compile. Rows of reports are few, so they are sorted by number: one sort of numbers, compiled once,
//! and a short loop for each type of row that moves them. Loops over events and lives sort with the standard library.

use std::cmp::Ordering;

/// Stable sorting of a slice of few elements.
pub trait SortRows<T> {
    /// Sorts by a comparison, as `sort_by` does.
    fn sort_rows_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// Sorts by a key, as `sort_by_key` does.
    fn sort_rows_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.sort_rows_by(|a, b| key(a).cmp(&key(b)));
    }
}

impl<T> SortRows<T> for [T] {
    fn sort_rows_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let order = sorted(self.len(), &mut |a, b| match (self.get(a), self.get(b)) {
            (Some(a), Some(b)) => compare(a, b),
            _ => Ordering::Equal,
        });
        arrange(order, &mut |a, b| self.swap(a, b));
    }
}

/// Numbers of the elements in their order.
fn sorted(len: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by(|&a, &b| compare(a, b));
    order
}

/// Moves each element to its place, one cycle of places after the other.
fn arrange(mut order: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..order.len() {
        let mut at = start;
        while let Some(place) = order.get_mut(at) {
            let from = std::mem::replace(place, at);
            if from == start || from == at {
                break;
            }
            swap(at, from);
            at = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_stable_sort(rows in proptest::collection::vec(0..9_u8, 0..200)) {
            let mut rows: Vec<(u8, usize)> = rows.into_iter().zip(0..).collect();
            let mut expected = rows.clone();
            expected.sort_by_key(|row| row.0);
            rows.sort_rows_by_key(|row| row.0);
            prop_assert_eq!(&rows, &expected);
            expected.sort_by_key(|row| std::cmp::Reverse(row.0));
            rows.sort_rows_by(|a, b| b.0.cmp(&a.0));
            prop_assert_eq!(rows, expected);
        }
    }
}
