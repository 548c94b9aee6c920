//! Hashing of numbers.

use std::hash::{BuildHasherDefault, Hasher};

/// Hashes integers: multiply and fold, one after the other. Addresses come from the kernel's allocator, not from an
/// adversary that gains anything by slowing its own analysis down.
#[derive(Debug, Default, Clone, Copy)]
pub struct IntHasher(u64);

/// A hasher for maps keyed by integers and what is made of them.
pub type IntHash = BuildHasherDefault<IntHasher>;

/// 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// One number, spread over all bits.
#[inline]
pub fn spread(value: u64) -> u64 {
    let product = u128::from(value) * u128::from(SPREAD);
    (product >> 64) as u64 ^ product as u64
}

impl Hasher for IntHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(chunk) {
                *to = *from;
            }
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = spread((self.0.rotate_left(5) ^ value).wrapping_add(SPREAD));
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}
