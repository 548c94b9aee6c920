//! Files changed on purpose, with right checksums.

use kmt_format::kernel::ByteOrder;

/// A vector of the specification.
pub fn vector(name: &str) -> Vec<u8> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-spec/vectors");
    std::fs::read(folder.join(name)).unwrap()
}

/// Sets the checksums of the chunk at `at` of a little-endian file anew.
pub fn stamp(file: &mut [u8], at: usize) {
    let crc = |bytes: &[u8]| super::naive::crc32(bytes).to_le_bytes();
    let number = |file: &[u8], at: usize, len: usize| ByteOrder::Little.uint(&file[at..at + len]) as usize;
    let (total, prefix_len) = (number(file, at + 16, 8), number(file, at + 52, 4));
    let prefix = crc(&file[at + 64..at + 64 + prefix_len]);
    file[at + 56..at + 60].copy_from_slice(&prefix);
    let body = crc(&file[at + 64..at + total]);
    file[at + 48..at + 52].copy_from_slice(&body);
    let header = crc(&file[at..at + 60]);
    file[at + 60..at + 64].copy_from_slice(&header);
}
