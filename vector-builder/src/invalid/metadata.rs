//! Bodies of chunks without events, but for event classes.

use super::{Defect, Expect, base_ops};
use crate::broken::Broken;
use crate::cases::{self, Maker};
use crate::changed::symbols as numbers;
use crate::model::{Layout, Op};

pub fn metadata(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    let mut add = |name, kind: &[u8; 4], at, value, len, code, further| {
        let mut broken = Broken::new(&base_ops(m), layout);
        let offset = broken.body(kind, 0, at, value, len) + further;
        out.push((name, broken, Expect::Damage(vec![(code, offset)])));
    };
    add("clock-head", b"CLOK", 0, 11, 4, "malformed", 0);
    add("clock-name", b"CLOK", 8, 5, 4, "malformed", 0);
    add("clock-not-utf8", b"CLOK", 12, 0xff, 1, "malformed", 0);
    add("meta-head", b"META", 0, 11, 4, "malformed", 0);
    add("meta-pair-length", b"META", 4, 7, 4, "malformed", 0);
    add("meta-count", b"META", 8, 99, 4, "malformed", 0);
    add("meta-key", b"META", 12, 1 << 20, 4, "malformed", 0);
    add("meta-value", b"META", 16, 1 << 20, 4, "malformed", 0);
    add("file-head", b"FILE", 0, 39, 4, "malformed", 0);
    add("file-contents", b"FILE", 8, 1 << 20, 8, "malformed", 0);
    add("file-name", b"FILE", 40, 0xff, 1, "malformed", 0);
    add("task-row-length", b"TASK", 4, 31, 4, "malformed", 0);
    add("task-rows", b"TASK", 8, 9, 4, "truncated", 16);
    add("stat-rows", b"STAT", 8, 3, 4, "truncated", 16);
    add("meta-head-long", b"META", 0, 1 << 20, 4, "malformed", 0);
    add("meta-key-not-utf8", b"META", 12 + 8, 0xff, 1, "malformed", 0);
    add("task-heap", b"TASK", 12, 1 << 20, 4, "truncated", 16 + 3 * 32);
    // The head, two owners, a block; in the heap two names of owners, then symbols of 12, 15, 9, 12 bytes.
    let (owners, blocks, heap) = (48, 96, 112);
    add("symbol-count", b"KSYM", 8, 7, 4, "malformed", 0);
    add("symbol-block-length", b"KSYM", 36, 4, 4, "malformed", 0);
    add("symbol-owner-length", b"KSYM", 32, 23, 4, "malformed", 0);
    add("symbol-owner-name", b"KSYM", owners + 16, 1 << 20, 4, "malformed", 0);
    add("symbol-block-outside", b"KSYM", blocks + 8, 1 << 20, 4, "malformed", 0);
    add("symbol-block-empty", b"KSYM", blocks + 12, 0, 2, "malformed", 0);
    add("symbol-name", b"KSYM", heap + 6 + 5, 127, 1, "malformed", 0);
    add("symbol-shared", b"KSYM", heap + 6 + 12 + 5, 7, 1, "malformed", 0);
    add("symbol-owner", b"KSYM", heap + 6 + 48 + 1, 3, 1, "malformed", 0);
    for (name, kind, at) in [
        ("line-function", b"LINE", 16 + 8),
        ("cgroup-path", b"CGRP", 16 + 24),
        ("sums-function", b"SUMS", 16 + 48),
    ] {
        let mut broken = Broken::new(&cases::added(m), layout);
        let offset = broken.body(kind, 0, at, 1 << 20, 4);
        out.push((name, broken, Expect::Damage(vec![("malformed", offset)])));
    }
    for (name, kind, at, row_len) in [("task-no-rows", b"TASK", 8, 31), ("meta-no-pairs", b"META", 8, 7)] {
        let mut broken = Broken::new(&base_ops(m), layout);
        broken.body(kind, 0, at, 0, 4);
        let offset = broken.body(kind, 0, 4, row_len, 4);
        out.push((name, broken, Expect::Damage(vec![("malformed", offset)])));
    }
    for (name, at, row_len) in [("symbol-no-owners-length", 4, 23), ("symbol-no-blocks-length", 12, 15)] {
        let mut broken = Broken::new(&[Op::Symbols(vec![], vec![], (0, 0))], layout);
        assert_eq!(broken.number(broken.chunk(b"KSYM", 0).0 + 64 + at, 4), 0);
        let offset = broken.body(b"KSYM", 0, if at == 4 { 32 } else { 36 }, row_len, 4);
        out.push((name, broken, Expect::Damage(vec![("malformed", offset)])));
    }
    out.extend(symbols(m, layout));
    for (name, len, last) in [("symbol-number-65-bits", 10, 2), ("symbol-number-11-bytes", 11, 0)] {
        let mut broken = Broken::new(&[Op::Symbols(vec![], numbers::symbols(m), (0, 0))], layout);
        numbers::put_size(&mut broken, 0, len, last);
        let offset = broken.chunk(b"KSYM", 0).0 as u64 + 64;
        out.push((name, broken, Expect::Damage(vec![("malformed", offset)])));
    }
    // No contents: the bytes that fill up behind the name are missing.
    let mut empty = Broken::new(&[Op::File("name", b"", None)], layout);
    let offset = empty.resize(b"FILE", 0, 40 + 4) + 64;
    out.push(("file-no-contents", empty, Expect::Damage(vec![("malformed", offset)])));
    // The second of two symbols is behind the last address: the head, a block, 6 bytes of the first symbol.
    let last = |address, name| (address, 1, b't', 0, name);
    let rows = vec![last(u64::MAX - 4, "a"), last(u64::MAX - 2, "b")];
    let mut symbols = Broken::new(&[Op::Symbols(vec![], rows, (0, 0))], layout);
    let offset = symbols.body(b"KSYM", 0, 48 + 16 + 6 + 1, 5, 1);
    out.push(("symbol-address-wraps", symbols, Expect::Damage(vec![("malformed", offset)])));
    for (name, clock) in [
        ("two-clocks", ("local", false, false)),
        ("two-clocks-name", ("local", false, true)),
        ("two-clocks-unit", ("mono", true, true)),
        ("two-clocks-comparable", ("mono", false, false)),
    ] {
        let mut ops = base_ops(m);
        ops.push(Op::Clock(clock.0, clock.1, clock.2));
        let clocks = Broken::new(&ops, layout);
        let (second, _) = clocks.chunk(b"CLOK", 1);
        out.push((name, clocks, Expect::Damage(vec![("malformed", second as u64 + 64)])));
    }
    // A surrogate, a character in too many bytes, one above the last.
    for (name, bytes) in [
        ("meta-key-surrogate", &[0xed, 0xa0, 0x80][..]),
        ("meta-key-overlong", &[0xc0, 0x80]),
        ("meta-key-above", &[0xf4, 0x90, 0x80, 0x80]),
    ] {
        let mut broken = Broken::new(&base_ops(m), layout);
        let mut offset = 0;
        for (at, byte) in (12 + 8..).zip(bytes) {
            offset = broken.body(b"META", 0, at, *byte, 1);
        }
        out.push((name, broken, Expect::Damage(vec![("malformed", offset)])));
    }
    out
}

