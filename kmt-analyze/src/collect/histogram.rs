//! Histograms of integers, exact to 1.6 %, and sums of numbers that some events lack.
//!
//! Such a sum is unknown, not too small. Collectors of times and sizes keep histograms; reports take quantiles from them.

use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;

use super::sums::Sums;

/// log2 of the buckets of each power of two: numbers in a bucket differ by at most 1/32.
const PARTS_LOG2: u32 = 5;
const PARTS: usize = 1 << PARTS_LOG2;
/// Up to this number of used buckets, only used ones are stored.
const FEW: usize = 64;

/// A histogram with 32 buckets for each power of two.
///
/// Numbers below 32 have their own buckets. If few buckets are used, only these are stored; else all up to the largest
/// number, 256 bytes for each power of two.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Index and count of used buckets, sorted, while they are few.
    few: Vec<(u16, u64)>,
    /// All buckets, if many are used.
    buckets: Box<[u64]>,
    sum: u128,
    max: u64,
}

impl Histogram {
    /// Counts a number.
    #[inline]
    pub fn add(&mut self, value: u64) {
        let number = bucket_of(value);
        match self.buckets.get_mut(number) {
            Some(bucket) => *bucket += 1,
            None => self.add_to(number, 1),
        }
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// Adds `count` numbers of a bucket, whose sum is added apart ([`Histogram::add_sum`]).
    pub fn add_bucket(&mut self, number: u32, count: u64) {
        self.add_to(number as usize, count);
    }

    /// Adds the sum and the maximum of numbers that were added by their buckets.
    pub fn add_sum(&mut self, sum: u64, max: u64) {
        self.sum += u128::from(sum);
        self.max = self.max.max(max);
    }

    /// Adds `count` to a bucket.
    fn add_to(&mut self, number: usize, count: u64) {
        if self.buckets.is_empty() {
            match self.few.binary_search_by_key(&number, |&(number, _)| number.into()) {
                Ok(at) => {
                    if let Some((_, stored)) = self.few.get_mut(at) {
                        *stored += count;
                    }
                    return;
                }
                Err(at) if self.few.len() < FEW => return self.few.insert(at, (number as u16, count)),
                Err(_) => {}
            }
            for (number, count) in std::mem::take(&mut self.few) {
                self.add_to_all(number.into(), count);
            }
        }
        self.add_to_all(number, count);
    }

    fn add_to_all(&mut self, number: usize, count: u64) {
        if self.buckets.len() <= number {
            let mut all = std::mem::take(&mut self.buckets).into_vec();
            all.resize((number / PARTS + 1) * PARTS, 0);
            self.buckets = all.into();
        }
        if let Some(bucket) = self.buckets.get_mut(number) {
            *bucket += count;
        }
    }

    /// Indices and counts, sorted by index.
    fn counts(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let few = self.few.iter().map(|&(number, count)| (usize::from(number), count));
        few.chain(self.buckets.iter().copied().enumerate())
    }

    /// Adds another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (number, count) in other.counts().filter(|(_, count)| *count > 0) {
            self.add_to(number, count);
        }
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// Number of counted numbers.
    pub fn count(&self) -> u64 {
        self.counts().map(|(_, count)| count).sum()
    }

    /// The exact sum; it saturates at 64 bits.
    pub fn sum(&self) -> u64 {
        u64::try_from(self.sum).unwrap_or(u64::MAX)
    }

    /// The exact maximum.
    pub fn max(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max)
    }

    /// The exact mean.
    pub fn mean(&self) -> Option<u64> {
        u64::try_from(self.sum.checked_div(self.count().into())?).ok()
    }

    /// Quantile at `per_mille`, by nearest rank: exact below 64, within 1.6 % above.
    pub fn quantile(&self, per_mille: u64) -> Option<u64> {
        let rank = (u128::from(self.count()) * u128::from(per_mille)).div_ceil(1000).max(1) as u64;
        let mut counted = 0;
        for (low, width, count) in self.buckets() {
            counted += count;
            if counted >= rank {
                return Some((low + (width - 1) / 2).min(self.max));
            }
        }
        None
    }

    /// Buckets that are not empty: lowest number, width, count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.counts().filter(|(_, count)| *count > 0).map(|(number, count)| {
            let (low, width) = bounds(number);
            (low, width, count)
        })
    }

    /// Counts by power of ten, for 1..10, 10..100 and so on; 0 counts as 1.
    pub fn decades(&self) -> Vec<u64> {
        decades(self.buckets().map(|(low, width, count)| [low, low + (width - 1), count]))
    }
}

/// Counts by power of ten of buckets: lowest and highest number, count. A bucket is where its middle is.
pub fn decades(buckets: impl Iterator<Item = [u64; 3]>) -> Vec<u64> {
    let mut out = Vec::new();
    for [low, high, count] in buckets {
        let decade = (low + high.saturating_sub(low) / 2).max(1).ilog10() as usize;
        if out.len() <= decade {
            out.resize(decade + 1, 0);
        }
        if let Some(slot) = out.get_mut(decade) {
            *slot += count;
        }
    }
    out
}

