//! Rows of SCHM: strings at the end of the heap, texts that are not UTF-8, slots beyond their place, and second
//! definitions.

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::cases::Maker;
use crate::classes::{ARRAYS, Class, KMALLOC};
use crate::model::{Layout, Op};
use crate::schema::schema;

/// Rows of the only class, kmem:kmalloc: ten fields, three shapes, their slots.
const CLASS: usize = 40;
const FIELDS: usize = CLASS + 44;
const SHAPES: usize = FIELDS + 10 * 32;
const SLOTS: usize = SHAPES + 3 * 16;
const HEAP: usize = SLOTS + 30 * 8;

/// Its fields.
const PID: usize = 3;
const PTR: usize = 5;
const BYTES_REQ: usize = 6;

/// Another class with the fields of kmem:kmalloc.
const OTHER_ID: Class = Class { id: 99, ..KMALLOC };
const OTHER_SYSTEM: Class = Class { system: "kmeM", ..KMALLOC };

/// Numbers in a body: where, value, length.
type Edits<'a> = &'a [(usize, u64, usize)];

fn edit(b: &mut Broken, nth: usize, edits: Edits) {
    for &(at, value, len) in edits {
        b.body(b"SCHM", nth, at, value, len);
    }
}

/// Place of a slot of one of the three shapes.
const fn slot(shape: usize, field: usize) -> usize {
    SLOTS + 8 * (10 * shape + field)
}

pub fn schema_rows(m: Maker, layout: Layout) -> Vec<Defect> {
    let layout = Layout { index: false, trailer: false, ..layout };
    let mut out = rows(m, layout);
    out.extend(arrays(m, layout));
    out.extend(second_classes(layout));
    out.extend(second_shapes(m, layout));
    out
}

fn rows(m: Maker, layout: Layout) -> Vec<Defect> {
    let base = || Broken::new(&[Op::Event(0, m.kmalloc(10, 0x40, 100))], layout);
    let plain = base();
    let start = plain.chunk(b"SCHM", 0).0 + 64;
    let of = |at, len| plain.number(start + at, len);
    let heap_len = of(28, 4);
    assert_eq!(start + HEAP + heap_len as usize, start + plain.rest(b"SCHM", 0).len(), "the heap is last");
    let mut out = Vec::new();
    let mut add = |name, code, edits: Edits| {
        let mut broken = base();
        edit(&mut broken, 0, edits);
        out.push((name, broken, Expect::Damage(vec![(code, start as u64)])));
    };
    // The name of the last field ends one byte behind the heap, but within the body.
    add("schema-string-end", "malformed", &[(28, heap_len - 1, 4)]);
    add("schema-empty-string-outside", "malformed", &[(CLASS + 12, heap_len + 1, 4), (CLASS + 16, 0, 4)]);
    add("schema-class-name-outside", "malformed", &[(CLASS + 20, heap_len, 4)]);
    let text_len = of(CLASS + 32, 4);
    let text = [(CLASS + 28, 1, 4), (CLASS + 32, text_len - 1, 4), (CLASS + 36, 0, 4)];
    add("schema-print-fmt-before", "malformed", &text);
    for (name, string) in [
        ("schema-class-name-not-utf8", CLASS + 20),
        ("schema-format-not-utf8", CLASS + 28),
        ("schema-field-name-not-utf8", FIELDS + 32 * PTR),
        ("schema-type-not-utf8", FIELDS + 32 * PTR + 8),
    ] {
        add(name, "malformed", &[(HEAP + of(string, 4) as usize, 0xff, 1)]);
    }
    add("schema-descriptor-slot-stored", "malformed", &[(slot(0, BYTES_REQ) + 1, 3, 1)]);
    // The kind of the field is not known, and the ten fields of the class have numbers 0 to 9.
    let kind = (FIELDS + 32 * BYTES_REQ + 24, 9, 1);
    let base_10 = [kind, (slot(0, BYTES_REQ) + 2, 2, 1), (slot(0, BYTES_REQ) + 3, 10, 1)];
    add("schema-slot-base-unknown-kind", "malformed", &base_10);
    // Shapes without events.
    add("schema-slot-context", "malformed", &[(slot(1, PID) + 4, 4_093, 4)]);
    let payload_len = of(SHAPES + 2 * 16 + 12, 4);
    add("schema-slot-payload", "malformed", &[(SHAPES + 2 * 16 + 12, payload_len - 1, 4)]);
    // Of two faults the first check finds one.
    add("order-schema-head-limit", "malformed", &[(0, 39, 4), (4, 70_000, 4)]);
    add("order-schema-fields-common", "limit-exceeded", &[(CLASS + 4, 257, 2), (CLASS + 6, 258, 2)]);
    out
}

