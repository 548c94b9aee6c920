//! Sub-buffers.

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::cases::{self, Maker};
use crate::model::Layout;

/// Length of a SubBuffersHead.
const RAW_HEAD: usize = 72;

pub fn raw(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    let mut raw = |name, change: &dyn Fn(&mut Broken) -> u64, code| {
        let mut broken = Broken::new(&cases::sub_buffers(m), layout);
        let offset = change(&mut broken);
        out.push((name, broken, Expect::Unreadable(code, offset)));
    };
    raw("raw-layout", &|b| b.body(b"RAWP", 0, 56, 5, 2), "malformed");
    raw("raw-count", &|b| b.body(b"RAWP", 0, 48, 9, 4), "malformed");
    raw("raw-events", &|b| b.body(b"RAWP", 0, 40, 4, 4), "malformed");
    raw(
        "raw-commit",
        &|b| b.body(b"RAWP", 0, RAW_HEAD + 8, 2_000, m.long) + RAW_HEAD as u64 + 8,
        "sub-buffer",
    );
    raw(
        "raw-event-header",
        &|b| {
            // An event of 112 bytes where 20 were committed.
            let data = RAW_HEAD + 8 + m.long;
            b.body(b"RAWP", 0, data, if layout.big { 28 << 27 } else { 28 }, 4);
            b.body(b"RAWP", 0, RAW_HEAD + 8, 20, m.long) + data as u64
        },
        "sub-buffer",
    );
    raw("raw-loss-untold", &|b| b.body(b"RAWP", 1, 4, 0, 4) + RAW_HEAD as u64 + 8, "malformed");
    raw(
        "raw-loss-inside",
        &|b| {
            let at = RAW_HEAD + 1024 + 8;
            let (offset, _) = b.chunk(b"RAWP", 0);
            let commit = b.number(offset + 64 + at, m.long);
            b.body(b"RAWP", 0, at, commit | 1 << 31, m.long) + at as u64
        },
        "malformed",
    );
    raw(
        "raw-unknown-event",
        &|b| {
            let data = RAW_HEAD + 8 + m.long;
            b.body(b"RAWP", 0, data + 4, 999, 2) + data as u64
        },
        "unknown-event-id",
    );
    raw("raw-classes-missing", &|b| b.body(b"RAWP", 0, 60, 99, 4), "malformed");
    raw(
        "raw-class-limit",
        &|b| {
            let data = RAW_HEAD + 8 + m.long;
            b.body(b"RAWP", 0, 60, 0, 4) + data as u64
        },
        "unknown-event-id",
    );
    raw("raw-classes-untold", &|b| b.body(b"RAWP", 0, 64, 0, 8), "malformed");
    // Found by fuzzing: event numbers at the end of what 64 bits hold.
    for (name, kind) in [("events-event-number", b"EVNT"), ("raw-event-number", b"RAWP")] {
        let mut broken = Broken::new(&cases::sub_buffers(m), layout);
        broken.body(kind, 0, 32, u64::MAX, 8);
        out.push((name, broken, Expect::Missing));
    }
    out
}
