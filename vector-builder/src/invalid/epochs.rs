//! Times of event chunks.

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::cases::{self, Maker};
use crate::model::Layout;

pub fn epochs(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    let epochs = Broken::new(&cases::times(m), layout);
    let mut broken = epochs;
    let at = broken.place(0, 56);
    let offset = broken.body(b"EVNT", 0, at + 4, 7, 4);
    out.push(("events-epochs-fall", broken, Expect::Unreadable("malformed", offset)));
    out
}