/// Slots of arrays, which are checked as those of scalars are.
fn arrays(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut base = Broken::new(&[Op::Event(0, m.free(10, 0x40, "dentry"))], layout);
    base.set_slot((0, 0, 6), (2, 4, 2, 7, 8));
    let offset = base.chunk(b"SCHM", 0).0 as u64 + 64;
    let mut end = Broken::new(&[Op::Event(0, m.arrays(10, "task", &[]))], layout);
    // The head, a class of eight fields; comm is the first of its own.
    let descriptor_len = end.number(offset as usize + CLASS + 44 + 8 * 32 + 8, 4);
    end.set_slot((0, 0, 4), (2, 4, 0, 0, descriptor_len - 3));
    let expect = || Expect::Damage(vec![("malformed", offset)]);
    vec![("schema-slot-base-of-array", base, expect()), ("schema-slot-reach-of-array", end, expect())]
}

/// The body of a SCHM chunk with one class and no shapes.
fn class_alone(class: &Class, layout: &Layout) -> Vec<u8> {
    let mut body = schema(&[class], 0, layout);
    let fields = class.all_fields().len();
    let shapes = CLASS + 44 + 32 * fields;
    body.drain(shapes..shapes + 3 * (16 + 8 * fields));
    body[20..28].fill(0);
    body
}

/// Second definitions of a class, without shapes that would differ too.
fn second_classes(layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    let mut add = |name, classes: [&Class; 2], edits: Edits| {
        let body = |class| Op::Unknown(*b"SCHM", 1, class_alone(class, &layout).leak());
        let mut broken = Broken::new(&classes.map(body), layout);
        edit(&mut broken, 1, edits);
        let offset = broken.chunk(b"SCHM", 1).0 as u64 + 64;
        out.push((name, broken, Expect::Damage(vec![("malformed", offset)])));
    };
    add("schema-two-field-counts", [&KMALLOC, &KMALLOC], &[(CLASS + 4, 9, 2)]);
    add("schema-two-systems", [&KMALLOC, &OTHER_SYSTEM], &[]);
    // The first letter of the format, in front of the print fmt.
    let heap = CLASS + 44 + 32 * KMALLOC.all_fields().len();
    add("schema-two-formats", [&KMALLOC, &KMALLOC], &[(heap, b'N'.into(), 1)]);
    let raw = CLASS + 44 + 32 * 5;
    add("schema-two-array-element-sizes", [&ARRAYS, &ARRAYS], &[(raw + 26, 5, 1)]);
    out
}

/// Shapes: of a class that is defined in another chunk only, of another class than before, with another base.
fn second_shapes(m: Maker, layout: Layout) -> Vec<Defect> {
    let expect = |b: &Broken| Expect::Damage(vec![("malformed", b.chunk(b"SCHM", 1).0 as u64 + 64)]);
    let body = |classes: &[&Class]| Op::Unknown(*b"SCHM", 1, schema(classes, 0, &layout).leak());
    let [one, two] = [body(&[&KMALLOC]), body(&[&KMALLOC, &OTHER_ID])];
    let mut elsewhere = Broken::new(&[one.clone(), one], layout);
    elsewhere.body(b"SCHM", 1, 4, 1, 4);
    let mut other = Broken::new(&[two.clone(), two], layout);
    other.body(b"SCHM", 1, CLASS + 2 * 44 + 20 * 32, 1, 4);
    let free = Op::Event(0, m.free(10, 0x40, "dentry"));
    let mut base = Broken::new(&[free], Layout { trailer: true, ..layout });
    base.set_slot((0, 0, 6), (2, 4, 2, 4, 8));
    let at = base.slot(1, 0, 0, 6).expect("a slot");
    base.body(b"SCHM", 1, at + 3, 5, 1);
    let cases = [
        ("schema-shape-class-elsewhere", elsewhere),
        ("schema-two-shape-classes", other),
        ("schema-two-array-bases", base),
    ];
    cases
        .map(|(name, broken)| {
            let expect = expect(&broken);
            (name, broken, expect)
        })
        .into()
}
