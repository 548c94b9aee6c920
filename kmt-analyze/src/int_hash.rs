//! Hashes of numbers from files, keyed by a secret of this run, so that a file cannot be made to collide.
//!
//! No output depends on it: all output is sorted by its contents.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// Builds hashers for maps whose keys are of a file.
pub type IntHash = foldhash::fast::RandomState;

/// Two secret numbers, the second of them odd.
#[derive(Debug, Clone, Copy)]
pub struct Seed {
    mask: u64,
    factor: u64,
}

/// 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Seed {
    /// The seed of this run, always the same.
    pub fn of_this_run() -> Self {
        static SEED: OnceLock<Seed> = OnceLock::new();
        *SEED.get_or_init(|| {
            // The standard library's hasher is keyed by the operating system's random numbers.
            let random = RandomState::new();
            Self { mask: random.hash_one(0u8), factor: random.hash_one(1u8) | 1 }
        })
    }

    /// Spreads a number over all bits.
    #[inline]
    pub fn spread(self, value: u64) -> u64 {
        let product = u128::from(value ^ self.mask) * u128::from(self.factor);
        (product >> 64) as u64 ^ product as u64
    }
}

/// Spreads a number over all bits, the same in every run: for choices that affect outputs.
#[inline]
pub fn spread(value: u64) -> u64 {
    Seed { mask: 0, factor: SPREAD }.spread(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiples of a step that collide by the fixed factor.
    fn colliding() -> Vec<u64> {
        let wanted = spread(0) & 0xfff;
        (0..u64::MAX).step_by(1 << 12).filter(|&v| spread(v) & 0xfff == wanted).take(4_000).collect()
    }

    #[test]
    fn what_collides_in_one_run_does_not_in_another() {
        let values = colliding();
        let places = |seed: Seed| {
            let mut places: Vec<u64> = values.iter().map(|&v| seed.spread(v) & 0xfff).collect();
            places.sort_unstable();
            places.dedup();
            places.len()
        };
        assert_eq!(places(Seed { mask: 0, factor: SPREAD }), 1);
        for number in 0..100u64 {
            let seed = Seed { mask: spread(number), factor: spread(number + 1000) | 1 };
            assert!(places(seed) > 400, "{seed:?}: {} places for 4,000 values", places(seed));
        }
        assert!(places(Seed::of_this_run()) > 400);
    }
}
