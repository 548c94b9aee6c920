//! Numbers of symbols that are longer than they need be.

use serde_json::json;

use super::Changed;
use crate::broken::Broken;
use crate::cases::Maker;
use crate::json;
use crate::model::{Layout, Op, Symbol};

/// Letters of a name, some of which make room for a longer number.
const LETTERS: usize = 28;

/// Two symbols of one block: each has 5 bytes, or 6, and its name.
pub(crate) fn symbols(m: Maker) -> Vec<Symbol> {
    let base = m.address(0);
    vec![
        (base, 0x40, b't', 0, "aaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        (base + 0x100, 0x40, b't', 0, "bbbbbbbbbbbbbbbbbbbbbbbbbbbb"),
    ]
}

/// Stores the size of a symbol as a number of `len` bytes, of which the `last` one is given; the others are 0, but that the
/// first one of a `last` that is 0 is 0x40. The name loses as many letters.
pub(crate) fn put_size(file: &mut Broken, symbol: usize, len: usize, last: u64) {
    // The head, and one row of a block.
    let start = 48 + 16 + symbol * (5 + LETTERS);
    let (offset, _) = file.chunk(b"KSYM", 0);
    let letter = file.number(offset + 64 + start + 5 + symbol, 1);
    let mut bytes = vec![0x80; len];
    bytes[0] = if last == 0 { 0xc0 } else { 0x80 };
    bytes[len - 1] = last;
    let letters = LETTERS + 1 - len;
    bytes.extend([0, letters as u64]);
    bytes.extend(std::iter::repeat_n(letter, letters));
    for (i, byte) in bytes.into_iter().enumerate() {
        file.body(b"KSYM", 0, start + 2 + symbol + i, byte, 1);
    }
}

/// Names of the most bytes that they may have: of a symbol, and of its owner.
pub fn long_names(m: Maker, layout: Layout) -> Changed {
    static LONG: [u8; 1_024] = [b'x'; 1_024];
    let long = std::str::from_utf8(&LONG).unwrap_or("");
    let base = m.address(0);
    let rows = vec![(base, 0x100, b't', 1, long)];
    let ops = [Op::Symbols(vec![(long, base, 0x1000)], rows, (0, 0)), Op::Event(0, m.kmalloc(10, 0x40, 8))];
    let file = Broken::new(&ops, Layout { index: false, ..layout });
    let expected = json::expected(&ops, &file.file, &layout);
    (file, expected)
}

/// A size with bytes that add nothing, and one of 64 bits.
pub fn long_numbers(m: Maker, layout: Layout) -> Changed {
    let ops = [Op::Symbols(vec![], symbols(m), (0, 0)), Op::Event(0, m.kmalloc(10, 0x40, 8))];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let mut expected = json::expected(&ops, &file.file, &layout);
    put_size(&mut file, 0, 10, 0);
    put_size(&mut file, 1, 10, 1);
    let rows = &mut expected["symbols"]["symbols"];
    rows[0][4] = json!("a".repeat(LETTERS - 9));
    rows[1][1] = json!(1u64 << 63);
    rows[1][4] = json!("b".repeat(LETTERS - 9));
    (file, expected)
}
