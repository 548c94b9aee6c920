//! Numbers for made files.

use arbitrary::{Result, Unstructured};

/// A number where arithmetic ends.
pub fn edge(u: &mut Unstructured<'_>) -> Result<u64> {
    let bit = 1u64 << u.int_in_range(0..=63)?;
    u.choose(&[0, 1, bit, bit - 1, bit.wrapping_neg(), u64::MAX, u64::MAX - 1, i64::MAX as u64, 0x7fff_ffff])
        .copied()
}

/// A small number, at an edge sometimes.
pub fn small(u: &mut Unstructured<'_>) -> Result<u64> {
    if u.ratio(1, 12)? { edge(u) } else { Ok(u.arbitrary::<u8>()?.into()) }
}
