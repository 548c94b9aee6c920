//! Event classes and shapes.

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::cases::Maker;
use crate::model::{Layout, Op};

/// A schema whose first copy is damaged is healed by the second, so both get the defect.
pub fn schema(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    let plain = Broken::new(&[Op::Event(0, m.kmalloc(1_000, 0x40, 100))], layout);
    let (offset, _) = plain.chunk(b"SCHM", 0);
    let [classes, fields, shapes, slots] =
        [12, 16, 20, 24].map(|at| plain.number(offset + 64 + at, 4) as usize);
    let field_at = 40 + classes * 44;
    let shape_at = field_at + fields * 32;
    let slot_at = shape_at + shapes * 16;
    let heap_at = slot_at + slots * 8;
    let mut add = |name, at, value, len, code, further| {
        let mut broken = Broken::new(&[Op::Event(0, m.kmalloc(1_000, 0x40, 100))], layout);
        let first = broken.body(b"SCHM", 0, at, value, len) + further;
        let second = broken.body(b"SCHM", 1, at, value, len) + further;
        out.push((name, broken, Expect::Damage(vec![(code, first), (code, second)])));
    };
    add("schema-head", 0, 39, 4, "malformed", 0);
    add("schema-row-length", 32, 43, 2, "malformed", 0);
    add("schema-field-length", 34, 31, 2, "malformed", 0);
    add("schema-shape-length", 36, 15, 2, "malformed", 0);
    add("schema-slot-length", 38, 7, 2, "malformed", 0);
    add("schema-field-name", field_at, 1 << 20, 4, "malformed", 0);
    add("schema-field-type", field_at + 8, 1 << 20, 4, "malformed", 0);
    add("schema-heap", 28, 1 << 20, 4, "truncated", heap_at as u64);
    add("schema-too-many-classes", 4, 65_520, 4, "limit-exceeded", 0);
    add("schema-string", 40 + 12, 1 << 20, 4, "malformed", 0);
    add("schema-string-length", 40 + 32, 1 << 31, 4, "malformed", 0);
    add("schema-print-fmt", 40 + 40, 1 << 20, 4, "malformed", 0);
    add("schema-class-fields", 40 + 8, 100, 4, "malformed", 0);
    add("schema-too-many-fields", 40 + 4, 257, 2, "limit-exceeded", 0);
    add("schema-common-fields", 40 + 6, 200, 2, "malformed", 0);
    add("schema-scalar-size", field_at + 20, 3, 4, "malformed", 0);
    add("schema-shape-class", shape_at, 9, 4, "malformed", 0);
    add("schema-shape-slots", shape_at + 4, 1_000, 4, "malformed", 0);
    add("schema-slot-stored", slot_at + 1, 3, 1, "malformed", 0);
    let from_field_99 = if layout.big { 2 << 8 | 99 } else { 2 | 99 << 8 };
    add("schema-slot-base", slot_at + 2, from_field_99, 2, "malformed", 0);
    add("schema-slot-too-wide", slot_at + 8 + 1, 8, 1, "malformed", 0);
    add("schema-slot-reach", slot_at + 8 * 4 + 4, 1_000, 4, "malformed", 0);
    // The value word is as long as a long: the first shape has one field there.
    let value = (0..10).map(|i| slot_at + 8 * i).find(|at| plain.file.bytes[offset + 64 + at] == 3);
    add("schema-slot-value", value.unwrap_or(slot_at) + 4, 1, 4, "malformed", 0);
    let heap_len = plain.number(offset + 64 + 28, 4);
    let format_len = plain.number(offset + 64 + 40 + 32, 4) as usize;
    let mut add = |name, fields: &[(usize, u64, usize)]| {
        let mut broken = Broken::new(&[Op::Event(0, m.kmalloc(1_000, 0x40, 100))], layout);
        let mut put = |nth| {
            let put = fields.iter().map(|&(at, value, len)| broken.body(b"SCHM", nth, at, value, len));
            put.last().unwrap_or(0)
        };
        let damages = [0, 1].map(|nth| ("malformed", put(nth)));
        out.push((name, broken, Expect::Damage(damages.to_vec())));
    };
    add("schema-empty-print-fmt", &[(40 + 36, heap_len - 1, 4), (40 + 40, 0, 4)]);
    add("schema-not-utf8", &[(heap_at + format_len, 0xff, 1)]);
    // The fifth field is the first that is not common.
    let own = field_at + 32 * 4;
    add("schema-element-size", &[(own + 24, 1, 1), (own + 26, 0, 1)]);
    let reach = [(field_at + 32 * 4 + 24, 0x77, 1), (slot_at + 8 * 4 + 4, 1_000, 4)];
    add("schema-slot-reach-unknown-kind", &reach);
    add("schema-no-rows", &[(12, 0, 4), (16, 0, 4), (20, 0, 4), (24, 0, 4), (28, 0, 4), (32, 43, 2)]);
    for (name, at, len) in [
        ("schema-no-fields-length", 34, 31),
        ("schema-no-shapes-length", 36, 15),
        ("schema-no-slots-length", 38, 7),
    ] {
        let none = [12, 16, 20, 24, 28].map(|at| (at, 0, 4));
        add(name, &[&none[..], &[(at, len, 2)]].concat());
    }
    out.extend(field_end(m, layout));
    let mut differs = Broken::new(&[Op::Event(0, m.kmalloc(1_000, 0x40, 100))], layout);
    let second = differs.body(b"SCHM", 1, 40, 99, 2);
    out.push(("schema-two-meanings", differs, Expect::Damage(vec![("malformed", second)])));
    let mut differs = Broken::new(&[Op::Event(0, m.kmalloc(1_000, 0x40, 100))], layout);
    let second = differs.body(b"SCHM", 1, field_at + 26, 1, 1);
    out.push(("schema-two-element-sizes", differs, Expect::Damage(vec![("malformed", second)])));
    let mut differs = Broken::new(&[Op::Event(0, m.free(1_000, 0x40, "dentry"))], layout);
    let name = differs.slot(1, 0, 0, 6).unwrap_or(0);
    let second = differs.body(b"SCHM", 1, name + 2, 1, 1);
    out.push(("schema-two-array-transforms", differs, Expect::Damage(vec![("malformed", second)])));
    // A number that is too high, of no class.
    let mut high = Broken::new(&[Op::Event(0, m.kmalloc(1_000, 0x40, 100))], layout);
    for at in [12, 16, 20, 24, 28] {
        high.body(b"SCHM", 1, at, 0, 4);
    }
    let second = high.body(b"SCHM", 1, 4, 65_521, 4);
    out.push(("schema-no-classes-too-high", high, Expect::Damage(vec![("limit-exceeded", second)])));
    out
}

/// A field that ends one byte behind the longest event: `common_type` has 2 bytes.
pub fn field_end(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut broken = Broken::new(&[Op::Event(0, m.kmalloc(1_000, 0x40, 100))], layout);
    let (offset, _) = broken.chunk(b"SCHM", 0);
    let field_at = 40 + broken.number(offset + 64 + 12, 4) as usize * 44;
    let damages = [0, 1].map(|nth| ("malformed", broken.body(b"SCHM", nth, field_at + 16, 65_535, 4)));
    vec![("schema-field-end", broken, Expect::Damage(damages.to_vec()))]
}
