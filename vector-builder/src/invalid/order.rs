//! Two defects in one chunk: the check that comes first gives the error.

use super::{Defect, Expect, base_ops};
use crate::broken::Broken;
use crate::bytes::crc32;
use crate::cases::Maker;
use crate::model::Layout;

/// Offsets in a body, with new values and their lengths.
type Changes = &'static [(usize, u64, usize)];

pub fn order(m: Maker, layout: Layout) -> Vec<Defect> {
    [opening, reading, tables].into_iter().flat_map(|group| group(m, layout)).collect()
}

/// When the file is opened.
fn opening(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    let mut add = |name, code, change: &dyn Fn(&mut Broken) -> u64| {
        let mut broken = Broken::new(&base_ops(m), layout);
        let offset = change(&mut broken);
        out.push((name, broken, Expect::Damage(vec![(code, offset)])));
    };
    add("order-lengths-limit", "malformed", &|b| b.header(b"META", 0, 16, (1 << 31) + 2, 8));
    add("order-prefix-checksum-length", "checksum", &|b| {
        let offset = b.header(b"EVNT", 0, 52, 95, 4);
        let start = offset as usize;
        b.put(start + 56, 0, 4);
        let crc = crc32(&b.file.bytes[start..start + 60]);
        b.put(start + 60, crc.into(), 4);
        offset + 64
    });
    add("order-prefix-length-cpu", "malformed", &|b| {
        b.header(b"EVNT", 0, 40, 0xffff_ffff, 4);
        b.header(b"EVNT", 0, 52, 95, 4) + 64
    });
    add("order-cpu-limit", "malformed", &|b| {
        b.header(b"EVNT", 0, 40, 0xffff_ffff, 4);
        b.header(b"EVNT", 0, 32, 1 << 40, 8)
    });
    add("order-limit-sequence", "limit-exceeded", &|b| {
        let (start, end) = b.chunk(b"EVNT", 0);
        let copy = b.file.bytes[start..end].to_vec();
        b.file.bytes.splice(end..end, copy);
        b.put(end + 32, 1 << 40, 8);
        b.stamp(end, 2 * end - start);
        end as u64
    });
    add("order-checksum-codec", "checksum", &|b| {
        let offset = b.header(b"META", 0, 13, 12, 1);
        b.file.bytes[offset as usize + 70] ^= 1;
        offset + 64
    });
    add("order-length-codec", "malformed", &|b| {
        b.header(b"META", 0, 52, 4, 4);
        b.header(b"META", 0, 32, 3, 8);
        b.header(b"META", 0, 13, 12, 1)
    });
    out
}

/// When the events of a chunk are read.
fn reading(m: Maker, layout: Layout) -> Vec<Defect> {
    let cases: [(_, _, Changes); 3] = [
        ("order-head-count", "malformed", &[(0, 95, 4), (40, 1 << 25, 4)]),
        ("order-count-stride", "limit-exceeded", &[(52, 1 << 25, 4), (80, 99, 2)]),
        ("order-stride-records", "malformed", &[(80, 99, 2), (68, 1 << 20, 4)]),
    ];
    let defect = |(name, code, changes): (_, _, Changes)| {
        let mut broken = Broken::new(&base_ops(m), layout);
        let mut offset = 0;
        for &(at, value, len) in changes {
            offset = broken.body(b"EVNT", 0, at, value, len);
        }
        (name, broken, Expect::Unreadable(code, offset))
    };
    cases.map(defect).into()
}

/// Two tables that end behind the body: records, contexts, heap, descriptors, epochs are checked in this order.
fn tables(m: Maker, layout: Layout) -> Vec<Defect> {
    let names = ["order-records", "order-contexts", "order-heap", "order-descriptors"];
    // The offset of each table, and where its length or count stands.
    let tables = [(68, None), (64, None), (72, Some(76)), (60, None), (56, Some(52))];
    let mut out = Vec::new();
    for (first, name) in names.into_iter().enumerate() {
        let mut broken = Broken::new(&base_ops(m), layout);
        let mut offset = 0;
        for (number, (at, count)) in tables.into_iter().enumerate().skip(first) {
            let place = (1 << 20) + 64 * number as u64;
            if let Some(count) = count {
                broken.body(b"EVNT", 0, count, 1, 4);
            }
            let body = broken.body(b"EVNT", 0, at, place, 4);
            if number == first {
                offset = body + place;
            }
        }
        out.push((name, broken, Expect::Unreadable("truncated", offset)));
    }
    out
}
