//! Sums of numbers that some events may lack: then the sum is unknown, not too small.

use super::sums::Sums;

/// A sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    sum: u64,
    /// Events that did not tell their number.
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

    /// The sum, if every event told its number.
    pub fn known(&self) -> Option<u64> {
        (self.missing == 0).then_some(self.sum)
    }
}

/// A sum of two parts; of which part a number is may be unknown too.
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

impl Sums for Amount {
    fn absorb(&mut self, other: Self) {
        self.sum.absorb(other.sum);
        self.missing.absorb(other.missing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_event_lacks_makes_the_sum_unknown() {
        let mut amount = Amount::default();
        assert_eq!(amount.known(), Some(0));
        amount.add(Some(3));
        assert_eq!(amount.known(), Some(3));
        amount.add(None);
        amount.add(Some(3));
        assert_eq!(amount.known(), None);
        let mut split = Split::default();
        split.add(Some(true), Some(5));
        assert_eq!((split.all.known(), split.parts.map(|p| p.known())), (Some(5), [Some(0), Some(5)]));
        split.add(None, Some(2));
        assert_eq!((split.all.known(), split.parts.map(|p| p.known())), (Some(7), [None, None]));
    }
}
