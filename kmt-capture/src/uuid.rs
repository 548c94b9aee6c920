//! An identity for a trace, made from what it holds: the same input gives the same file.

use kmt_format::kernel::ByteOrder;

/// Mixes byte strings into 16 bytes. Not a cryptographic hash: it only has to tell traces apart.
#[derive(Debug)]
pub struct Identity {
    lanes: [u64; 2],
}

impl Identity {
    /// The start.
    pub fn new() -> Self {
        Self { lanes: [0xcbf2_9ce4_8422_2325, 0x9e37_79b9_7f4a_7c15] }
    }

    /// Mixes `bytes` in, and their length.
    pub fn add(&mut self, bytes: &[u8]) {
        self.mix(bytes.len() as u64);
        for word in bytes.chunks(8) {
            self.mix(ByteOrder::Little.uint(word));
        }
    }

    /// The identity of (a part of) a file, by its length and both its ends.
    #[cfg(feature = "convert")]
    pub fn of_file(bytes: &[u8], instance: &str) -> [u8; 16] {
        const END_LEN: usize = 65_536;
        let mut identity = Self::new();
        identity.add(&(bytes.len() as u64).to_le_bytes());
        identity.add(instance.as_bytes());
        identity.add(bytes.get(..bytes.len().min(END_LEN)).unwrap_or_default());
        identity.add(bytes.get(bytes.len().saturating_sub(END_LEN)..).unwrap_or_default());
        identity.finish()
    }

    fn mix(&mut self, word: u64) {
        const PRIMES: [u64; 2] = [0x0000_0100_0000_01b3, 0xff51_afd7_ed55_8ccd];
        for (lane, prime) in self.lanes.iter_mut().zip(PRIMES) {
            *lane = (*lane ^ word).wrapping_mul(prime).rotate_left(29);
        }
    }

    /// The identity.
    pub fn finish(mut self) -> [u8; 16] {
        self.mix(0);
        self.mix(0);
        let [a, b] = self.lanes.map(u64::to_le_bytes);
        let mut out = [0; 16];
        for (to, from) in out.iter_mut().zip(a.into_iter().chain(b)) {
            *to = from;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::Identity;

    fn of(parts: &[&[u8]]) -> [u8; 16] {
        let mut identity = Identity::new();
        parts.iter().for_each(|p| identity.add(p));
        identity.finish()
    }

    #[test]
    fn different_inputs_differ_from_the_first_bytes_on() {
        assert_eq!(of(&[b"abc"]), of(&[b"abc"]));
        assert_ne!(of(&[b"abc"])[..4], of(&[b"abd"])[..4]);
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
    }
}