/// Counters of one CPU more than readers take, in two chunks. Rows that are passed over, and CPUs with events, do not count.
pub fn too_many_cpus() -> Defect {
    let none = [None; 11];
    let events = Op::Event(90_000, Maker { big: false, long: 8 }.kmalloc(10, 0x40, 8));
    let ops = [
        events,
        Op::Stats((0..16_384).map(|cpu| (cpu, 2, none)).collect()),
        Op::Stats(vec![(16_384, 77, none), (0, 1, none)]),
        Op::Stats(vec![(16_384, 2, none)]),
    ];
    let broken = Broken::new(&ops, Layout { codec: 1, ..Layout::plain(false, 8) });
    let offset = broken.chunk(b"STAT", 2).0 as u64 + 64;
    ("stat-too-many-cpus", broken, Expect::Damage(vec![("limit-exceeded", offset)]))
}

/// Symbols in two blocks: a head of 56 bytes, two rows of 24.
fn symbols(m: Maker, layout: Layout) -> Vec<Defect> {
    static LONG: [u8; 1_025] = [b'x'; 1_025];
    let base = m.address(0);
    let layout = Layout { padded: true, ..layout };
    let mut out = Vec::new();
    let mut add = |name, names: [&'static str; 3], change: &dyn Fn(&mut Broken) -> u64| {
        let rows = (0u64..).zip(names).map(|(i, name)| (base + 0x100 * i, 0x100, b't', 0, name)).collect();
        let mut broken = Broken::new(&[Op::Symbols(vec![], rows, (0, 0))], layout);
        let offset = change(&mut broken);
        out.push((name, broken, Expect::Damage(vec![("malformed", offset)])));
    };
    let (head, row) = (56, 24);
    let names = ["a", "b", "c"];
    add("symbol-first-address", names, &|b| b.body(b"KSYM", 0, head + 2 * row + 1, 1, 1));
    add("symbol-blocks-fall", names, &|b| b.body(b"KSYM", 0, head + row, base + 0x80, 8));
    add("symbol-blocks-overlap", names, &|b| b.body(b"KSYM", 0, head + row + 8, 0, 4));
    // The table of owners ends behind the body, and the length of the rows behind it is wrong.
    add("symbol-row-length-first", names, &|b| {
        b.body(b"KSYM", 0, 4, 1 << 20, 4);
        b.body(b"KSYM", 0, 36, 4, 4)
    });
    let long = std::str::from_utf8(&LONG).unwrap_or("");
    add("symbol-long-name", ["a", long, "c"], &|b| b.chunk(b"KSYM", 0).0 as u64 + 64);
    let rows = vec![(base, 0x100, b't', 1, "a")];
    let broken = Broken::new(&[Op::Symbols(vec![(long, base, 0x1000)], rows, (0, 0))], layout);
    let offset = broken.chunk(b"KSYM", 0).0 as u64 + 64;
    out.push(("symbol-long-owner", broken, Expect::Damage(vec![("malformed", offset)])));
    out
}
