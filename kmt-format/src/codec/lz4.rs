//! LZ4 blocks, in pure Rust: no C compiler is needed for a target.

/// One block, without frame or length.
pub fn encode(bytes: &[u8]) -> Vec<u8> {
    lz4_flex::block::compress(bytes)
}

/// Decodes one block into `out`; how many bytes it made, `None` if it is damaged or makes more.
pub fn decode(bytes: &[u8], out: &mut [u8]) -> Option<usize> {
    lz4_flex::block::decompress_into(bytes, out).ok()
}
