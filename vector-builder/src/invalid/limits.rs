//! Counts at a limit and one above it, and claims on memory.

use super::{Defect, Expect, base_ops};
use crate::broken::Broken;
use crate::cases::{self, Maker};
use crate::model::{Layout, Op};

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
    out.extend(sums_of_events(m, layout));
    out.extend(metadata(layout));
    out.extend(changed(m, layout));
    out.extend(arrays(m, layout));
    out.extend(cpus(m, layout));
    out
}

/// The decoded lengths of two chunks, at the limit and above it; the first one damaged, and too long to count.
fn sums_of_events(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    for (name, more) in [("sum-of-events-at-limit", 0u64), ("sum-of-events-above-limit", 1)] {
        let mut broken = Broken::new(&cases::two_cpus(m), layout);
        let (_, end) = broken.chunk(b"EVNT", 1);
        let (half, rest) = (32 << 20, (32 << 20) + 16 * end as u64 + more);
        broken.header(b"EVNT", 0, 13, 1, 1);
        let first = broken.header(b"EVNT", 0, 32, half, 8);
        broken.header(b"EVNT", 1, 13, 1, 1);
        let second = broken.header(b"EVNT", 1, 32, rest, 8);
        for nth in [2, 3] {
            broken.header(b"EVNT", nth, 13, 1, 1);
            broken.header(b"EVNT", nth, 32, 0, 8);
        }
        let expect = match more {
            1 => Expect::Refused("limit-exceeded", second),
            _ => {
                let others = [2, 3].map(|nth| ("malformed", broken.chunk(b"EVNT", nth).0 as u64));
                let both = [first, second].map(|offset| ("codec", offset + 64));
                Expect::Both(vec![], [both, others].concat())
            }
        };
        out.push((name, broken, expect));
    }
    for (name, len, is_damaged) in
        [("sum-of-events-damaged", 40u64 << 20, true), ("sum-of-events-too-long", (64 << 20) + 1, false)]
    {
        let mut broken = Broken::new(&cases::two_cpus(m), layout);
        broken.header(b"EVNT", 0, 13, 1, 1);
        let first = broken.header(b"EVNT", 0, 32, len, 8);
        broken.header(b"EVNT", 1, 13, 1, 1);
        let second = broken.header(b"EVNT", 1, 32, 40 << 20, 8);
        if is_damaged {
            broken.file.bytes[first as usize + 70] ^= 1;
        }
        let expect = match is_damaged {
            true => Expect::Refused("limit-exceeded", second),
            false => Expect::Damage(vec![("limit-exceeded", first)]),
        };
        out.push((name, broken, expect));
    }
    out
}

/// Limits that the caller changes: the file just meets them, then exceeds them by one.
fn changed(m: Maker, layout: Layout) -> Vec<Defect> {
    static LONG: [u8; 8_000] = [b'x'; 8_000];
    let ops = || [vec![Op::Meta(vec![("key", &LONG)])], cases::two_cpus(m)].concat();
    let encoded = Layout { codec: 1, ..layout };
    let many = |layout| Broken::new(&cases::many(m), layout);
    let of = |broken: &Broken, kind, at, len| broken.number(broken.chunk(kind, 0).0 + at, len);
    let mut out = Vec::new();
    let mut add =
        |at_limit, above, name, broken: &dyn Fn() -> Broken, limit, expect: &dyn Fn(u64) -> Expect| {
            let file = broken();
            let chunk = match name {
                "event_body_len" | "records" => b"EVNT",
                _ => b"META",
            };
            let offset = file.chunk(chunk, 0).0 as u64;
            out.push((at_limit, file, Expect::within(name, limit, Expect::Missing)));
            out.push((above, broken(), Expect::within(name, limit - 1, expect(offset))));
        };
    let left_out = |offset| Expect::Damage(vec![("limit-exceeded", offset)]);
    let plain = || Broken::new(&ops(), layout);
    let stored = || Broken::new(&ops(), encoded);
    let len = of(&plain(), b"META", 16, 8);
    add("chunk-len-at-limit", "chunk-len-above-limit", "chunk_len", &plain, len, &left_out);
    let len = of(&stored(), b"META", 32, 8);
    add("decoded-len-at-limit", "decoded-len-above-limit", "decoded_len", &stored, len, &left_out);
    // It is decoded to more than a chunk may have.
    add("decoded-chunk-at-limit", "decoded-chunk-above-limit", "chunk_len", &stored, len, &left_out);
    let one = || many(layout);
    let len = of(&one(), b"EVNT", 24, 8);
    add("event-body-at-limit", "event-body-above-limit", "event_body_len", &one, len, &left_out);
    let one = || many(encoded);
    let len = of(&one(), b"EVNT", 32, 8);
    add("event-body-lz4-at-limit", "event-body-lz4-above-limit", "event_body_len", &one, len, &left_out);
    let cannot_be_read = |offset| Expect::Unreadable("limit-exceeded", offset + 64);
    add("records-at-limit", "records-above-limit", "records", &one, 40, &cannot_be_read);
    // What is stored as it is has no limit of a decoded body.
    out.push(("decoded-len-without-codec", plain(), Expect::within("decoded_len", 1, Expect::Missing)));
    for (at_limit, above, name, limit) in [
        ("classes-at-limit", "classes-above-limit", "classes", 1),
        ("shapes-at-limit", "shapes-above-limit", "shapes", 3),
        ("fields-at-limit", "fields-above-limit", "fields", 10),
        ("names-at-limit", "names-above-limit", "names", NAMES_LEN),
    ] {
        let small = || Broken::new(&[Op::Event(0, m.kmalloc(1_000, 0x40, 100))], layout);
        let file = small();
        let (at, code) = (file.chunk(b"SCHM", 0).0, "limit-exceeded");
        assert_eq!(file.number(at + 64 + 12, 4), 1, "one class");
        let damages = [0, 1].map(|nth| (code, file.chunk(b"SCHM", nth).0 as u64 + 64));
        out.push((at_limit, file, Expect::within(name, limit, Expect::Missing)));
        out.push((above, small(), Expect::within(name, limit - 1, Expect::Damage(damages.to_vec()))));
    }
    out
}

/// Bytes of the names of kmalloc: its system, its own and those of its fields.
const NAMES_LEN: u64 = 109;

/// The arrays of 32 events are one array, which counts for each of them.
fn arrays(m: Maker, layout: Layout) -> Vec<Defect> {
    let name = "x".repeat(3_999);
    let ops: Vec<Op> = (0..32).map(|i| Op::Event(0, m.free(10 + i, 0x40, &name))).collect();
    let file = || Broken::new(&ops, layout);
    let (offset, _) = file().chunk(b"EVNT", 0);
    let body_len = file().number(offset + 32, 8);
    assert_eq!(body_len % 2, 0, "32 events and 16 times the length");
    let limit = 4_000 - body_len / 2;
    let above = Expect::Unreadable("limit-exceeded", offset as u64 + 64);
    vec![
        ("arrays-at-limit", file(), Expect::within("arrays", limit, Expect::Missing)),
        ("arrays-above-limit", file(), Expect::within("arrays", limit - 1, above)),
    ]
}

/// Three CPUs, where two are the limit: those of chunks that are damaged at open do not count.
fn cpus(m: Maker, layout: Layout) -> Vec<Defect> {
    let within = |expect| Expect::within("streams", 2, expect);
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
