//! Event chunks.

use super::{Defect, Expect, base_ops};
use crate::broken::Broken;
use crate::bytes::crc32;
use crate::cases::Maker;
use crate::changed::set_class_65;
use crate::model::{Layout, Loss, Op};

/// Offset of the first descriptor in the body of the `nth` chunk.
fn descriptor(b: &Broken, nth: usize) -> usize {
    let (offset, _) = b.chunk(b"EVNT", nth);
    b.number(offset + 64 + b.place(nth, 60), 4) as usize
}

pub fn events(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    let mut add = |name, change: &dyn Fn(&mut Broken) -> u64, code| {
        let mut broken = Broken::new(&base_ops(m), layout);
        let offset = change(&mut broken);
        out.push((name, broken, Expect::Unreadable(code, offset)));
    };
    // The first event chunk: records of CPU 0; the second: of CPU 4, with arrays and a payload.
    let head = |at, value, len| move |b: &mut Broken| b.body(b"EVNT", 0, at, value, len);
    let second = 1;
    add(
        "events-body-checksum",
        &|b| {
            let (offset, end) = b.chunk(b"EVNT", 0);
            let crc = b.number(offset + 48, 4) ^ 1;
            b.stamp(offset, end);
            b.put(offset + 48, crc, 4);
            let crc = crc32(&b.file.bytes[offset..offset + 60]);
            b.put(offset + 60, crc.into(), 4);
            offset as u64 + 64
        },
        "checksum",
    );
    add("events-head", &head(0, 95, 4), "malformed");
    add("events-stride", &head(80, 24, 2), "malformed");
    add("events-too-many", &head(40, 0xffff_ffff, 4), "limit-exceeded");
    add("events-too-many-descriptors", &head(44, 65_521, 4), "limit-exceeded");
    add("events-records-outside", &|b| b.body(b"EVNT", 0, 68, 1 << 20, 4) + (1 << 20), "truncated");
    add("events-contexts-outside", &|b| b.body(b"EVNT", 0, 64, 1 << 20, 4) + (1 << 20), "truncated");
    add(
        "events-heap-outside",
        &|b| {
            let at = b.place(0, 72) as u64;
            b.body(b"EVNT", 0, 76, 1 << 20, 4) + at
        },
        "truncated",
    );
    add("events-descriptors-outside", &|b| b.body(b"EVNT", 0, 60, 1 << 20, 4) + (1 << 20), "truncated");
    add("events-descriptor-offset", &|b| b.body(b"EVNT", 0, b.place(0, 60), 1 << 20, 4), "malformed");
    add(
        "events-unknown-shape",
        &|b| {
            let at = descriptor(b, 0);
            b.body(b"EVNT", 0, at, 999, 2)
        },
        "malformed",
    );
    add(
        "events-short-descriptor",
        &|b| {
            let at = descriptor(b, 0);
            b.body(b"EVNT", 0, at + 2, 3, 2)
        },
        "malformed",
    );
    add("events-context-stride", &head(82, 4, 2), "malformed");
    add("events-no-context", &|b| b.body(b"EVNT", 0, b.place(0, 68) + 6, 99, 2), "malformed");
    add("events-no-descriptor", &|b| b.body(b"EVNT", 0, b.place(0, 68) + 4, 99, 2), "malformed");
    add("events-first-time", &|b| b.body(b"EVNT", 0, b.place(0, 68), 1, 4), "malformed");
    add(
        "events-times-fall",
        &|b| {
            let stride = 8 + m.long;
            b.body(b"EVNT", 0, b.place(0, 68) + stride, 0xffff, 4)
        },
        "malformed",
    );
    add("events-class-untold", &head(88, 0, 8), "malformed");
    add("events-last-time", &head(24, 7, 8), "malformed");
    add(
        "events-array-outside",
        &|b| {
            let at = descriptor(b, second);
            b.body(b"EVNT", second, at + 4, 1 << 20, 4)
        },
        "malformed",
    );
    add(
        "events-array-length",
        &|b| {
            let at = descriptor(b, second);
            let (offset, _) = b.chunk(b"EVNT", second);
            let array = b.place(second, 72) + b.number(offset + 64 + at + 4, 4) as usize;
            b.body(b"EVNT", second, array, 1 << 20, 4)
        },
        "malformed",
    );
    add(
        "events-descriptor-data",
        &|b| {
            let at = descriptor(b, 0);
            b.body(b"EVNT", 0, at + 2, 0xfff0, 2)
        },
        "malformed",
    );
    // No field of its class is in the context.
    add(
        "events-context-of-none",
        &|b| {
            let class = b.file.classes.iter().position(|c| c.name == "kmem_cache_free").unwrap_or(0);
            for (shape, field) in (0..3).flat_map(|shape| (1..4).map(move |field| (shape, field))) {
                b.set_slot((class, shape, field), (0, 1, 0, 0, 0));
            }
            // The third record of CPU 0 is the first of that class.
            b.body(b"EVNT", 0, b.place(0, 68) + 2 * (8 + m.long) + 6, 99, 2)
        },
        "malformed",
    );
    // The first of several tables that end behind the body gives the error.
    for (name, fields) in [
        ("events-contexts-first", &[(64, 1 << 20, 4), (76, 1 << 20, 4), (60, 1 << 19, 4)][..]),
        ("events-heap-first", &[(72, 1 << 20, 4), (60, 1 << 19, 4)]),
    ] {
        let change = |b: &mut Broken| {
            let put = fields.iter().map(|&(at, value, len)| b.body(b"EVNT", 0, at, value, len));
            put.last().unwrap_or(0) + (1 << 20)
        };
        add(name, &change, "truncated");
    }
    // Slots of descriptors are checked without records too.
    add(
        "events-context-stride-alone",
        &|b| {
            b.body(b"EVNT", 0, 40, 0, 4);
            b.body(b"EVNT", 0, 82, 4, 2)
        },
        "malformed",
    );
    // Both records have the second descriptor.
    add(
        "events-array-of-unused-descriptor",
        &|b| {
            let (offset, _) = b.chunk(b"EVNT", second);
            let (records, stride) = (b.place(second, 68), 8 + m.long);
            let value = b.number(offset + 64 + records + stride + 8, m.long);
            b.body(b"EVNT", second, records + 4, 1, 2);
            b.body(b"EVNT", second, records + 8, value, m.long);
            let at = descriptor(b, second);
            b.body(b"EVNT", second, at + 4, 1 << 20, 4)
        },
        "malformed",
    );
    if m.long == 8 {
        add(
            "events-payload-outside",
            &|b| {
                let at = b.place(second, 68) + 8 + m.long;
                b.body(b"EVNT", second, at + 8, 1 << 20, 8)
            },
            "malformed",
        );
    }
    // Of class 65 bit 1 must be set, and bit 0 is.
    let mut high = Broken::new(&[Op::Event(0, m.kmalloc(10, 0x40, 8))], Layout { index: false, ..layout });
    set_class_65(&mut high);
    let offset = high.chunk(b"EVNT", 0).0 as u64 + 64;
    out.push(("events-class-65-untold", high, Expect::Unreadable("malformed", offset)));
    // Between event and stack stands a chunk that cannot be read, of an interrupt.
    let mut interrupt = m.kmalloc(20, 0x40, 8);
    interrupt.context[0] = 8;
    let ops = [
        Op::Event(0, m.kmalloc(10, 0x40, 8)),
        Op::Flush(0),
        Op::Event(0, interrupt),
        Op::Flush(0),
        Op::Event(0, m.stack(30, 2)),
    ];
    let mut between = Broken::new(&ops, layout);
    let offset = between.body(b"EVNT", 1, 80, 99, 2);
    let stacks = serde_json::json!([[0, 1, null]]);
    out.push(("events-between", between, Expect::Stacks("malformed", offset, stacks)));
    // Between them stands one without events and, with the count of 0, without a loss.
    let ops = [
        Op::Event(0, m.kmalloc(10, 0x40, 8)),
        Op::Flush(0),
        Op::Lost(0, Loss { counted: 5, ..Loss::default() }),
        Op::Flush(0),
        Op::Event(0, m.stack(30, 2)),
    ];
    let mut between = Broken::new(&ops, Layout { index: false, ..layout });
    between.body(b"EVNT", 1, 8, 0, 8);
    let offset = between.body(b"EVNT", 1, 80, 99, 2);
    let stacks = serde_json::json!([[0, 1, 0]]);
    out.push(("events-between-none", between, Expect::Stacks("malformed", offset, stacks)));
    out
}
