//! Ends of files, finished or not, and stretches that are no chunks.

use super::{Defect, Expect, base_ops};
use crate::broken::Broken;
use crate::cases::Maker;
use crate::model::Layout;

pub fn ends(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    let mut add = |name, change: &dyn Fn(&mut Broken) -> Vec<(&'static str, u64)>, finished| {
        let mut broken = Broken::new(&base_ops(m), layout);
        let damage = change(&mut broken);
        out.push((name, broken, Expect::Ended(damage, finished)));
    };
    let file_length = |b: &mut Broken| {
        b.body(b"TRLR", 0, 8, 64, 8);
        vec![("malformed", b.file.bytes.len() as u64)]
    };
    add("trailer-file-length", &file_length, true);
    let zeros = |b: &mut Broken| {
        let end = b.file.bytes.len();
        b.file.bytes.resize(end + 128, 0);
        vec![("not-a-chunk", end as u64)]
    };
    add("zeros-behind-trailer", &zeros, true);
    let torn = |b: &mut Broken| {
        let (end, (start, _)) = (b.file.bytes.len(), b.chunk(b"EVNT", 0));
        b.file.bytes.extend_from_within(start..start + 128);
        vec![("truncated", end as u64)]
    };
    add("torn-behind-trailer", &torn, true);
    let more = |b: &mut Broken| {
        let (start, end) = b.chunk(b"META", 0);
        b.file.bytes.extend_from_within(start..end);
        Vec::new()
    };
    add("chunk-behind-trailer", &more, false);
    let damaged = |b: &mut Broken| {
        let (start, _) = b.chunk(b"TRLR", 0);
        b.file.bytes[start + 70] ^= 1;
        vec![("checksum", start as u64 + 64)]
    };
    add("trailer-checksum", &damaged, false);
    // Each sound header ends a stretch, and begins another if its chunk is too long or not all there.
    let stretches = |b: &mut Broken| {
        let (first, _) = b.chunk(b"META", 0);
        b.file.bytes[first + 20] ^= 1;
        let too_long = b.header(b"META", 1, 16, 1 << 31, 8);
        let torn = b.header(b"FILE", 0, 16, 1 << 20, 8);
        vec![("not-a-chunk", first as u64), ("limit-exceeded", too_long), ("truncated", torn)]
    };
    add("three-stretches", &stretches, true);
    out
}
