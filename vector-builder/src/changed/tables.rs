//! Tables of event chunks at odd places, times that wrap, and numbers of slots.

use serde_json::{Value as Json, json};

use super::{Changed, built};
use crate::broken::Broken;
use crate::cases::Maker;
use crate::model::{Layout, Loss, Op};

pub fn cases(m: Maker, layout: Layout) -> Vec<(&'static str, Changed)> {
    let mut out = Vec::new();
    let mut add = |name, ops: &[Op], change: &dyn Fn(&mut Broken, &mut Json)| {
        let (mut file, mut expected) = built(ops, layout);
        change(&mut file, &mut expected);
        out.push((name, (file, expected)));
    };
    let event = |time| Op::Event(0, m.kmalloc(time, 0x40, 8));
    // Offsets of tables without bytes: epochs of one event, of none all but the heap.
    let lost = Op::Lost(0, Loss { uncounted: true, ..Loss::default() });
    add("empty-tables", &[event(10), Op::Flush(0), lost], &|file, _| {
        for (nth, at) in [(0, 56), (1, 56), (1, 60), (1, 64), (1, 68)] {
            file.body(b"EVNT", nth, at, 0xffff_ffff, 4);
        }
    });
    // The body ends with a descriptor, which has three bytes more than its shape; contexts end with the last slot.
    add("descriptor-at-end", &[event(10)], &|file, _| {
        let (start, end) = file.chunk(b"EVNT", 0);
        let (body, len) = (start + 64, file.number(start + 24, 8) as usize);
        let old = body + file.number(body + file.place(0, 60), 4) as usize;
        let data_len = file.number(old + 2, 2) as usize;
        assert!(body + len + 4 + data_len + 3 <= end, "the chunk has a padding");
        file.file.bytes.copy_within(old..old + 4 + data_len, body + len);
        file.body(b"EVNT", 0, len + 2, data_len as u64 + 3, 2);
        file.body(b"EVNT", 0, file.place(0, 60), len as u64, 4);
        file.body(b"EVNT", 0, 82, 6, 2);
        file.resize(b"EVNT", 0, len + 4 + data_len + 3);
    });
    // A descriptor without data within the head: loss_flags are shape 0 and length 0.
    add("descriptor-in-head", &[Op::Event(0, m.empty(10))], &|file, _| {
        file.body(b"EVNT", 0, file.place(0, 60), 4, 4);
    });
    // The second time is behind the end of 64 bits.
    let first = u64::MAX - 4;
    add("times-wrap", &[event(first - 10), event(first)], &|file, expected| {
        for (at, nth, time) in [(16, 0, first), (24, 1, 5)] {
            file.body(b"EVNT", 0, at, time, 8);
            expected["events"][nth]["time"] = json!(time);
        }
    });
    // The class id as a number: it has 2 bytes, whatever the slot and the field have; and 1 byte that is not extended.
    let ops = [event(100_000), Op::Event(0, m.page(100_001, 3, 0))];
    add("class-ids-as-numbers", &ops, &|file, expected| {
        let id = 0x8123;
        for (class, size) in [(0, 2), (1, 4)] {
            (0..2).for_each(|nth| drop_number(file.body(b"SCHM", nth, 40 + 44 * class, id, 2)));
            file.set_field((class, 0), 25, 1, 1);
            file.set_field((class, 0), 20, size, 4);
            file.set_slot((class, 0, 0), (0, 4, 0, 0, 0));
            expected["classes"][class]["id"] = json!(id);
            expected["classes"][class]["fields"][0][5] = json!(true);
            expected["classes"][class]["fields"][0][3] = json!(size);
            expected["events"][class]["fields"]["common_type"] = json!(id as i64 - 0x1_0000);
        }
        // bytes_req from the id, and the last field from the lowest byte of -1.
        file.set_slot((0, 0, 6), (0, 1, 1, 0, 0));
        file.set_slot((0, 0, 9), (2, 1, 1, 0, 20));
        expected["events"][0]["fields"]["bytes_req"] = json!(100_000 - id);
        expected["events"][0]["fields"]["node"] = json!(100_000 - 255);
    });
    out
}

fn drop_number(_: u64) {}
