//! Secret numbers: the new value of an address, a frame, a task or a name depends on the key alone.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hasher as _;
use std::ops::Range;

use siphasher::sip::SipHasher24;

use crate::failure::{Failure, Result};

/// Purpose of a number: the same value has different numbers for different purposes.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub enum Purpose {
    /// Blocks of page frames, and of the direct map with them.
    Frames = 1,
    /// Blocks of heap addresses where the direct map is unknown.
    Heap,
    /// Pages of all other addresses.
    Pages,
    /// Address of page frame 0.
    DirectMap,
    /// Order of parts of the text.
    TextOrder,
    /// Gaps between parts of the text.
    TextGap,
    /// Task ids.
    Pids,
    Names,
    /// Identifiers without other meaning.
    Identity,
    /// UUID of the file.
    Uuid,
}

/// A key of 128 bits. SipHash-2-4 is a keyed pseudorandom function: without the key, a number reveals nothing about
/// another one.
#[derive(Debug, Clone, Copy)]
pub struct SecretKeys {
    key: (u64, u64),
}

impl SecretKeys {
    /// A key from the kernel's random source, or from a seed, which must not be guessed.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel returns no random bytes.
    pub fn new(seed: Option<u64>) -> Result<Self> {
        if let Some(seed) = seed {
            let word = |number: u64| {
                let mut hasher = SipHasher24::new_with_keys(seed, number);
                hasher.write_u64(seed);
                hasher.finish()
            };
            return Ok(Self { key: (word(0), word(1)) });
        }
        let word = || {
            getrandom::u64().map_err(|e| {
                Failure::new(format!("the kernel gives no random bytes: {e}"))
                    .hint("without them addresses could be guessed; nothing was written")
            })
        };
        Ok(Self { key: (word()?, word()?) })
    }

    /// Number of a value.
    pub fn number(&self, purpose: Purpose, value: u64, attempt: u32) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
        hasher.write(&[purpose as u8]);
        hasher.write(&value.to_le_bytes());
        hasher.write(&attempt.to_le_bytes());
        hasher.finish()
    }

    /// Number of a text.
    pub fn text(&self, purpose: Purpose, kind: &str, text: &[u8], attempt: u32) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
        hasher.write(&[purpose as u8]);
        hasher.write(&(kind.len() as u64).to_le_bytes());
        hasher.write(kind.as_bytes());
        hasher.write(text);
        hasher.write(&attempt.to_le_bytes());
        hasher.finish()
    }

    /// Draws a number in `range` for each of `values`: distinct, and never the value itself. `None` if there are not
    /// enough.
    pub fn draw(
        &self,
        purpose: Purpose,
        values: &BTreeSet<u64>,
        range: Range<u64>,
    ) -> Option<HashMap<u64, u64>> {
        let len = range.end.saturating_sub(range.start);
        // A quarter stays free, so that few attempts are needed.
        if values.len() as u64 > len / 4 * 3 {
            return None;
        }
        let mut taken = BTreeSet::new();
        let mut drawn = HashMap::with_capacity(values.len());
        for &value in values {
            let candidates = (0..=u32::MAX).map(|i| range.start + self.number(purpose, value, i) % len);
            let number = candidates.into_iter().find(|&n| n != value && !taken.contains(&n))?;
            taken.insert(number);
            drawn.insert(value, number);
        }
        Some(drawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_distinct_and_never_their_own() {
        let keys = SecretKeys::new(Some(7)).unwrap();
        let values: BTreeSet<u64> = (0..75).collect();
        let drawn = keys.draw(Purpose::Pids, &values, 0..100).unwrap();
        let distinct: BTreeSet<u64> = drawn.values().copied().collect();
        assert_eq!(distinct.len(), 75);
        assert!(drawn.iter().all(|(old, new)| old != new && *new < 100));
        assert!(keys.draw(Purpose::Pids, &(0..76).collect(), 0..100).is_none(), "too few to choose from");
    }

    #[test]
    fn fresh_keys_differ_and_seeds_repeat() {
        let number = |seed| SecretKeys::new(seed).unwrap().number(Purpose::Frames, 1, 0);
        assert_ne!(number(None), number(None));
        assert_eq!(number(Some(3)), number(Some(3)));
        assert_ne!(number(Some(3)), number(Some(4)));
    }
}
