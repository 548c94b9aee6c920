//! Folded lives: the content of a FOLD chunk, for its writer and its readers. Spec section "FOLD".
//!
//! A life is folded if its allocation and its free are left out of the file: they are counted instead, with those that are like
//! them. Where no life is folded, a file has no such chunk.

/// log2 of the bins of each power of two.
const PARTS_LOG2: u32 = 5;
const PARTS: u64 = 1 << PARTS_LOG2;

/// Number of bins: for lengths of up to 64 bits.
pub const BINS: u32 = 60 * PARTS as u32;

/// Counts and lengths of lives that are alike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FoldedSums {
    /// Number of lives, or of frees of NULL.
    pub count: u64,
    /// Those whose free came from another CPU.
    pub cross_cpu: u64,
    /// Those whose free came from another CPU, another task or another interrupt level.
    pub elsewhere: u64,
    /// Sum of their lengths, in the clock's unit; it saturates.
    pub length_sum: u64,
    /// The longest of them.
    pub length_max: u64,
    /// Those that are longer than a millisecond.
    pub over_ms: u64,
    /// Those that are longer than a second.
    pub over_s: u64,
}

impl FoldedSums {
    /// Adds one life of that length; `millisecond` is one in the clock's unit.
    pub fn add(&mut self, length: u64, cross_cpu: bool, elsewhere: bool, millisecond: u64) {
        self.count = self.count.saturating_add(1);
        self.over_ms = self.over_ms.saturating_add((length > millisecond).into());
        self.over_s = self.over_s.saturating_add((length > millisecond.saturating_mul(1000)).into());
        self.cross_cpu = self.cross_cpu.saturating_add(cross_cpu.into());
        self.elsewhere = self.elsewhere.saturating_add(elsewhere.into());
        self.length_sum = self.length_sum.saturating_add(length);
        self.length_max = self.length_max.max(length);
    }
}

/// Number of the bin of a length: up to 31 the length itself, else 32 bins for each power of two.
pub fn bin_of(length: u64) -> u32 {
    let bits = u64::BITS - length.leading_zeros();
    let octave = bits.saturating_sub(PARTS_LOG2);
    let part = (length >> octave.saturating_sub(1)) & (PARTS - 1);
    octave * PARTS as u32 + part as u32
}

/// Sum of the events of all CPUs; it saturates.
pub(crate) fn event_sum(cpus: &[(u32, u64)]) -> u64 {
    cpus.iter().fold(0, |sum, (_, events)| sum.saturating_add(*events))
}

/// Checks that the bins of a row add up to its count, and that no part of its lives is larger than the whole: reports subtract and
/// divide these numbers. Of frees of NULL there is only a count.
pub(crate) fn check_row(sums: &FoldedSums, bins: &[(u32, u32)], of_null: bool) -> Result<(), &'static str> {
    if of_null {
        let is_number = *sums == FoldedSums { count: sums.count, ..FoldedSums::default() } && bins.is_empty();
        return if is_number { Ok(()) } else { Err("a row of frees of NULL has more than their number") };
    }
    if bins.iter().any(|(bin, _)| *bin >= BINS) {
        return Err("a bin of folded lives has a number that is too large");
    }
    let sum = bins.iter().fold(0u64, |sum, (_, count)| sum.saturating_add((*count).into()));
    if sum != sums.count {
        return Err("the bins of a row of folded lives do not add up to its count");
    }
    if sums.cross_cpu > sums.elsewhere || sums.elsewhere > sums.count {
        return Err("a row of folded lives has more frees from elsewhere than lives");
    }
    if sums.over_s > sums.over_ms || sums.over_ms > sums.count {
        return Err("a row of folded lives has more long lives than lives");
    }
    Ok(())
}

/// Lives that are alike, to be written.
#[derive(Debug, Clone)]
pub struct FoldedRow {
    /// The record of an allocation like theirs, its first two bytes the id of its event, as
    /// [`Writer::add_event`](crate::write::Writer::add_event) takes it; address, CPU and task are written as 0. `None`: these are
    /// frees of NULL, of which only the number is known.
    pub alloc: Option<Vec<u8>>,
    /// The record of a free like theirs.
    pub free: Vec<u8>,
    /// Counts and lengths.
    pub sums: FoldedSums,
    /// Bins and their counts; they add up to the number of lives.
    pub bins: Vec<(u32, u32)>,
}

/// An interval of folded lives, to be written.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct FoldedInterval {
    /// Number of the interval in the file, from 0. It rises; a number that is left out is a missing interval.
    pub number: u64,
    /// Begin, in the clock's unit.
    pub t_begin: u64,
    /// End; the next interval begins there.
    pub t_end: u64,
    /// Longest life that is folded.
    pub threshold: u64,
    /// True if lives were left as events in part of the interval.
    pub written_through: bool,
    /// The lives.
    pub rows: Vec<FoldedRow>,
    /// By CPU: events that were folded, with their stacks.
    pub cpus: Vec<(u32, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_ascend_with_lengths() {
        let mut last = 0;
        for shift in 0..64 {
            for part in 0..40u64 {
                let length = (1u64 << shift) + ((u128::from(part) << shift) / 40) as u64;
                let bin = bin_of(length);
                assert!(bin >= last && bin < BINS, "{length}: {bin} after {last}");
                last = bin;
            }
        }
        assert_eq!((bin_of(0), bin_of(31), bin_of(32), bin_of(u64::MAX)), (0, 31, 32, BINS - 1));
    }
}
