//! The file header: values at the edge, checks in their order, and its only copy.

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::cases::Maker;
use crate::model::{Layout, Op};

/// A file without an end, which is as short as can be.
fn small(m: Maker, layout: Layout) -> Broken {
    let layout = Layout { index: false, trailer: false, ..layout };
    Broken::new(&[Op::Event(0, m.kmalloc(10, 0x40, 8))], layout)
}

pub fn headers(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    let mut add = |name, change: &dyn Fn(&mut Broken), code, offset| {
        let mut broken = small(m, layout);
        change(&mut broken);
        out.push((name, broken, Expect::Refused(code, offset)));
    };
    // The header and its copy have the same fault.
    let both = |fields: &'static [(usize, u64, usize)]| {
        move |b: &mut Broken| fields.iter().for_each(|&(at, value, len)| b.file_header(at, value, len))
    };
    add("byte-order-last-byte", &both(&[(8, 0x0202_0304, 4)]), "byte-order-mark", 8);
    add("major-version-0", &both(&[(12, 0, 2)]), "major-version", 12);
    // Of two faults the first check finds one.
    add("order-version-length", &both(&[(12, 2, 2), (16, 32, 4)]), "major-version", 12);
    add("order-incompatible-long", &both(&[(20, 2, 4), (30, 5, 1)]), "incompatible-features", 20);
    add("order-long-page-shift", &both(&[(30, 5, 1), (34, 31, 1)]), "malformed", 30);
    let unstamped = |b: &mut Broken| [0, 128].into_iter().for_each(|start| b.put(start + 20, 1, 4));
    add("order-header-checksum-incompatible", &unstamped, "checksum", 0);
    let short = |b: &mut Broken| {
        b.put(8, 5, 4);
        b.file.bytes.truncate(40);
    };
    add("order-short-byte-order", &short, "truncated", 0);
    add("header-too-long", &|b| b.lengthen_header(65_600), "malformed", 16);
    // The copy's length is not beyond the end from the start of the file, but from its own.
    let behind = |b: &mut Broken| {
        let len = b.file.bytes.len() as u64;
        b.put(128 + 16, len, 4);
        b.seal(128);
        b.stamp(64, 192);
        b.file.bytes[41] ^= 1;
    };
    add("header-copy-behind-the-end", &behind, "checksum", 0);
    out.extend(only_copy(m, layout));
    out.push(inside(layout));
    out
}

/// The header is damaged, and the chunk of its only copy too: the copy is used, and both are reported.
fn only_copy(m: Maker, layout: Layout) -> Vec<Defect> {
    let each = |name, change: &dyn Fn(&mut Broken), damage| {
        let mut broken = small(m, layout);
        broken.file.bytes[41] ^= 1;
        change(&mut broken);
        (name, broken, Expect::Damage(vec![("checksum", 0), damage]))
    };
    let put = |at: usize, value, len| {
        move |b: &mut Broken| {
            b.put(64 + at, value, len);
            b.seal(64);
        }
    };
    vec![
        each("only-copy-header-checksum", &|b| b.file.bytes[64 + 60] ^= 1, ("not-a-chunk", 64)),
        each("only-copy-body-checksum", &put(48, 0, 4), ("checksum", 128)),
        each("only-copy-codec", &put(13, 1, 1), ("malformed", 64)),
    ]
}

/// The header is damaged, and a copy of it stands in the body of another chunk, not at a multiple of 64.
fn inside(layout: Layout) -> Defect {
    let mut broken = Broken::new(&[Op::Meta(vec![("key", &[0; 128])])], layout);
    let (start, end) = broken.chunk(b"META", 0);
    broken.file.bytes.copy_within(64..192, start + 64 + 12 + 8 + 3);
    broken.stamp(start, end);
    broken.put(64 + 8, u64::from_le_bytes(*b"xOLD\0\0\0\0"), 4);
    broken.stamp(64, 192);
    broken.file.bytes[41] ^= 1;
    ("header-copy-inside-chunk", broken, Expect::Refused("checksum", 0))
}
