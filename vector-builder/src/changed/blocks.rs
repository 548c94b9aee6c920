//! Blocks of symbols that are made by hand.

use super::Changed;
use crate::broken::Broken;
use crate::bytes::Bytes;
use crate::cases::Maker;
use crate::json;
use crate::model::{Layout, Op, Symbol};

/// A symbol of the kernel: its distance, how many letters it shares with the one before, and the others.
pub(crate) fn symbol(distance: u8, shared: u8, rest: &str) -> Vec<u8> {
    let len = rest.len();
    let mut out = vec![b't', distance, 4, shared, len as u8 & 0x7f];
    if len > 127 {
        out[4] |= 0x80;
        out.push((len >> 7) as u8);
    }
    out.extend_from_slice(rest.as_bytes());
    out
}

/// A chunk with these blocks, each with the address of its first symbol: the head, the rows from 48 on, the heap.
pub(crate) fn chunk(blocks: &[(u64, Vec<Vec<u8>>)], big: bool) -> Op {
    let (mut rows, mut heap, mut count) = (Bytes::new(big), Vec::new(), 0);
    for (address, symbols) in blocks {
        rows.number(*address, 8).u32(heap.len()).number(symbols.len() as u64, 2).number(0, 2);
        heap.extend(symbols.concat());
        count += symbols.len();
    }
    let mut out = Bytes::new(big);
    out.u32(48).u32(0).u32(count).u32(blocks.len()).number(0, 8).number(0, 8);
    out.u32(24).u32(16).u32(heap.len()).u32(0).raw(&rows.data).raw(&heap);
    Op::Unknown(*b"KSYM", 2, out.data.leak())
}

/// Symbols at one address after the other.
pub(crate) fn row_of(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|i| symbol(u8::from(i > 0), 0, "a")).collect()
}

/// As many symbols as a block may have.
pub fn cases(m: Maker, layout: Layout) -> Vec<(&'static str, Changed)> {
    let event = Op::Event(0, m.kmalloc(10, 0x40, 8));
    let file = Broken::new(&[chunk(&[(0x1000, row_of(256))], m.big), event.clone()], layout);
    let rows: Vec<Symbol> = (0..256).map(|i| (0x1000 + i, 4, b't', 0, "a")).collect();
    let expected = json::expected(&[Op::Symbols(vec![], rows, (0, 0)), event], &file.file, &layout);
    vec![("long-block", (file, expected))]
}
