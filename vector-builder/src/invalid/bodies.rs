//! Bodies without events: heads, tables and heaps of every kind, keys and texts.

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::bytes::Bytes;
use crate::cases::Maker;
use crate::classes::KMALLOC;
use crate::model::{Layout, Op};
use crate::schema::schema;

/// Kinds with the length of their heads.
const KINDS: [(&[u8; 4], usize); 10] = [
    (b"SCHM", 40),
    (b"CLOK", 12),
    (b"META", 12),
    (b"FILE", 40),
    (b"KSYM", 48),
    (b"TASK", 16),
    (b"STAT", 16),
    (b"LINE", 16),
    (b"CGRP", 16),
    (b"SUMS", 16),
];

/// Tables with the length of their rows.
const TABLES: [(&[u8; 4], usize); 5] =
    [(b"TASK", 32), (b"STAT", 104), (b"LINE", 32), (b"CGRP", 32), (b"SUMS", 64)];

pub fn bodies(m: Maker, layout: Layout) -> Vec<Defect> {
    let layout = Layout { index: false, trailer: false, ..layout };
    let mut out = heads(layout);
    out.extend(rows(layout));
    out.extend(tables(m, layout));
    out.extend(trailers(layout));
    out.extend(texts(layout));
    out
}

/// One chunk of each kind with the same defect: the head is too short or too long, or is not all there. There are no
/// rows, pairs, names and contents that could be wrong instead.
fn heads(layout: Layout) -> Vec<Defect> {
    let mut head = Bytes::new(layout.big);
    head.u32(40).fill(0, 32);
    for len in [44, 32, 16, 8] {
        head.number(len, 2);
    }
    let ops = [
        Op::Unknown(*b"SCHM", 1, head.data.leak()),
        Op::Clock("", false, true),
        Op::Meta(vec![]),
        Op::File("", b"", None),
        Op::Symbols(vec![], vec![], (0, 0)),
        Op::Tasks(vec![]),
        Op::Stats(vec![]),
        Op::Lines(vec![]),
        Op::Cgroups(vec![]),
        Op::Sums(vec![]),
    ];
    let each = |name, code, change: &dyn Fn(&mut Broken, &[u8; 4], usize) -> u64| {
        let mut broken = Broken::new(&ops, layout);
        let damages = KINDS.map(|(kind, len)| (code, change(&mut broken, kind, len)));
        (name, broken, Expect::Damage(damages.into()))
    };
    vec![
        each("heads-too-short", "malformed", &|b, kind, len| b.body(kind, 0, 0, len as u64 - 1, 4)),
        each("heads-behind-body", "malformed", &|b, kind, len| b.body(kind, 0, 0, len as u64 + 1, 4)),
        each("heads-cut", "truncated", &|b, kind, len| b.resize(kind, 0, len - 4) + 64),
    ]
}

/// Tables of one row each: the length of the row, their count, and the length of the heap.
fn rows(layout: Layout) -> Vec<Defect> {
    let ops = [
        Op::Tasks(vec![(0, 42, 42, "sh")]),
        Op::Stats(vec![(0, 0, [Some(1); 11])]),
        Op::Lines(vec![(1, "", "", 1, 0)]),
        Op::Cgroups(vec![(0, 17, 42, 0, "")]),
        Op::Sums(vec![([5, 6], 1, "", 1, [Some(1); 3])]),
    ];
    let each = |name, code, at, value: &dyn Fn(usize) -> u64, further: &dyn Fn(usize) -> usize| {
        let mut broken = Broken::new(&ops, layout);
        let damages =
            TABLES.map(|(kind, len)| (code, broken.body(kind, 0, at, value(len), 4) + further(len) as u64));
        (name, broken, Expect::Damage(damages.into()))
    };
    vec![
        each("rows-too-short", "malformed", 4, &|len| len as u64 - 1, &|_| 0),
        each("rows-behind-body", "truncated", 8, &|_| 50, &|_| 16),
        each("heaps-behind-body", "truncated", 12, &|_| 5, &|len| 16 + len),
    ]
}

/// Each table of SCHM and KSYM ends behind the body, in a chunk of its own.
fn tables(m: Maker, layout: Layout) -> Vec<Defect> {
    let body: &[u8] = schema(&[&KMALLOC], 0, &layout).leak();
    let symbols =
        Op::Symbols(vec![("nfs", m.address(0), 0x1000)], vec![(m.address(0), 4, b't', 1, "open")], (0, 0));
    let each = |name, kind, op: Op, places: &[(usize, u64)]| {
        let mut broken = Broken::new(&vec![op; places.len()], layout);
        let damages = places
            .iter()
            .enumerate()
            .map(|(nth, &(at, start))| ("truncated", broken.body(kind, nth, at, 9_999, 4) + start));
        let damages = damages.collect();
        (name, broken, Expect::Damage(damages))
    };
    // The head, a class of ten fields, three shapes.
    let (fields, shapes) = (40 + 44, 40 + 44 + 10 * 32);
    let places = [(12, 40), (16, fields), (20, shapes), (24, shapes + 3 * 16)];
    vec![
        each("schema-tables-behind-body", b"SCHM", Op::Unknown(*b"SCHM", 1, body), &places),
        each("symbol-tables-behind-body", b"KSYM", symbols, &[(4, 48), (12, 48 + 24), (40, 48 + 24 + 16)]),
    ]
}

/// The head of a trailer: the file is not finished.
fn trailers(layout: Layout) -> Vec<Defect> {
    let layout = Layout { trailer: true, ..layout };
    let each = |name, code, change: &dyn Fn(&mut Broken) -> u64| {
        let mut broken = Broken::new(&[Op::Meta(vec![("key", b"value")])], layout);
        let offset = change(&mut broken);
        (name, broken, Expect::Ended(vec![(code, offset)], false))
    };
    vec![
        each("trailer-head-behind-body", "malformed", &|b| b.body(b"TRLR", 0, 0, 41, 4)),
        each("trailer-head-cut", "truncated", &|b| b.resize(b"TRLR", 0, 36) + 64),
    ]
}

/// Texts that are not UTF-8, where they must be and where they need not; a string outside of the heap.
fn texts(layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    // A character that the key ends in, and one whose second byte is a letter.
    for (name, key) in [("meta-key-cut", *b"a\xc3"), ("meta-key-letter-inside", *b"\xc3A")] {
        let mut broken = Broken::new(&[Op::Meta(vec![("ab", b"value")])], layout);
        let offset = broken.body(b"META", 0, 12 + 8, key[0].into(), 1);
        broken.body(b"META", 0, 12 + 8 + 1, key[1].into(), 1);
        out.push((name, broken, Expect::Damage(vec![("malformed", offset)])));
    }
    let ops = [
        Op::Lines(vec![(1, "f", "g", 1, 0)]),
        Op::Cgroups(vec![(0, 17, 42, 0, "/")]),
        Op::Sums(vec![([5, 6], 1, "f", 1, [Some(1); 3])]),
    ];
    let mut bytes = Broken::new(&ops, layout);
    for (kind, heap) in [(b"LINE", 16 + 32), (b"LINE", 16 + 33), (b"CGRP", 16 + 32), (b"SUMS", 16 + 64)] {
        bytes.body(kind, 0, heap, 0xff, 1);
    }
    out.push(("texts-of-bytes", bytes, Expect::Missing));
    let mut file = Broken::new(&ops[..1], layout);
    let offset = file.body(b"LINE", 0, 16 + 20, 2, 4);
    out.push(("line-file", file, Expect::Damage(vec![("malformed", offset)])));
    out
}
