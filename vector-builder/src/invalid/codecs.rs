//! Codecs and filters of event chunks.

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::cases::{self, Maker};
use crate::model::{Layout, Op};

pub fn codecs(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    let mut filtered = Broken::new(&cases::many(m), Layout { codec: 1, ..layout });
    let offset = filtered.body(b"EVNT", 0, 40, 1 << 20, 4);
    out.push(("filter-outside", filtered, Expect::Unreadable("malformed", offset)));
    let mut filtered = Broken::new(&cases::many(m), Layout { codec: 1, ..layout });
    let offset = filtered.body(b"EVNT", 0, 68, 90, 4);
    out.push(("filter-in-prefix", filtered, Expect::Unreadable("malformed", offset)));
    let mut filtered = Broken::new(&cases::many(m), Layout { codec: 1, ..layout });
    let offset = filtered.header(b"EVNT", 0, 13, 0x21, 1) + 13;
    out.push(("unknown-filter", filtered, Expect::Unreadable("unknown-codec", offset)));
    let mut plain = Broken::new(&cases::many(m), layout);
    let offset = plain.header(b"EVNT", 0, 13, 0x10, 1) + 13;
    out.push(("filter-without-codec", plain, Expect::Unreadable("unknown-codec", offset)));
    let mut short = Broken::new(&cases::many(m), Layout { codec: 1, ..layout });
    let (start, _) = short.chunk(b"EVNT", 0);
    let raw_len = short.number(start + 32, 8);
    let offset = short.header(b"EVNT", 0, 32, raw_len + 1, 8) + 64;
    out.push(("decoded-length", short, Expect::Unreadable("codec", offset)));
    // Nothing is stored behind the prefix, and nothing is to decode: no block of LZ4.
    let mut empty = Broken::new(&[Op::Meta(vec![("key", b"value")])], layout);
    let (start, _) = empty.chunk(b"META", 0);
    let len = empty.number(start + 24, 8);
    empty.header(b"META", 0, 52, len, 4);
    let offset = empty.header(b"META", 0, 13, 1, 1) + 64;
    out.push(("codec-empty", empty, Expect::Damage(vec![("codec", offset)])));
    for (name, offset) in [("codec-lz4-offset-0", 0), ("codec-lz4-before-begin", 2)] {
        out.push(match_at(name, offset, layout));
    }
    out.extend(filters_alone(layout));
    out
}

/// A filter without a codec: not stored as it is, so the two lengths may differ, and the lengths are checked first.
fn filters_alone(layout: Layout) -> Vec<Defect> {
    let cases = [
        ("filter-alone-length", 0, 77, "unknown-codec", 13),
        ("filter-alone-too-long", 0, 1 << 30, "limit-exceeded", 0),
        ("filter-alone-below-prefix", 4, 3, "malformed", 0),
    ];
    let defect = |(name, prefix_len, raw_len, code, at)| {
        let mut file = Broken::new(&[Op::Meta(vec![("key", b"value")])], layout);
        file.header(b"META", 0, 52, prefix_len, 4);
        file.header(b"META", 0, 32, raw_len, 8);
        let offset = file.header(b"META", 0, 13, 0x10, 1) + at;
        (name, file, Expect::Damage(vec![(code, offset)]))
    };
    cases.map(defect).into()
}

/// A block of LZ4: a literal, a match of 4 bytes that begins `distance` bytes before it, and 5 literals.
fn match_at(name: &'static str, distance: u8, layout: Layout) -> Defect {
    let block = [0x10, 0, distance, 0, 0x50, 0, 0, 0, 0, 0];
    let mut file = Broken::new(&[Op::Meta(vec![("key", &[0; 8])])], layout);
    let (start, _) = file.chunk(b"META", 0);
    file.file.bytes[start + 64 + 12..][..block.len()].copy_from_slice(&block);
    file.header(b"META", 0, 52, 12, 4);
    file.header(b"META", 0, 24, 12 + block.len() as u64, 8);
    file.header(b"META", 0, 32, 12 + 10, 8);
    let offset = file.header(b"META", 0, 13, 1, 1) + 64;
    (name, file, Expect::Damage(vec![("codec", offset)]))
}
