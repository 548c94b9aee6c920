//! Arrays that end otherwise than their writer's: cut at the end of a record, with a NUL inside.

use super::Changed;
use crate::broken::Broken;
use crate::cases::Maker;
use crate::json;
use crate::model::{Event, Layout, Loss, Op, Value};
use crate::odd_classes::DYNAMIC;

/// Length of a SubBuffersHead.
const RAW_HEAD: usize = 72;

/// Contents of `__data_loc` and `__rel_loc` that reach, or start, behind the record.
pub fn cut_arrays(m: Maker, layout: Layout) -> Changed {
    let words = [7u64, 9].iter().flat_map(|n| crate::bytes::number(*n, 4, m.big)).collect::<Vec<u8>>();
    let event = |time| Event {
        time,
        class: &DYNAMIC,
        context: [1, 0, 42],
        values: vec![Value::Array(b"abcd".to_vec()), Value::Array(words.clone())],
    };
    let ops = [Op::SubBuffer(0, vec![event(10), event(20), event(30)], Loss::default())];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let mut expected = json::expected(&ops, &file.file, &layout);
    // Each event: its word, then 28 bytes: text and words are at 16 and 20 of them, their locators at 8 and 12.
    let record = |n: usize| RAW_HEAD + 8 + m.long + n * 32 + 4;
    let mut locators = |n: usize, text: (u64, u64), words: (u64, u64)| {
        file.body(b"RAWP", 0, record(n) + 8, text.1 << 16 | text.0, 4);
        file.body(b"RAWP", 0, record(n) + 12, words.1 << 16 | words.0, 4);
    };
    locators(0, (16, 100), (7, 100));
    locators(1, (28, 4), (0xffff, 0xffff));
    locators(2, (29, 1), (11, 6));
    let behind: Vec<u8> = [&b"abcd"[..], &words].concat();
    let values = [(&behind[..], &words[3..]), (b"", b""), (b"", &words[7..])];
    for (n, (text, words)) in values.into_iter().enumerate() {
        expected["events"][n]["fields"]["text"] = json::hex(text);
        expected["events"][n]["fields"]["words"] = json::hex(words);
    }
    (file, expected)
}

/// A locator has 4 bytes, whatever the size of its field is: the record ends behind that of `words`.
pub fn locator_sizes(layout: Layout) -> Changed {
    let event = |time, text: &[u8]| Event {
        time,
        class: &DYNAMIC,
        context: [1, 0, 42],
        values: vec![Value::Array(text.to_vec()), Value::Array(vec![])],
    };
    let ops = [Op::SubBuffer(0, vec![event(10, b""), event(20, b"abcd")], Loss::default())];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let mut expected = json::expected(&ops, &file.file, &layout);
    for (field, size) in [(4, 0), (5, 8)] {
        file.set_field((0, field), 20, size, 4);
        expected["classes"][0]["fields"][field][3] = size.into();
    }
    (file, expected)
}

/// A fixed array of plain `char` that a writer stored with a NUL inside: the stored bytes are its value.
pub fn nul_inside(m: Maker, layout: Layout) -> Changed {
    let ops = [Op::Event(0, m.arrays(10, "ab cd", &[1])), Op::Event(0, m.arrays(20, "ab_cd", &[2]))];
    let mut file = Broken::new(&ops, Layout { index: false, ..layout });
    let mut expected = json::expected(&ops, &file.file, &layout);
    let (start, end) = file.chunk(b"EVNT", 0);
    let at = file.file.bytes[start..end].windows(5).position(|w| w == b"ab cd").expect("the text");
    file.body(b"EVNT", 0, at - 64 + 2, 0, 1);
    expected["events"][0]["fields"]["comm"] = json::hex(b"ab\0cd");
    (file, expected)
}
