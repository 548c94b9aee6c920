//! Rows of a table, with their heap of strings.

use crate::bytes::Bytes;
use crate::model::Layout;

/// Strings, each short one kept once.
#[derive(Default)]
pub struct Heap {
    /// The strings.
    pub bytes: Vec<u8>,
    seen: Vec<(Vec<u8>, usize)>,
}

impl Heap {
    /// Offset of the string, and its length.
    pub fn push(&mut self, text: &[u8]) -> (usize, usize) {
        if let Some((_, at)) = self.seen.iter().find(|(known, _)| known == text) {
            return (*at, text.len());
        }
        let at = self.bytes.len();
        if text.len() <= 64 {
            self.seen.push((text.to_vec(), at));
        }
        self.bytes.extend(text);
        (at, text.len())
    }
}

/// A table.
pub fn table(rows: &[Bytes], row_len: usize, layout: &Layout) -> Vec<u8> {
    table_with(rows, row_len, &[], layout)
}

/// A table with a heap.
pub fn table_with(rows: &[Bytes], row_len: usize, heap: &[u8], layout: &Layout) -> Vec<u8> {
    let more = if layout.padded { 8 } else { 0 };
    let mut out = Bytes::new(layout.big);
    out.u32(16 + more).u32(row_len + more).u32(rows.len()).u32(heap.len()).fill(0xee, 16 + more);
    for row in rows {
        let end = out.len() + row_len + more;
        out.raw(&row.data).fill(0xee, end);
    }
    out.raw(heap).data.clone()
}
