//! Words of sub-buffers.

use super::Changed;
use crate::broken::Broken;
use crate::cases::Maker;
use crate::json;
use crate::kernel::record;
use crate::model::{End, How, Layout, Loss, Op};

/// Length of a SubBuffersHead.
const RAW_HEAD: usize = 72;

/// Lengths that are no multiple of 4, absolute times around the upper five bits.
pub fn words(m: Maker, layout: Layout) -> Changed {
    let plain = How::default();
    let (discards, absolute) = (How { discards: true, ..plain }, How { absolute: true, ..plain });
    let name = "a name that is long enough for an event of more than 112 bytes: its length stands in a word of its own..";
    let events = [m.page(1_000, 3, 0), m.free(1_040, 0x40, name), m.page(1_041, 4, 0)];
    let wraps = (1 << 59) - 10;
    let ops = [
        Op::SubBufferWith(0, vec![m.empty(100), m.empty(110)], Loss::default(), discards),
        Op::SubBufferWith(1, events.to_vec(), Loss::default(), plain),
        Op::SubBufferWith(2, vec![m.empty(1_000), m.empty(1_010)], Loss::default(), absolute),
        Op::SubBufferWith(3, vec![m.empty(wraps), m.empty(wraps + 20)], Loss::default(), absolute),
        Op::SubBufferWith(
            4,
            vec![m.empty(500), m.empty(600)],
            Loss::default(),
            How { end: End::Void, ..plain },
        ),
    ];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let expected = json::expected(&ops, &file.file, &layout);
    let data = RAW_HEAD + 8 + m.long;
    // An event of 8 bytes behind its word; then a discarded one, which counts 5 bytes and ends with the third word.
    file.body(b"RAWP", 0, data + 12 + 4, 5, 4);
    // The long event ends within its last word: record, word, and word before it.
    let (offset, _) = file.chunk(b"RAWP", 1);
    let second = data + 4 + record(&events[0], layout.big, m.long).len() + 4;
    let n = file.number(offset + 64 + second, 4);
    assert!(n > 112, "the event has a word for its length");
    file.body(b"RAWP", 1, second, n - 1, 4);
    // A time that steps back a little from the sub-buffer's is the clock's own; one that wraps is not.
    file.body(b"RAWP", 2, RAW_HEAD, 1_100, 8);
    // A filler without bytes, which the data end with.
    let word = if layout.big { 29 << 27 | 1 } else { 1 << 5 | 29 };
    file.body(b"RAWP", 4, data + 24, word, 4);
    file.body(b"RAWP", 4, data + 28, 4, 4);
    file.body(b"RAWP", 4, RAW_HEAD + 8, 32, m.long);
    (file, expected)
}
