//! Chunk headers, checksums and codecs of chunks without events, and the trailer.

use super::{Defect, Expect, base_ops};
use crate::broken::Broken;
use crate::bytes::crc32;
use crate::cases::Maker;
use crate::model::{Layout, Op};

pub fn chunks(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    let mut add = |name, change: &dyn Fn(&mut Broken) -> Vec<(&'static str, u64)>| {
        let mut broken = Broken::new(&base_ops(m), layout);
        let damage = change(&mut broken);
        out.push((name, broken, Expect::Damage(damage)));
    };
    add("header-damaged", &|b| {
        b.file.bytes[41] ^= 1;
        vec![("checksum", 0)]
    });
    add("chunk-header", &|b| {
        let (offset, _) = b.chunk(b"META", 0);
        b.file.bytes[offset + 20] ^= 1;
        vec![("not-a-chunk", offset as u64)]
    });
    add("other-salt", &|b| {
        let (offset, _) = b.chunk(b"META", 0);
        b.put(offset + 4, 0, 4);
        b.stamp(offset, offset + 128);
        vec![("not-a-chunk", offset as u64)]
    });
    add("total-length", &|b| vec![("malformed", b.header(b"META", 0, 16, 130, 8))]);
    add("no-length", &|b| vec![("malformed", b.header(b"META", 0, 16, 0, 8))]);
    add("body-length", &|b| vec![("malformed", b.header(b"META", 0, 24, 1 << 40, 8))]);
    add("prefix-length", &|b| vec![("malformed", b.header(b"META", 0, 52, 1 << 30, 4))]);
    add("chunk-too-long", &|b| vec![("limit-exceeded", b.header(b"META", 0, 16, 1 << 31, 8))]);
    add("past-the-end", &|b| vec![("truncated", b.header(b"TRLR", 0, 16, 192, 8))]);
    add("body-checksum", &|b| {
        let (offset, _) = b.chunk(b"META", 0);
        b.file.bytes[offset + 70] ^= 1;
        vec![("checksum", offset as u64 + 64)]
    });
    add("padding-checksum", &|b| {
        let (offset, end) = b.chunk(b"CLOK", 0);
        b.file.bytes[end - 1] = 1;
        vec![("checksum", offset as u64 + 64)]
    });
    add("prefix-checksum", &|b| {
        let (offset, end) = b.chunk(b"EVNT", 0);
        b.stamp(offset, end);
        b.put(offset + 56, 0, 4);
        let crc = crc32(&b.file.bytes[offset..offset + 60]);
        b.put(offset + 60, crc.into(), 4);
        vec![("checksum", offset as u64 + 64)]
    });
    add("unknown-codec", &|b| vec![("unknown-codec", b.header(b"META", 0, 13, 7, 1) + 13)]);
    add("codec-garbage", &|b| {
        let offset = b.header(b"META", 0, 13, 1, 1);
        vec![("codec", offset + 64)]
    });
    for (name, kind) in [("header-copy-codec", b"HDRC"), ("index-codec", b"INDX"), ("trailer-codec", b"TRLR")]
    {
        add(name, &|b| vec![("malformed", b.header(kind, 0, 13, 1, 1))]);
    }
    for (name, kind) in [("header-copy-checksum", b"HDRC"), ("index-checksum", b"INDX")] {
        add(name, &|b| {
            let (offset, _) = b.chunk(kind, 0);
            b.file.bytes[offset + 70] ^= 1;
            vec![("checksum", offset as u64 + 64)]
        });
    }
    add("two-stretches", &|b| {
        let (first, _) = b.chunk(b"META", 0);
        b.file.bytes[first + 20] ^= 1;
        vec![("not-a-chunk", first as u64), ("malformed", b.header(b"META", 1, 16, 130, 8))]
    });
    add("bytes-behind", &|b| {
        let end = b.file.bytes.len();
        b.file.bytes.extend_from_within(64..127);
        vec![("truncated", end as u64)]
    });
    add("raw-length-below-prefix", &|b| {
        b.header(b"META", 0, 13, 1, 1);
        b.header(b"META", 0, 52, 4, 4);
        vec![("malformed", b.header(b"META", 0, 32, 3, 8))]
    });
    add("filter-elsewhere", &|b| vec![("unknown-codec", b.header(b"META", 0, 13, 0x11, 1) + 13)]);
    add("trailer-head", &|b| vec![("malformed", b.body(b"TRLR", 0, 0, 39, 4))]);
    add("body-shorter-than-head", &|b| vec![("truncated", b.resize(b"META", 0, 8) + 64)]);
    add("two-lengths", &|b| vec![("malformed", b.header(b"META", 0, 32, 5, 8))]);
    add("decoded-too-long", &|b| {
        b.header(b"META", 0, 32, 1 << 30, 8);
        vec![("limit-exceeded", b.header(b"META", 0, 13, 1, 1))]
    });
    add("trailer-counts", &|b| {
        b.body(b"TRLR", 0, 4, 3, 4);
        vec![("malformed", b.file.bytes.len() as u64)]
    });
    add("twice", &|b| {
        let (offset, end) = b.chunk(b"EVNT", 0);
        let copy = b.file.bytes[offset..end].to_vec();
        b.file.bytes.splice(end..end, copy);
        vec![("malformed", end as u64)]
    });
    // It is left out, and does not count for the limit of all event chunks.
    add("event-body-too-long", &|b| vec![("limit-exceeded", b.header(b"EVNT", 0, 32, 1 << 40, 8))]);
    add("events-of-no-cpu", &|b| vec![("malformed", b.header(b"EVNT", 0, 40, 0xffff_ffff, 4))]);
    add("head-not-in-prefix", &|b| vec![("malformed", b.header(b"EVNT", 0, 52, 95, 4) + 64)]);
    let mut ops = base_ops(m);
    ops.insert(0, Op::Unknown(*b"xNEW", 0, b"of a later version"));
    let mut unknown = Broken::new(&ops, layout);
    let (offset, _) = unknown.chunk(b"xNEW", 0);
    unknown.file.bytes[offset + 70] ^= 1;
    out.push(("unknown-kind-checksum", unknown, Expect::Damage(vec![("checksum", offset as u64 + 64)])));
    out
}
