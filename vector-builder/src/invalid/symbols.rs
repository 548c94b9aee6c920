//! Blocks of symbols, and the name of an owner.

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::cases::Maker;
use crate::changed::blocks::{chunk, row_of, symbol};
use crate::model::{Layout, Op};

pub fn symbols(m: Maker, layout: Layout) -> Vec<Defect> {
    let layout = Layout { index: false, ..layout };
    let mut out = Vec::new();
    let mut add = |name, blocks: &[(u64, Vec<Vec<u8>>)]| {
        let broken = Broken::new(&[chunk(blocks, m.big)], layout);
        let offset = broken.chunk(b"KSYM", 0).0 as u64 + 64;
        out.push((name, broken, Expect::Damage(vec![("malformed", offset)])));
    };
    let [long, rest] = [300, 900].map(|len| "a".repeat(len));
    let two = |second| [(16, vec![symbol(0, 0, "name")]), (32, second)];
    // Blocks without a symbol, and with one too many.
    add("symbol-block-without", &two(vec![]));
    add("symbol-block-long", &[(16, row_of(257))]);
    // The first name of a block shares letters: with none, and with a name of the block before.
    add("symbol-first-shared", &[(16, vec![symbol(0, 1, "name")])]);
    add("symbol-second-shared", &two(vec![symbol(0, 1, "ame")]));
    // What a name shares counts among its 1,024 bytes.
    add("symbol-shared-long", &[(16, vec![symbol(0, 0, &long), symbol(1, 200, &rest)])]);
    // An owner without a name, whose place is behind the heap.
    let owned = Op::Symbols(vec![("", 0x1000, 0x1000)], vec![(0x1000, 4, b't', 1, "a")], (0, 0));
    let mut broken = Broken::new(&[owned], layout);
    let heap_len = broken.number(broken.chunk(b"KSYM", 0).0 + 64 + 40, 4);
    let offset = broken.body(b"KSYM", 0, 48 + 16, heap_len + 1, 4);
    out.push(("symbol-owner-no-name", broken, Expect::Damage(vec![("malformed", offset)])));
    out
}
