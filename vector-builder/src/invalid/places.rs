//! Places and times of event chunks that are wrong by one, or in one way alone.

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
    // Slots of an array, and of a field of an unknown kind, behind the context. What stands there is 1, the offset of an
    // empty array: the heap is the length of a name of one NUL, and the NUL.
    add("events-array-stride", &[Op::Event(0, m.free(10, 0x40, ""))], "malformed", &|b| {
        b.set_slot((0, 0, 6), (1, 4, 0, 0, 8));
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
    // The arrays are above the limit, and the last time falls.
    let name = "x".repeat(2_000);
    let events: Vec<Op> = (0..33).map(|i| Op::Event(0, m.free(10 + i, 0x40, &name))).collect();
    let mut falls = Broken::new(&events, layout);
    let offset = falls.body(b"EVNT", 0, falls.place(0, 68) + 32 * (8 + m.long), 0, 4);
    let expect = Expect::Unreadable("malformed", offset);
    out.push(("order-times-arrays", falls, Expect::within("arrays", 0, expect)));
    out
}
