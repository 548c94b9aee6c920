//! Heads of odd lengths, high numbers of classes, and ends of sub-buffers.

use serde_json::json;

use super::{Changed, built};
use crate::broken::Broken;
use crate::bytes::Bytes;
use crate::cases::Maker;
use crate::json;
use crate::model::{Layout, Loss, Op};

/// Heads whose lengths are not those of their padding: it ends at a multiple from the start of the body.
pub fn odd_heads(m: Maker, layout: Layout) -> Changed {
    let pairs: [(&str, &[u8]); 2] = [("key", b"value!"), ("k", b"")];
    let (name, contents) = ("allocinfo", b"allocinfo - version: 1.0\n");
    let mut meta = Bytes::new(m.big);
    meta.u32(13).u32(9).u32(pairs.len()).raw(&[0xee]);
    for (key, value) in pairs {
        meta.u32(key.len()).u32(value.len()).raw(&[0xee]).raw(key.as_bytes()).raw(value).align(4);
    }
    let mut file = Bytes::new(m.big);
    file.u32(44).u32(name.len()).number(contents.len() as u64, 8).fill(0, 44);
    file.raw(name.as_bytes()).align(8).raw(contents);
    let event = Op::Event(0, m.kmalloc(10, 0x40, 8));
    let built = [
        Op::Unknown(*b"META", 2, meta.data.leak()),
        Op::Unknown(*b"FILE", 2, file.data.leak()),
        event.clone(),
    ];
    let layout = Layout { index: false, ..layout };
    let file = Broken::new(&built, layout);
    let told = [Op::Meta(pairs.to_vec()), Op::File(name, contents, None), event];
    let expected = json::expected(&told, &file.file, &layout);
    (file, expected)
}

/// The only class is number 65: its bit in `classes` is bit 1.
pub fn class_65(m: Maker, layout: Layout) -> Changed {
    let ops = [Op::Event(0, m.kmalloc(1_000, 0x40, 100))];
    let (mut file, mut expected) = built(&ops, Layout { index: false, ..layout });
    set_class_65(&mut file);
    file.body(b"EVNT", 0, 88, 1 << 1, 8);
    expected["classes"][0]["number"] = json!(65);
    (file, expected)
}

/// Gives the only class of a file number 65, and leaves the bits of its events.
pub fn set_class_65(file: &mut Broken) {
    for nth in [0, 1] {
        file.body(b"SCHM", nth, 4, 65, 4);
        for shape in 0..3 {
            file.body(b"SCHM", nth, 40 + 44 + 10 * 32 + 16 * shape, 65, 4);
        }
    }
}

/// Bits of a commit word that mean nothing, and three bytes behind the last event.
pub fn commit_bits(m: Maker, layout: Layout) -> Changed {
    let ops = [
        Op::SubBuffer(0, vec![m.kmalloc(10, 0x40, 8), m.empty(11)], Loss::default()),
        Op::SubBuffer(1, vec![m.empty(12), m.empty(13)], Loss::default()),
    ];
    let (mut file, expected) = built(&ops, Layout { index: false, ..layout });
    let at = 72 + 8;
    let word = |nth| file.number(file.chunk(b"RAWP", nth).0 + 64 + at, m.long);
    let bits = 7 << 27 | if m.long == 8 { u64::MAX << 32 } else { 0 };
    let [first, second] = [word(0) | bits, word(1) + 3];
    file.body(b"RAWP", 0, at, first, m.long);
    file.body(b"RAWP", 1, at, second, m.long);
    (file, expected)
}
