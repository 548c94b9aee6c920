//! The checksum of POSIX `cksum`: CRC-32 with the most significant bit first, over the bytes and their number.

/// The number that `cksum` prints.
pub fn cksum(bytes: &[u8]) -> u32 {
    // crc32fast has the reflected form of the same polynomial: bits are reversed on the way in and out. Its register begins
    // with ones, that of cksum with zeros.
    let mut hasher = crc32fast::Hasher::new_with_initial(u32::MAX);
    let mut reversed = [0; 4096];
    for part in bytes.chunks(reversed.len()) {
        for (to, from) in reversed.iter_mut().zip(part) {
            *to = from.reverse_bits();
        }
        hasher.update(reversed.get(..part.len()).unwrap_or_default());
    }
    let mut len = bytes.len() as u64;
    while len > 0 {
        hasher.update(&[(len as u8).reverse_bits()]);
        len >>= 8;
    }
    hasher.finalize().reverse_bits()
}

#[cfg(test)]
mod tests {
    /// Numbers that `cksum` of coreutils prints.
    #[test]
    fn it_is_that_of_the_program() {
        assert_eq!(super::cksum(b""), 4_294_967_295);
        assert_eq!(super::cksum(b"123456789"), 930_766_865);
        let long: Vec<u8> = (0..100_000u32).map(|i| (i * 7 % 256) as u8).collect();
        assert_eq!(super::cksum(&long), LONG);
    }

    const LONG: u32 = 1_731_109_147;
}