impl Sums for Histogram {
    fn absorb(&mut self, other: Self) {
        Self::merge(self, &other);
    }
}

/// A histogram that is empty at most call sites: 8 bytes until a number is added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RareHistogram(Option<Box<Histogram>>);

impl Deref for RareHistogram {
    type Target = Histogram;

    fn deref(&self) -> &Histogram {
        static EMPTY: LazyLock<Histogram> = LazyLock::new(Histogram::default);
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}

impl DerefMut for RareHistogram {
    fn deref_mut(&mut self) -> &mut Histogram {
        self.0.get_or_insert_default()
    }
}

impl Sums for RareHistogram {
    fn absorb(&mut self, other: Self) {
        if let Some(other) = other.0 {
            self.merge(&other);
        }
    }
}

/// Bucket index of a number: first those below 32, then 32 for each power of two.
#[inline]
fn bucket_of(value: u64) -> usize {
    let bits = 64 - value.leading_zeros();
    let octave = bits.saturating_sub(PARTS_LOG2);
    let part = (value >> octave.saturating_sub(1)) & (PARTS as u64 - 1);
    octave as usize * PARTS + part as usize
}

/// Lowest number and width of a bucket.
fn bounds(number: usize) -> (u64, u64) {
    let part = (number % PARTS) as u64;
    match (number / PARTS).checked_sub(1) {
        None => (part, 1),
        Some(shift) => ((part | PARTS as u64) << shift, 1 << shift),
    }
}

/// A sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    sum: u64,
    /// Number of events without the number.
    missing: u64,
}

impl Amount {
    /// Adds the number of an event, if the event has it.
    pub fn add(&mut self, number: Option<u64>) {
        match number {
            Some(number) => self.sum = self.sum.saturating_add(number),
            None => self.missing += 1,
        }
    }

    /// The sum; `None`: some event lacks the number.
    pub fn recorded(&self) -> Option<u64> {
        (self.missing == 0).then_some(self.sum)
    }
}

/// A sum of two parts; the part of a number may be unknown too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Split {
    /// Both.
    pub all: Amount,
    /// Each.
    pub parts: [Amount; 2],
}

impl Split {
    /// Adds the number of an event to a part: the second one if `is_second`.
    pub fn add(&mut self, is_second: Option<bool>, number: Option<u64>) {
        self.all.add(number);
        match is_second {
            Some(is_second) => self.parts[usize::from(is_second)].add(number),
            None => self.parts.iter_mut().for_each(|part| part.add(None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_lies_in_its_bucket() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1 << shift) + 1, (1u64 << shift).wrapping_sub(1), 0xdead_beef << 3]
            {
                let (low, width) = bounds(bucket_of(value));
                assert!(low <= value && value - low < width, "{value}: {low} {width}");
                assert!(width <= low.max(32) / 32, "{value}: {low} {width}");
            }
        }
    }

    #[test]
    fn a_rare_histogram_is_empty_until_a_number_is_added() {
        let (mut sums, mut other) = (RareHistogram::default(), RareHistogram::default());
        assert_eq!((sums.count(), sums.max(), sums.0.is_none()), (0, None, true));
        sums.absorb(RareHistogram::default());
        assert!(sums.0.is_none(), "nothing was added");
        other.add(7);
        sums.absorb(other);
        sums.add(9);
        assert_eq!((sums.count(), sums.sum(), sums.max()), (2, 16, Some(9)));
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_numbers() {
        let mut seed = 7u64;
        let mut all: Vec<u64> = (0..5_000)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 40) >> (seed % 20)
            })
            .collect();
        let (mut one, mut two) = (Histogram::default(), Histogram::default());
        for (i, &value) in all.iter().enumerate() {
            if i % 3 == 0 { one.add(value) } else { two.add(value) }
        }
        one.merge(&two);
        all.sort_unstable();
        assert_eq!((one.count(), one.max()), (5_000, all.last().copied()));
        assert_eq!(one.mean(), Some(all.iter().sum::<u64>() / 5_000));
        for per_mille in [1, 10, 500, 900, 990, 1000] {
            let exact = all[(5_000 * per_mille as usize).div_ceil(1000) - 1];
            let found = one.quantile(per_mille).unwrap();
            assert!(found.abs_diff(exact) * 62 <= exact, "{per_mille}: {found} for {exact}");
        }
        assert_eq!(one.decades().iter().sum::<u64>(), 5_000);
        assert_eq!(Histogram::default().quantile(500), None);
    }

    #[test]
    fn what_an_event_lacks_makes_the_sum_unknown() {
        let mut amount = Amount::default();
        assert_eq!(amount.recorded(), Some(0));
        amount.add(Some(3));
        assert_eq!(amount.recorded(), Some(3));
        amount.add(None);
        amount.add(Some(3));
        assert_eq!(amount.recorded(), None);
        let mut split = Split::default();
        split.add(Some(true), Some(5));
        assert_eq!((split.all.recorded(), split.parts.map(|p| p.recorded())), (Some(5), [Some(0), Some(5)]));
        split.add(None, Some(2));
        assert_eq!((split.all.recorded(), split.parts.map(|p| p.recorded())), (Some(7), [None, None]));
    }
}
