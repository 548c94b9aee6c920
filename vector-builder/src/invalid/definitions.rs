//! Definitions: checks in their order, and second definitions of one number.

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::cases::Maker;
use crate::changed::put_character;
use crate::classes::KMALLOC;
use crate::model::{Layout, Op};

/// The row of the class stands behind the head.
const CLASS: usize = 40;

pub fn definitions(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    let base = || Broken::new(&[Op::Event(0, m.kmalloc(1_000, 0x40, 100))], layout);
    let mut add = |name, change: &dyn Fn(&mut Broken, usize) -> u64| {
        let mut broken = base();
        let damages = [0, 1].map(|nth| ("malformed", change(&mut broken, nth)));
        out.push((name, broken, Expect::Damage(damages.to_vec())));
    };
    // The table of classes ends behind the body; the last of the four row lengths is wrong.
    add("schema-row-length-first", &|b, nth| {
        b.body(b"SCHM", nth, 12, 60_000, 4);
        b.body(b"SCHM", nth, 38, 7, 2)
    });
    // A common field that is a fixed array, and one that is a dynamic one.
    for (name, kind) in [("schema-common-array", 1), ("schema-common-data-loc", 2)] {
        add(name, &|b, nth| b.body(b"SCHM", nth, CLASS + 44 + 32 * 3 + 24, kind, 1));
    }
    out.extend(characters(m, layout));
    out.extend(differences(m, layout));
    out.extend([bad_behind_good(m, layout, true), bad_behind_good(m, layout, false)]);
    out
}

/// A print fmt that begins or ends within a character.
fn characters(m: Maker, layout: Layout) -> Vec<Defect> {
    let text = KMALLOC.format_text(m.long);
    let print_at = text.find("print fmt: ").expect("every format has one") as u64 + 11;
    let mut out = Vec::new();
    for (name, start, len) in [
        ("schema-print-fmt-starts-inside", 2, 3),
        ("schema-print-fmt-ends-inside", 1, 1),
        ("schema-print-fmt-empty-inside", 2, 0),
    ] {
        let mut broken = Broken::new(&[Op::Event(0, m.kmalloc(1_000, 0x40, 100))], layout);
        let damages = [0, 1].map(|nth| {
            put_character(&mut broken, nth, print_at);
            broken.body(b"SCHM", nth, CLASS + 40, len, 4);
            ("malformed", broken.body(b"SCHM", nth, CLASS + 36, print_at + start, 4))
        });
        out.push((name, broken, Expect::Damage(damages.to_vec())));
    }
    out
}

/// Second definitions that differ from the first in one value.
fn differences(m: Maker, layout: Layout) -> Vec<Defect> {
    let (field, shape) = (CLASS + 44, CLASS + 44 + 10 * 32);
    let slot = |shape_number: usize, field: usize| shape + 3 * 16 + 8 * (10 * shape_number + field);
    let of_bytes_req = slot(0, 6);
    let print_at = KMALLOC.format_text(m.long).find("print fmt: ").expect("every format has one") as u64 + 11;
    let mut out = Vec::new();
    // First the bytes of both definitions, then those of the second one.
    let mut add = |name, both: &[(usize, u64, usize)], second: &[(usize, u64, usize)]| {
        let mut broken = Broken::new(&[Op::Event(0, m.kmalloc(1_000, 0x40, 100))], layout);
        for &(at, value, len) in both {
            broken.body(b"SCHM", 0, at, value, len);
        }
        for &(at, value, len) in both.iter().chain(second) {
            broken.body(b"SCHM", 1, at, value, len);
        }
        let offset = broken.chunk(b"SCHM", 1).0 as u64 + 64;
        out.push((name, broken, Expect::Damage(vec![("malformed", offset)])));
    };
    add("schema-two-event-meanings", &[], &[(CLASS + 2, 5, 2)]);
    add("schema-two-common-counts", &[], &[(CLASS + 6, 3, 2)]);
    add("schema-two-class-names", &[], &[(CLASS + 24, 6, 4)]);
    add("schema-two-print-fmts", &[], &[(CLASS + 40, 20, 4)]);
    add("schema-two-print-fmt-places", &[], &[(CLASS + 36, print_at - 1, 4)]);
    add("schema-two-field-names", &[], &[(field + 5 * 32 + 4, 2, 4)]);
    add("schema-two-types", &[], &[(field + 5 * 32 + 12, 5, 4)]);
    add("schema-two-field-offsets", &[], &[(field + 5 * 32 + 16, 64, 4)]);
    add("schema-two-field-sizes", &[], &[(field + 9 * 32 + 20, 8, 4)]);
    add("schema-two-kinds", &[], &[(field + 9 * 32 + 24, 0x77, 1)]);
    add("schema-two-signs", &[], &[(field + 9 * 32 + 25, 0, 1)]);
    add("schema-two-roles", &[], &[(field + 9 * 32 + 28, 0, 2)]);
    add("schema-two-descriptors", &[], &[(shape + 8, 64, 4)]);
    add("schema-two-payloads", &[], &[(shape + 2 * 16 + 12, 64, 4)]);
    add("schema-two-places", &[], &[(of_bytes_req, 0x77, 1)]);
    add("schema-two-stored", &[], &[(of_bytes_req + 1, 2, 1)]);
    add("schema-two-slot-offsets", &[], &[(of_bytes_req + 4, 0, 4)]);
    add(
        "schema-two-bases",
        &[(of_bytes_req + 2, 2, 1), (of_bytes_req + 3, 7, 1)],
        &[(of_bytes_req + 3, 8, 1)],
    );
    add("schema-two-place-numbers", &[(of_bytes_req, 0x77, 1)], &[(of_bytes_req, 0x78, 1)]);
    add("schema-two-unknown-places", &[(of_bytes_req, 0x77, 1)], &[(of_bytes_req + 2, 1, 1)]);
    out
}

/// A chunk with a good definition and a bad one behind it: neither counts, and the events of the first have no class.
fn bad_behind_good(m: Maker, layout: Layout, differs: bool) -> Defect {
    let ops = [Op::Event(0, m.kmalloc(10, 0x40, 8)), Op::Flush(0), Op::Event(0, m.page(20, 3, 0))];
    let mut broken = Broken::new(&ops, Layout { index: false, ..layout });
    broken.remove(b"SCHM", 0);
    let (at, value) = if differs { (0, 99) } else { (6, 200) };
    let damage = broken.body(b"SCHM", 1, CLASS + 44 + at, value, 2);
    let (unreadable, _) = broken.chunk(b"EVNT", 0);
    let name = if differs { "schema-good-and-different" } else { "schema-good-and-bad" };
    let unreadable = vec![("malformed", unreadable as u64 + 64)];
    (name, broken, Expect::Both(vec![("malformed", damage)], unreadable))
}
