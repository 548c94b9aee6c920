//! Indices that are wrong: found by those who use them.

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::bytes::crc32;
use crate::cases::{self, Maker};
use crate::model::Layout;

pub fn index(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    // Changes the row of the first chunk of a kind.
    let mut add = |name, kind: &[u8; 4], at: usize, value: u64, len: usize, is_found: bool| {
        let mut broken = Broken::new(&cases::two_cpus(m), layout);
        let (chunk, _) = broken.chunk(kind, 0);
        let number = broken.file.chunks.iter().position(|c| c.offset == chunk).unwrap_or(0);
        let (index, end) = broken.chunk(b"INDX", 0);
        let row = index + 64 + 16 + 120 * number;
        broken.put(row + at, value, len);
        let crc = crc32(&broken.file.bytes[row + 56..row + 116]);
        broken.put(row + 116, crc.into(), 4);
        broken.stamp(index, end);
        let errors = if is_found { vec![("index", chunk as u64)] } else { Vec::new() };
        out.push((name, broken, Expect::ByIndex(errors)));
    };
    add("index-first-time", b"EVNT", 8, 7, 8, true);
    add("index-last-time", b"EVNT", 16, 7, 8, true);
    add("index-count", b"EVNT", 40, 1, 4, true);
    add("index-header", b"EVNT", 56 + 12, 5, 1, true);
    // Then the index is not used.
    add("index-of-others", b"SCHM", 56 + 12, 3, 1, false);
    add("index-gap", b"EVNT", 0, 64, 8, false);
    // Two rows in another order than their chunks.
    let mut broken = Broken::new(&cases::two_cpus(m), layout);
    let (index, end) = broken.chunk(b"INDX", 0);
    let rows = index + 64 + 16;
    let (first, second) = broken.file.bytes[rows + 120..rows + 360].split_at_mut(120);
    first.swap_with_slice(second);
    broken.stamp(index, end);
    out.push(("index-order", broken, Expect::ByIndex(Vec::new())));
    out
}
