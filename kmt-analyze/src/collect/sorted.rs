//! Sums by number, in the order of the numbers: a short list, or a tree once it is long. Most have one number, of which a
//! tree alone takes half a kilobyte.
//!
//! Collectors keep such sums for each call site or cache, by CPU, task or cache. Order makes the results equal in every
//! run, which a hash map does not. Up to 32 numbers are a sorted vector.

use std::collections::BTreeMap;

use super::sums::Sums;

/// Sums by number, sorted. Takes 24 bytes while there are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sorted<T>(List<T>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum List<T> {
    /// All of them, while they are few.
    Few(Vec<(u32, T)>),
    /// All of them, once they are many.
    #[expect(clippy::box_collection, reason = "a short list takes 24 bytes, with a tree beside it 32")]
    Many(Box<BTreeMap<u32, T>>),
}

/// Longest list.
const FEW: usize = 32;
/// Longest list that is searched from its start.
const SCANNED: usize = 8;

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self(List::Few(Vec::new()))
    }
}

impl<T: Default> Sorted<T> {
    /// Sum of a number.
    #[inline]
    pub fn of(&mut self, number: u32) -> &mut T {
        let at = self.position(number).unwrap_or_else(|| self.place(number));
        match &mut self.0 {
            List::Few(few) => &mut few[at].1,
            List::Many(many) => many.entry(number).or_default(),
        }
    }

    /// Position of a number that is found at once.
    #[inline]
    fn position(&self, number: u32) -> Option<usize> {
        let List::Few(few) = &self.0 else { return None };
        if few.len() <= SCANNED {
            return few.iter().position(|one| one.0 == number);
        }
        // If all numbers are stored, the index is the number.
        few.get(number as usize).filter(|one| one.0 == number).map(|_| number as usize)
    }

    /// Position of a number in the list, where it is inserted; the tree has none.
    fn place(&mut self, number: u32) -> usize {
        if let List::Few(few) = &mut self.0 {
            if few.len() >= FEW && few.binary_search_by_key(&number, |one| one.0).is_err() {
                self.0 = List::Many(Box::new(std::mem::take(few).into_iter().collect()));
            }
        }
        match &mut self.0 {
            List::Few(few) => {
                let at = few.partition_point(|one| one.0 < number);
                if few.get(at).is_none_or(|one| one.0 != number) {
                    few.reserve_exact(few.len().max(1));
                    few.insert(at, (number, T::default()));
                }
                at
            }
            List::Many(_) => 0,
        }
    }

    /// All numbers and their sums, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let (few, many) = match &self.0 {
            List::Few(few) => (few.as_slice(), None),
            List::Many(many) => (&[][..], Some(many.iter())),
        };
        let many = many.into_iter().flatten().map(|(number, sum)| (*number, sum));
        few.iter().map(|(number, sum)| (*number, sum)).chain(many)
    }

    /// Sum of a number, if it has one.
    pub fn get(&self, number: u32) -> Option<&T> {
        match &self.0 {
            List::Few(few) => few.get(few.binary_search_by_key(&number, |one| one.0).ok()?).map(|one| &one.1),
            List::Many(many) => many.get(&number),
        }
    }

    /// All numbers and sums as a list.
    pub fn into_list(self) -> Vec<(u32, T)> {
        match self.0 {
            List::Few(few) => few,
            List::Many(many) => many.into_iter().collect(),
        }
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
    use crate::collect::frees::CallerCrossCpu;
    use crate::collect::growth::SurvivorSums;
    use crate::collect::lifetimes::CallerLives;

    /// There are as many as call sites: 200,000 in a file of 16 MB, of which all reports may take 577 MB.
    #[test]
    fn sums_of_a_call_site_are_small() {
        assert_eq!(size_of::<Sorted<u64>>(), 24);
        let sizes = [size_of::<SurvivorSums>(), size_of::<CallerLives>(), size_of::<CallerCrossCpu>()];
        assert!(sizes.iter().zip([288, 320, 56]).all(|(size, most)| *size <= most), "{sizes:?}");
    }

    #[test]
    fn numbers_are_in_order_few_or_many() {
        for most in [3, FEW as u32, 40] {
            let mut sums = Sorted::<u64>::default();
            for number in (0..most).rev().chain(0..most) {
                *sums.of(number * 7 % most) += 1;
            }
            let found: Vec<(u32, u64)> = sums.iter().map(|(number, sum)| (number, *sum)).collect();
            let all = (0..most + 1).map(|number| sums.get(number).copied());
            assert!(all.eq((0..most + 1).map(|number| (number < most).then_some(2))));
            let numbers: Vec<u32> = found.iter().map(|one| one.0).collect();
            assert!(numbers.is_sorted() && found.iter().map(|one| one.1).sum::<u64>() == 2 * u64::from(most));
            assert_eq!(sums.into_list(), found);
        }
    }
}
