//! Sums of numbers that some events lack: then the sum is unknown, not too small.

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
