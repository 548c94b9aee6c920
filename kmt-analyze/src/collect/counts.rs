//! Sums by number: a short list, with an index once it is long. Most lists are short, and a file can make one as long as
//! itself.

use std::collections::HashMap;

use super::sums::Sums;
use crate::int_hash::IntHash;

/// Sums by number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts<T> {
    rows: Vec<(u32, T)>,
    /// Places in `rows`, if they are more than [`SHORT`].
    places: HashMap<u32, usize, IntHash>,
}

/// Longest list that is searched from its begin.
const SHORT: usize = 16;

impl<T: Default> Counts<T> {
    /// Sum of a number.
    #[inline]
    pub fn of(&mut self, number: u32) -> &mut T {
        let is_first = self.rows.first().is_some_and(|first| first.0 == number);
        let at = if is_first { 0 } else { self.place(number) };
        &mut self.rows[at].1
    }

    /// Place of a number in the list, which it joins.
    fn place(&mut self, number: u32) -> usize {
        if self.rows.len() > SHORT {
            return self.indexed_place(number);
        }
        match self.rows.iter().position(|row| row.0 == number) {
            Some(0) => 0,
            // Frequent numbers move to the front.
            Some(at) => {
                self.rows.swap(at, at - 1);
                at - 1
            }
            None => self.push(number),
        }
    }

    fn indexed_place(&mut self, number: u32) -> usize {
        if self.places.len() != self.rows.len() {
            self.places = self.rows.iter().enumerate().map(|(at, row)| (row.0, at)).collect();
        }
        if let Some(&at) = self.places.get(&number) {
            return at;
        }
        self.places.insert(number, self.rows.len());
        self.push(number)
    }

    fn push(&mut self, number: u32) -> usize {
        self.rows.push((number, T::default()));
        self.rows.len() - 1
    }

    /// Sorts by number: the order of partitions does not matter.
    pub fn sort(&mut self) {
        self.rows.sort_unstable_by_key(|row| row.0);
        self.places = HashMap::default();
    }

    /// Numbers with their sums.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.rows.iter().map(|(number, sum)| (*number, sum))
    }
}

impl<T: Sums + Default> Sums for Counts<T> {
    fn absorb(&mut self, other: Self) {
        for (number, sum) in other.rows {
            self.of(number).absorb(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_count_as_short_ones() {
        for length in [1, 5, 16, 17, 18, 1_000] {
            let mut counts = Counts::<u64>::default();
            for round in 0..3 {
                (0..length).for_each(|n| *counts.of(n * 7 % length) += u64::from(n + round));
                counts.sort();
            }
            let mut again = Counts::default();
            again.absorb(counts.clone());
            again.absorb(counts.clone());
            again.sort();
            let found: Vec<u32> = counts.iter().map(|(number, _)| number).collect();
            assert_eq!(found, (0..length).collect::<Vec<_>>());
            assert!(counts.iter().zip(again.iter()).all(|(one, two)| one.0 == two.0 && 2 * one.1 == *two.1));
        }
    }
}
