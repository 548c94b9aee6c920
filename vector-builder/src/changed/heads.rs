//! Heads and rows that differ from those of other writers only in what means nothing.

use super::{Changed, built};
use crate::broken::Broken;
use crate::cases::Maker;
use crate::model::{Layout, Op};

pub fn heads(m: Maker, layout: Layout) -> Vec<(&'static str, Changed)> {
    vec![
        ("longest-header", longest_header(m, layout)),
        ("body-versions", body_versions(m, layout)),
        ("event-bytes", event_bytes(m, layout)),
        ("trailing-heaps", trailing_heaps(layout)),
        ("reserved", reserved(m, layout)),
        ("bytes-behind", bytes_behind(m, layout)),
    ]
}

/// Chunks of all kinds that tools and writers add, a symbol and an event.
fn all_kinds(m: Maker) -> Vec<Op> {
    let address = m.address(0x100);
    vec![
        Op::Clock("mono", false, true),
        Op::Meta(vec![("key", b"value")]),
        Op::File("name", b"contents", Some((5, 6))),
        Op::Symbols(vec![("nfs", address, 0x1000)], vec![(address, 4, b't', 1, "open")], (0, 0)),
        Op::Tasks(vec![(0, 42, 42, "sh")]),
        Op::Stats(vec![(0, 0, [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0].map(|n| (n > 0).then_some(n)))]),
        Op::Lines(vec![(address, "open", "fs/open.c", 7, 0)]),
        Op::Cgroups(vec![(0, 17, 42, 0, "/a")]),
        Op::Sums(vec![([5, 6], address, "open", 1, [Some(1), None, Some(3)])]),
        Op::Event(0, m.kmalloc(10, 0x40, 8)),
    ]
}

/// A header of 65,536 bytes.
fn longest_header(m: Maker, layout: Layout) -> Changed {
    let (mut file, expected) = built(&[Op::Event(0, m.kmalloc(10, 0x40, 8))], layout);
    file.lengthen_header(65_536);
    (file, expected)
}

/// A later minor version may count up the version of each body.
fn body_versions(m: Maker, layout: Layout) -> Changed {
    let (mut file, expected) = built(&all_kinds(m), layout);
    for (start, end) in file.file.chunks.iter().map(|c| (c.offset, c.end)).collect::<Vec<_>>() {
        file.put(start + 14, 1, 2);
        file.stamp(start, end);
    }
    (file, expected)
}

/// A trailer with another number of bytes in event chunks: no reader checks it.
fn event_bytes(m: Maker, layout: Layout) -> Changed {
    let layout = Layout { trailer: true, ..layout };
    let (mut file, expected) = built(&[Op::Event(0, m.kmalloc(10, 0x40, 8))], layout);
    file.body(b"TRLR", 0, 24, 7, 8);
    (file, expected)
}

/// Heaps of tables whose rows have no strings.
fn trailing_heaps(layout: Layout) -> Changed {
    let ops = [Op::Tasks(vec![(0, 42, 42, "sh")]), Op::Stats(vec![(0, 0, [None; 11])])];
    let (mut file, expected) = built(&ops, layout);
    for kind in [b"TASK", b"STAT"] {
        longer(&mut file, kind, 4);
        file.body(kind, 0, 12, 4, 4);
    }
    (file, expected)
}

/// Every reserved field is 0xff.
fn reserved(m: Maker, layout: Layout) -> Changed {
    let (mut file, expected) = built(&all_kinds(m), layout);
    for at in [36, 56] {
        file.file_header(at, u64::MAX, 4);
    }
    for (kind, at, len) in [
        (b"SCHM", 40 + 44 + 27, 1),
        (b"SCHM", 40 + 44 + 30, 2),
        (b"CLOK", 6, 2),
        (b"FILE", 36, 4),
        (b"KSYM", 44, 4),
        (b"KSYM", 48 + 24 + 14, 2),
        (b"STAT", 16 + 12, 4),
        (b"LINE", 16 + 30, 2),
        (b"SUMS", 16 + 60, 4),
        (b"EVNT", 84, 4),
    ] {
        file.body(kind, 0, at, u64::MAX, len);
    }
    (file, expected)
}

/// Bytes behind the last part of each body.
fn bytes_behind(m: Maker, layout: Layout) -> Changed {
    let (mut file, expected) = built(&all_kinds(m), layout);
    for kind in
        [b"SCHM", b"CLOK", b"META", b"FILE", b"KSYM", b"TASK", b"STAT", b"LINE", b"CGRP", b"SUMS", b"EVNT"]
    {
        longer(&mut file, kind, 9);
    }
    (file, expected)
}

/// Puts bytes behind a body.
fn longer(file: &mut Broken, kind: &[u8; 4], len: usize) {
    let mut rest = file.rest(kind, 0);
    rest.resize(rest.len() + len, 0xee);
    file.store(kind, 0, 0, &rest);
    let (offset, _) = file.chunk(kind, 0);
    let body_len = file.number(offset + 24, 8);
    file.header(kind, 0, 32, body_len, 8);
}
