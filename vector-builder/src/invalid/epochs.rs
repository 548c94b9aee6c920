//! Times of event chunks.

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::cases::{self, Maker};
use crate::model::Layout;

pub fn epochs(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    let mut add = |name, change: &dyn Fn(&mut Broken, usize) -> u64, code| {
        let mut broken = Broken::new(&cases::times(m), layout);
        // They are (2, 1) and (3, 3).
        let at = broken.place(0, 56);
        let offset = change(&mut broken, at);
        out.push((name, broken, Expect::Unreadable(code, offset)));
    };
    add("events-epochs-fall", &|b, at| b.body(b"EVNT", 0, at + 4, 7, 4), "malformed");
    add("events-epochs-equal", &|b, at| b.body(b"EVNT", 0, at + 4, 3, 4), "malformed");
    let order = |b: &mut Broken, at| {
        b.body(b"EVNT", 0, at, 3, 4);
        b.body(b"EVNT", 0, at + 8, 2, 4)
    };
    add("events-epochs-order", &order, "malformed");
    add("events-epochs-zero", &|b, at| b.body(b"EVNT", 0, at + 4, 0, 4), "malformed");
    add("events-epochs-outside", &|b, _| b.body(b"EVNT", 0, 56, 1 << 20, 4) + (1 << 20), "truncated");
    out
}
