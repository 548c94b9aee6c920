//! Counts at a limit and one above it, and claims on memory.

use super::{Defect, Expect, base_ops};
use crate::broken::Broken;
use crate::cases::{self, Maker};
use crate::model::{Layout, Op};
use serde_json::json;

/// Counts of an event chunk: one above the limit is an error of its own; at the limit the table ends behind the body.
pub fn limits(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    for (name, above, at, place, limit) in [
        ("events-records-at-limit", "events-records-above-limit", 40, 68, 1u64 << 24),
        ("events-descriptors-at-limit", "events-descriptors-above-limit", 44, 60, 65_520),
        ("events-contexts-at-limit", "events-contexts-above-limit", 48, 64, 65_520),
        ("events-epochs-at-limit", "events-epochs-above-limit", 52, 56, 1 << 24),
    ] {
        let mut broken = Broken::new(&base_ops(m), layout);
        let start = broken.place(0, place) as u64;
        let offset = broken.body(b"EVNT", 0, at, limit, 4) + start;
        out.push((name, broken, Expect::Unreadable("truncated", offset)));
        let mut broken = Broken::new(&base_ops(m), layout);
        let offset = broken.body(b"EVNT", 0, at, limit + 1, 4);
        out.push((above, broken, Expect::Unreadable("limit-exceeded", offset)));
    }
    // The decoded lengths of two chunks together are more than a file of this length may have; nothing is decoded.
    let mut broken = Broken::new(&cases::two_cpus(m), layout);
    broken.header(b"EVNT", 0, 13, 1, 1);
    broken.header(b"EVNT", 0, 32, 40 << 20, 8);
    broken.header(b"EVNT", 1, 13, 1, 1);
    let offset = broken.header(b"EVNT", 1, 32, 40 << 20, 8);
    out.push(("memory-of-events", broken, Expect::Refused("limit-exceeded", offset)));
    out.extend(metadata(layout));
    out.extend(cpus(m, layout));
    out
}

/// Three CPUs, where two are the limit: those of chunks that are damaged at open do not count.
fn cpus(m: Maker, layout: Layout) -> Vec<Defect> {
    let within = |expect| Expect::Within(json!({"streams": 2}), Box::new(expect));
    let broken = Broken::new(&cases::two_cpus(m), layout);
    let offset = broken.chunk(b"EVNT", 3).0 as u64;
    let above = ("cpus-above-limit", broken, within(Expect::Damage(vec![("limit-exceeded", offset)])));
    let mut broken = Broken::new(&cases::two_cpus(m), layout);
    let (start, _) = broken.chunk(b"EVNT", 2);
    assert_eq!((broken.number(start + 40, 4), broken.number(start + 44, 4)), (1, 0), "all of CPU 1");
    broken.file.bytes[start + 70] ^= 1;
    let damaged = within(Expect::Damage(vec![("checksum", start as u64 + 64)]));
    vec![above, ("cpus-at-limit", broken, damaged)]
}

/// A chunk without events that claims more memory than there is; one that claims less does not decode.
fn metadata(layout: Layout) -> Vec<Defect> {
    static STORED: [u8; 4_000] = [b'x'; 4_000];
    let mut out = Vec::new();
    for (name, raw_len) in [("memory-above-zstd", 100u64 << 20), ("memory-within-zstd", 60 << 20)] {
        let mut broken = Broken::new(&[Op::Meta(vec![("key", &STORED)])], layout);
        broken.header(b"META", 0, 13, 2, 1);
        let offset = broken.header(b"META", 0, 32, raw_len, 8);
        let expect = match raw_len >> 20 {
            100 => Expect::Refused("limit-exceeded", offset),
            _ => Expect::Damage(vec![("codec", offset + 64)]),
        };
        out.push((name, broken, expect));
    }
    out
}
