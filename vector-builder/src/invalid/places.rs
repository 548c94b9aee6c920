//! Places and times of event chunks that are wrong by one, or in one way alone.

use serde_json::json;

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::cases::{self, Maker};
use crate::model::{Layout, Op};

pub fn places(m: Maker, layout: Layout) -> Vec<Defect> {
    let layout = Layout { index: false, ..layout };
    let mut out = Vec::new();
    let mut add = |name, ops: &[Op], code, change: &dyn Fn(&mut Broken) -> u64| {
        let mut broken = Broken::new(ops, layout);
        let offset = change(&mut broken);
        out.push((name, broken, Expect::Unreadable(code, offset)));
    };
    let two = [Op::Event(0, m.kmalloc(10, 0x40, 8)), Op::Event(0, m.kmalloc(15, 0x40, 8))];
    add("events-head-long", &two, "malformed", &|b| b.body(b"EVNT", 0, 0, 1 << 20, 4));
    // Two epochs behind the last record.
    add("events-epochs-behind-fall", &cases::times(m), "malformed", &|b| {
        let at = b.place(0, 56);
        for (i, value) in [9, 2, 9, 1].into_iter().enumerate() {
            b.body(b"EVNT", 0, at + 4 * i, value, 4);
        }
        b.body(b"EVNT", 0, 24, 6, 8)
    });
    // Slots of an array, and of a field of an unknown kind, behind the context.
    add("events-array-stride", &[Op::Event(0, m.free(10, 0x40, "dentry"))], "malformed", &|b| {
        b.set_slot((0, 0, 6), (1, 4, 0, 0, 6));
        b.body(b"EVNT", 0, 82, 8, 2)
    });
    add("events-unknown-stride", &two, "malformed", &|b| {
        b.set_field((0, 9), 24, 0x77, 1);
        b.set_slot((0, 0, 9), (1, 4, 0, 0, 6));
        b.body(b"EVNT", 0, 82, 8, 2)
    });
    // Contexts of no bytes, which no slot needs; then a heap that ends behind the body as well.
    let no_stride = |b: &mut Broken| {
        for (shape, field) in (0..3).flat_map(|shape| (1..4).map(move |field| (shape, field))) {
            b.set_slot((0, shape, field), (0, 1, 0, 0, 0));
        }
        b.body(b"EVNT", 0, 82, 0, 2)
    };
    let empty = [Op::Event(0, m.empty(10))];
    add("events-no-stride", &empty, "malformed", &no_stride);
    add("order-heap-stride", &empty, "truncated", &|b| {
        no_stride(b);
        b.body(b"EVNT", 0, 76, 1 << 20, 4) + b.place(0, 72) as u64
    });
    // The first event is behind t_base; no time falls.
    add("events-first-time-later", &two, "malformed", &|b| {
        for (record, time) in [(0, 5), (1, 10)] {
            b.body(b"EVNT", 0, b.place(0, 68) + record * (8 + m.long), time, 4);
        }
        b.body(b"EVNT", 0, 16, 5, 8)
    });
    add("order-checksum-length", &two, "checksum", &|b| {
        let offset = b.header(b"EVNT", 0, 32, 5_000, 8) + 64;
        let record = offset as usize + b.place(0, 68);
        b.file.bytes[record + 8] ^= 1;
        offset
    });
    out.extend(arrays(m, layout));
    out
}

/// Arrays of all events that have one byte too many; and too many in a chunk whose last time falls.
fn arrays(m: Maker, layout: Layout) -> Vec<Defect> {
    const EVENTS: u64 = 33;
    let with = |len: u64| {
        let name = "x".repeat(len as usize - 1);
        let ops: Vec<Op> = (0..EVENTS).map(|i| Op::Event(0, m.free(10 + i, 0x40, &name))).collect();
        Broken::new(&ops, layout)
    };
    // Bytes of an array, less their part of what the body's length allows, and less one.
    let factor = |len: u64| {
        let broken = with(len);
        let more = 16 * broken.number(broken.chunk(b"EVNT", 0).0 + 24, 8) + 1;
        (more % EVENTS == 0).then_some((broken, len.checked_sub(more / EVENTS)?))
    };
    let (exact, limit) = (1_000..3_000).step_by(16).find_map(factor).expect("a length that fits");
    let mut falls = with(2_000);
    let last = falls.place(0, 68) + (EVENTS as usize - 1) * (8 + m.long);
    let offset = falls.body(b"EVNT", 0, last, 0, 4);
    let within =
        |limit, code| Expect::Within(json!({"arrays": limit}), Box::new(Expect::Unreadable(code, offset)));
    vec![
        ("arrays-above-limit-by-1", exact, within(limit, "limit-exceeded")),
        ("order-times-arrays", falls, within(0, "malformed")),
    ]
}
