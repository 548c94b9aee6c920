//! Sums by number, in the order of the numbers: a short list, or a tree once it is long. Most have one number, of which a
//! tree alone takes half a kilobyte.

use std::collections::BTreeMap;

use super::sums::Sums;

/// Sums by number, sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sorted<T> {
    /// All of them, while they are few.
    few: Vec<(u32, T)>,
    /// All of them, once they are many.
    many: BTreeMap<u32, T>,
}

/// Longest list.
const FEW: usize = 32;

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self { few: Vec::new(), many: BTreeMap::new() }
    }
}

impl<T: Default> Sorted<T> {
    /// Sum of a number.
    #[inline]
    pub fn of(&mut self, number: u32) -> &mut T {
        if self.many.is_empty() {
            // If all numbers are stored, the index is the number.
            let index = number as usize;
            if self.few.get(index).is_some_and(|(stored, _)| *stored == number) {
                return &mut self.few[index].1;
            }
            let at = self.few.partition_point(|(other, _)| *other < number);
            if self.few.get(at).is_some_and(|(other, _)| *other == number) {
                return &mut self.few[at].1;
            }
            if self.few.len() < FEW {
                let more = if self.few.is_empty() { 1 } else { self.few.len() };
                self.few.reserve_exact(more);
                self.few.insert(at, (number, T::default()));
                return &mut self.few[at].1;
            }
            self.many = std::mem::take(&mut self.few).into_iter().collect();
        }
        self.many.entry(number).or_default()
    }

    /// All numbers and their sums, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.few
            .iter()
            .map(|(number, sum)| (*number, sum))
            .chain(self.many.iter().map(|(number, sum)| (*number, sum)))
    }

    /// The same as a list.
    pub fn into_list(self) -> Vec<(u32, T)> {
        if self.many.is_empty() { self.few } else { self.many.into_iter().collect() }
    }
}

impl<T: Sums + Default> Sums for Sorted<T> {
    fn absorb(&mut self, other: Self) {
        other.into_list().into_iter().for_each(|(number, sum)| self.of(number).absorb(sum));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_order_few_or_many() {
        for most in [3, FEW as u32, 40] {
            let mut sums = Sorted::<u64>::default();
            for number in (0..most).rev().chain(0..most) {
                *sums.of(number * 7 % most) += 1;
            }
            let found: Vec<(u32, u64)> = sums.iter().map(|(number, sum)| (number, *sum)).collect();
            let numbers: Vec<u32> = found.iter().map(|one| one.0).collect();
            assert!(numbers.is_sorted() && found.iter().map(|one| one.1).sum::<u64>() == 2 * u64::from(most));
            assert_eq!(sums.into_list(), found);
        }
    }
}
