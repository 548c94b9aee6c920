//! Classes, fields and slots at the edge of what they may be.

use serde_json::{Value as Json, json};

use super::{Changed, built};
use crate::broken::{Broken, Slot};
use crate::cases::Maker;
use crate::classes::KMALLOC;
use crate::json;
use crate::model::{Layout, Loss, Op};

/// Rows of the only class, kmem:kmalloc: ten fields, three shapes.
const CLASS: usize = 40;
const FIELDS: usize = CLASS + 44;
const SHAPES: usize = FIELDS + 10 * 32;

/// Its fields.
const PID: usize = 3;
const BYTES_REQ: usize = 6;
const NODE: usize = 9;

pub fn definitions(m: Maker, layout: Layout) -> Vec<(&'static str, Changed)> {
    vec![
        ("no-fields", no_fields(m, layout)),
        ("unused-rows", unused_rows(m, layout)),
        ("texts-at-the-end", texts_at_the_end(m, layout)),
        ("odd-fields", odd_fields(m, layout)),
        ("odd-slots", odd_slots(m, layout)),
        ("array-elements-0", array_elements_0(m, layout)),
        ("chars-that-stay", chars_that_stay(m, layout)),
        ("alike-transforms", alike_transforms(m, layout)),
    ]
}

fn kmalloc(m: Maker, layout: Layout) -> Changed {
    built(&[Op::Event(0, m.kmalloc(1_000, 0x40, 100))], layout)
}

/// A class without fields, whose shapes have no slots.
fn no_fields(m: Maker, layout: Layout) -> Changed {
    let (mut file, mut expected) = kmalloc(m, layout);
    file.body(b"SCHM", 0, CLASS + 4, 0, 4);
    expected["classes"][0]["fields"] = json!([]);
    expected["events"][0]["fields"] = json!({});
    (file, expected)
}

/// The last field and its slots belong to no class any more: neither its size nor what is stored is checked.
fn unused_rows(m: Maker, layout: Layout) -> Changed {
    let (mut file, mut expected) = kmalloc(m, layout);
    file.body(b"SCHM", 0, CLASS + 4, NODE as u64, 2);
    file.body(b"SCHM", 0, FIELDS + 32 * NODE + 20, 3, 4);
    for shape in 0..3 {
        let at = file.slot(0, 0, shape, NODE).expect("a slot");
        file.body(b"SCHM", 0, at + 1, 3, 1);
    }
    expected["classes"][0]["fields"].as_array_mut().map(Vec::pop);
    expected["events"][0]["fields"].as_object_mut().map(|fields| fields.remove("node"));
    (file, expected)
}

/// A print fmt up to the last byte of the format, and an empty type behind the last byte of the heap.
fn texts_at_the_end(m: Maker, layout: Layout) -> Changed {
    let (mut file, mut expected) = kmalloc(m, layout);
    let start = file.chunk(b"SCHM", 0).0 + 64;
    file.body(b"SCHM", 0, CLASS + 32, KMALLOC.format_text(m.long).len() as u64 - 1, 4);
    let heap_len = file.number(start + 28, 4);
    file.body(b"SCHM", 0, FIELDS + 32 * NODE + 8, heap_len, 4);
    file.body(b"SCHM", 0, FIELDS + 32 * NODE + 12, 0, 4);
    expected["classes"][0]["fields"][NODE][1] = json!("");
    (file, expected)
}

/// A field at the end of the longest event, and a scalar with an element size of its own.
fn odd_fields(m: Maker, layout: Layout) -> Changed {
    let (mut file, mut expected) = kmalloc(m, layout);
    file.set_field((0, NODE), 16, 65_532, 4);
    file.set_field((0, NODE), 26, 7, 1);
    expected["classes"][0]["fields"][NODE][2] = json!(65_532);
    expected["classes"][0]["fields"][NODE][6] = json!(7);
    (file, expected)
}

/// Slots: with a transform that is not known, of an unknown kind with more bytes than the field, of a difference with
/// more bytes than the field, and shapes that no event has at the end of what they may be.
fn odd_slots(m: Maker, layout: Layout) -> Changed {
    let (mut file, mut expected) = kmalloc(m, layout);
    let put = |file: &mut Broken, field, slot: Slot| file.set_slot((0, 0, field), slot);
    put(&mut file, BYTES_REQ, (2, 3, 9, 0, 0xffff_ffff));
    put(&mut file, BYTES_REQ + 1, (2, 8, 0, 0, 8));
    file.set_field((0, BYTES_REQ + 1), 24, 9, 1);
    file.set_field((0, BYTES_REQ + 1), 20, 2, 4);
    put(&mut file, NODE, (3, 8, 1, 0, 0));
    file.set_slot((0, 1, PID), (1, 4, 0, 0, 4_092));
    file.body(b"SCHM", 0, SHAPES + 16 + 8, 65_536, 4);
    expected["classes"][0]["fields"][BYTES_REQ + 1][3] = json!(2);
    expected["classes"][0]["fields"][BYTES_REQ + 1][4] = json!(9);
    let fields = &mut expected["events"][0]["fields"];
    fields["bytes_req"] = Json::Null;
    fields["bytes_alloc"] = Json::Null;
    fields["node"] = json!(1_000u64.wrapping_sub(m.address(0x40)) as i32);
    (file, expected)
}

/// Arrays of kinds 2 and 4 whose elements have no size.
fn array_elements_0(m: Maker, layout: Layout) -> Changed {
    let ops = [Op::Event(0, m.free(10, 0x40, "dentry")), Op::Event(0, m.tail(20, b"four"))];
    let (mut file, mut expected) = built(&ops, layout);
    for (class, field) in [(0, 6), (1, 5)] {
        file.set_field((class, field), 26, 0, 1);
        expected["classes"][class]["fields"][field][6] = json!(0);
    }
    (file, expected)
}

/// In sub-buffers: `char` up to the end of the record, and a fixed array of it whose elements have 2 bytes. Neither ends
/// at its first NUL.
fn chars_that_stay(m: Maker, layout: Layout) -> Changed {
    let events = vec![m.tail(10, b"a\0bc"), m.arrays(20, "a\0bc", &[])];
    let ops = [Op::SubBuffer(0, events, Loss::default())];
    let (mut file, mut expected) = built(&ops, layout);
    file.set_field((1, 4), 26, 2, 1);
    expected["classes"][1]["fields"][4][6] = json!(2);
    // The record is 0 behind the text, and then what was there.
    let text = [&b"a\0bc\0"[..], &[0xa5; 11]].concat();
    expected["events"][1]["fields"]["comm"] = json::hex(&text);
    (file, expected)
}

/// A second definition with other stored bytes and another offset, where the transform is not known.
fn alike_transforms(m: Maker, layout: Layout) -> Changed {
    let (mut file, mut expected) = kmalloc(m, Layout { trailer: true, ..layout });
    expected["events"][0]["fields"]["bytes_req"] = Json::Null;
    file.set_slot((0, 0, BYTES_REQ), (2, 4, 9, 0, 8));
    let at = file.slot(1, 0, 0, BYTES_REQ).expect("a slot");
    file.body(b"SCHM", 1, at + 1, 3, 1);
    file.body(b"SCHM", 1, at + 4, 1 << 30, 4);
    (file, expected)
}
