//! Definitions: checks in their order, and second definitions of one number.

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::cases::Maker;
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
    out
}
