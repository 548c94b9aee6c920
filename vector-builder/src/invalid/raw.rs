//! Sub-buffers.

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::cases::{self, Maker};
use crate::model::{Event, How, Layout, Loss, Op, Value};
use crate::odd_classes::DYNAMIC;

/// Length of a SubBuffersHead.
const RAW_HEAD: usize = 72;

pub fn raw(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    let mut raw = |name, change: &dyn Fn(&mut Broken) -> u64, code| {
        let mut broken = Broken::new(&cases::sub_buffers(m), layout);
        let offset = change(&mut broken);
        out.push((name, broken, Expect::Unreadable(code, offset)));
    };
    raw("raw-layout", &|b| b.body(b"RAWP", 0, 56, 5, 2), "malformed");
    raw("raw-count", &|b| b.body(b"RAWP", 0, 48, 9, 4), "malformed");
    raw("raw-events", &|b| b.body(b"RAWP", 0, 40, 4, 4), "malformed");
    raw(
        "raw-commit",
        &|b| b.body(b"RAWP", 0, RAW_HEAD + 8, 2_000, m.long) + RAW_HEAD as u64 + 8,
        "sub-buffer",
    );
    raw(
        "raw-event-header",
        &|b| {
            // An event of 112 bytes where 20 were committed.
            let data = RAW_HEAD + 8 + m.long;
            b.body(b"RAWP", 0, data, if layout.big { 28 << 27 } else { 28 }, 4);
            b.body(b"RAWP", 0, RAW_HEAD + 8, 20, m.long) + data as u64
        },
        "sub-buffer",
    );
    raw("raw-loss-untold", &|b| b.body(b"RAWP", 1, 4, 0, 4) + RAW_HEAD as u64 + 8, "malformed");
    raw("raw-loss-inside", &|b| loss_in_second(b, m.long), "malformed");
    raw(
        "raw-unknown-event",
        &|b| {
            let data = RAW_HEAD + 8 + m.long;
            b.body(b"RAWP", 0, data + 4, 999, 2) + data as u64
        },
        "unknown-event-id",
    );
    raw("raw-classes-missing", &|b| b.body(b"RAWP", 0, 60, 99, 4), "malformed");
    raw(
        "raw-class-limit",
        &|b| {
            let data = RAW_HEAD + 8 + m.long;
            b.body(b"RAWP", 0, 60, 0, 4) + data as u64
        },
        "unknown-event-id",
    );
    raw("raw-classes-untold", &|b| b.body(b"RAWP", 0, 64, 0, 8), "malformed");
    let data = RAW_HEAD + 8 + m.long;
    raw("raw-first-time", &|b| b.body(b"RAWP", 0, 16, 99, 8), "malformed");
    raw("raw-last-time", &|b| b.body(b"RAWP", 0, 24, 1 << 40, 8), "malformed");
    raw("raw-longer", &|b| b.resize(b"RAWP", 0, RAW_HEAD + 2 * 1024 + 8) + 64, "malformed");
    raw("raw-time-outside", &|b| b.body(b"RAWP", 0, 52, 1_020, 2), "malformed");
    raw("raw-commit-outside", &|b| b.body(b"RAWP", 0, 54, 1_022, 2), "malformed");
    let word = move |kind: u64, delta: u64| if layout.big { kind << 27 | delta } else { delta << 5 | kind };
    raw("raw-record-short", &|b| b.body(b"RAWP", 0, data, word(2, 0), 4) + data as u64, "sub-buffer");
    raw(
        "raw-record-without-id",
        &|b| {
            b.body(b"RAWP", 0, data + 4, 5, 4);
            b.body(b"RAWP", 0, data, word(0, 0), 4) + data as u64
        },
        "sub-buffer",
    );
    raw("raw-data-offset", &|b| b.body(b"RAWP", 0, 58, 1024, 2), "malformed");
    // The words behind these two are not within the data.
    for (name, first, len) in
        [("raw-second-word-outside", word(30, 0), 4), ("raw-filler-outside", word(29, 2), 8)]
    {
        let change = |b: &mut Broken| {
            b.body(b"RAWP", 0, RAW_HEAD + 8, len, m.long);
            b.body(b"RAWP", 0, data + 4, 100, 4);
            b.body(b"RAWP", 0, data, first, 4) + data as u64
        };
        raw(name, &change, "sub-buffer");
    }
    // An event of the first sub-buffer, and the length of the second one.
    raw(
        "raw-order",
        &|b| {
            b.body(b"RAWP", 0, RAW_HEAD + 1024 + 8, 2_000, m.long);
            b.body(b"RAWP", 0, data + 4, 999, 2) + data as u64
        },
        "unknown-event-id",
    );
    // A counted loss of none is no loss.
    raw(
        "raw-loss-of-none",
        &|b| {
            b.body(b"RAWP", 1, 4, 1, 4);
            b.body(b"RAWP", 1, 8, 0, 8) + RAW_HEAD as u64 + 8
        },
        "malformed",
    );
    // All fields of the class are scalars of role STACK: a record holds them all the same.
    raw(
        "raw-record-short-stack",
        &|b| {
            for nth in 0..b.file.chunks.iter().filter(|c| c.kind == *b"SCHM").count() {
                let (offset, _) = b.chunk(b"SCHM", nth);
                if b.number(offset + 64 + 4, 4) != 0 {
                    continue;
                }
                let classes = b.number(offset + 64 + 12, 4) as usize;
                for field in 4..10 {
                    b.body(b"SCHM", nth, 40 + 44 * classes + 32 * field + 28, 17, 2);
                }
            }
            b.body(b"RAWP", 0, data, word(2, 0), 4) + data as u64
        },
        "sub-buffer",
    );
    let mut small = |name, ops: &[Op], change: &dyn Fn(&mut Broken) -> u64, code| {
        let mut broken = Broken::new(ops, layout);
        let offset = change(&mut broken);
        out.push((name, broken, Expect::Unreadable(code, offset)));
    };
    let dynamic = Event {
        time: 10,
        class: &DYNAMIC,
        context: [1, 0, 42],
        values: vec![Value::Array(vec![]), Value::Array(vec![])],
    };
    // A locator has 4 bytes, whatever its size is: of 16 bytes of the record it has the last 2.
    small(
        "raw-locator-short",
        &[Op::SubBuffer(0, vec![dynamic], Loss::default())],
        &|b| {
            b.set_field((0, 5), 16, 14, 4);
            b.set_field((0, 5), 20, 0, 4);
            b.chunk(b"RAWP", 0).0 as u64 + 64 + data as u64
        },
        "sub-buffer",
    );
    let two = |time: u64| vec![m.empty(time), m.empty(time + 1)];
    let discards = How { discards: true, ..How::default() };
    small(
        "raw-discarded-short",
        &[Op::SubBufferWith(0, two(10), Loss::default(), discards)],
        &|b| b.body(b"RAWP", 0, data + 12 + 4, 3, 4) + data as u64 + 12,
        "sub-buffer",
    );
    small(
        "raw-times-wrap",
        &[Op::SubBuffer(0, two(u64::MAX - 1), Loss::default())],
        &|b| {
            b.body(b"RAWP", 0, 24, 3, 8);
            b.body(b"RAWP", 0, data + 12, word(2, 5), 4) + data as u64 + 12
        },
        "malformed",
    );
    let counted = Loss { counted: 9, ..Loss::default() };
    small(
        "raw-loss-not-first",
        &[Op::SubBuffer(0, two(10), counted), Op::SubBuffer(0, two(20), Loss::default())],
        &|b| loss_in_second(b, m.long),
        "malformed",
    );
    // Found by fuzzing: event numbers at the end of what 64 bits hold.
    for (name, kind) in [("events-event-number", b"EVNT"), ("raw-event-number", b"RAWP")] {
        let mut broken = Broken::new(&cases::sub_buffers(m), layout);
        broken.body(kind, 0, 32, u64::MAX, 8);
        out.push((name, broken, Expect::Missing));
    }
    out
}

/// Sets the loss bit of the second sub-buffer; returns the offset of its commit word.
fn loss_in_second(broken: &mut Broken, long: usize) -> u64 {
    let at = RAW_HEAD + 1024 + 8;
    let (offset, _) = broken.chunk(b"RAWP", 0);
    let commit = broken.number(offset + 64 + at, long);
    broken.body(b"RAWP", 0, at, commit | 1 << 31, long) + at as u64
}
