//! Counts of numbers of any size, exact to 1.6 %.

/// Buckets of one power of two: numbers within a bucket differ by 1/32 at most.
const PARTS_LOG2: u32 = 5;
const PARTS: usize = 1 << PARTS_LOG2;

/// A histogram whose buckets grow with the numbers: each power of two has 32.
///
/// Numbers below 32 have buckets of their own. Only powers of two that occur take memory: 256 bytes each.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    octaves: Vec<Option<Box<[u64; PARTS]>>>,
    count: u64,
    sum: u128,
    max: u64,
    min: u64,
}

impl Histogram {
    /// Counts a number.
    #[inline]
    pub fn add(&mut self, value: u64) {
        let (octave, part) = place(value);
        if self.octaves.len() <= octave {
            self.octaves.resize(octave + 1, None);
        }
        if let Some(slot) = self.octaves.get_mut(octave) {
            let parts = slot.get_or_insert_with(|| Box::new([0; PARTS]));
            if let Some(part) = parts.get_mut(part) {
                *part += 1;
            }
        }
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// Adds another one.
    pub fn merge(&mut self, other: &Self) {
        if self.octaves.len() < other.octaves.len() {
            self.octaves.resize(other.octaves.len(), None);
        }
        for (mine, theirs) in self.octaves.iter_mut().zip(&other.octaves) {
            let Some(theirs) = theirs else { continue };
            let mine = mine.get_or_insert_with(|| Box::new([0; PARTS]));
            mine.iter_mut().zip(theirs.iter()).for_each(|(a, b)| *a += b);
        }
        self.min = match (self.count, other.count) {
            (0, _) => other.min,
            (_, 0) => self.min,
            _ => self.min.min(other.min),
        };
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// How many numbers were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest one, exactly.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The mean, exactly.
    pub fn mean(&self) -> Option<u64> {
        (self.count > 0).then(|| (self.sum / u128::from(self.count)) as u64)
    }

    /// The number below which `per_mille` of all lie, the nearest rank: exact below 64, within 1.6 % above.
    pub fn quantile(&self, per_mille: u64) -> Option<u64> {
        let rank = (u128::from(self.count) * u128::from(per_mille)).div_ceil(1000).max(1) as u64;
        let mut seen = 0;
        for (low, width, count) in self.buckets() {
            seen += count;
            if seen >= rank {
                return Some((low + (width - 1) / 2).clamp(self.min, self.max));
            }
        }
        None
    }

    /// Buckets that are not empty: lowest number, width, count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.octaves.iter().enumerate().flat_map(|(octave, parts)| {
            parts.iter().flat_map(move |parts| {
                let used = parts.iter().enumerate().filter(|(_, count)| **count > 0);
                used.map(move |(part, &count)| {
                    let (low, width) = bounds(octave, part);
                    (low, width, count)
                })
            })
        })
    }

    /// Counts by power of ten: how many numbers lie in 1..10, 10..100 and so on; 0 counts as 1.
    pub fn decades(&self) -> Vec<u64> {
        let mut out = Vec::new();
        for (low, width, count) in self.buckets() {
            let decade = (low + (width - 1) / 2).max(1).ilog10() as usize;
            if out.len() <= decade {
                out.resize(decade + 1, 0);
            }
            if let Some(slot) = out.get_mut(decade) {
                *slot += count;
            }
        }
        out
    }
}

/// Octave 0 has the numbers below 32, octave k those with k + 5 significant bits.
#[inline]
fn place(value: u64) -> (usize, usize) {
    let bits = 64 - value.leading_zeros();
    let octave = bits.saturating_sub(PARTS_LOG2);
    let part = (value >> octave.saturating_sub(1)) & (PARTS as u64 - 1);
    (octave as usize, part as usize)
}

fn bounds(octave: usize, part: usize) -> (u64, u64) {
    match octave.checked_sub(1) {
        None => (part as u64, 1),
        Some(shift) => ((part as u64 | PARTS as u64) << shift, 1 << shift),
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
                let (octave, part) = place(value);
                let (low, width) = bounds(octave, part);
                assert!(low <= value && value - low < width, "{value}: {low} {width}");
                assert!(width <= low.max(32) / 32, "{value}: {low} {width}");
            }
        }
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
}
