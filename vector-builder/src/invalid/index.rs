//! Indices that are wrong: found by those who use them.

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::bytes::crc32;
use crate::cases::{self, Maker};
use crate::model::Layout;

const ROW: usize = 120;

fn base(m: Maker, layout: Layout) -> Broken {
    Broken::new(&cases::two_cpus(m), layout)
}

/// Changes the row of the first chunk of a kind; the checksums of its header and of the index are right. Returns the
/// offset of the chunk.
fn row(broken: &mut Broken, kind: &[u8; 4], at: usize, value: u64, len: usize) -> u64 {
    let (chunk, _) = broken.chunk(kind, 0);
    let number = broken.file.chunks.iter().position(|c| c.offset == chunk).unwrap_or(0);
    let (index, end) = broken.chunk(b"INDX", 0);
    let row = index + 64 + 16 + ROW * number;
    broken.put(row + at, value, len);
    let crc = crc32(&broken.file.bytes[row + 56..row + 116]);
    broken.put(row + 116, crc.into(), 4);
    broken.stamp(index, end);
    chunk as u64
}

pub fn index(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    for (name, at, value, len) in [
        ("index-first-time", 8, 7, 8),
        ("index-last-time", 16, 7, 8),
        ("index-first-event", 24, 7, 8),
        ("index-count", 40, 1, 4),
        ("index-loss", 44, 2, 4),
        ("index-classes", 48, u64::MAX, 8),
        ("index-header", 56 + 12, 5, 1),
    ] {
        let mut broken = base(m, layout);
        let chunk = row(&mut broken, b"EVNT", at, value, len);
        let errors = vec![("index", chunk)];
        out.push((name, broken, Expect::ByIndex { errors, unreadable: vec![], used: true }));
    }
    // A counted loss of none is none, as in the head.
    let mut broken = base(m, layout);
    row(&mut broken, b"EVNT", 44, 1, 4);
    let expect = Expect::ByIndex { errors: vec![], unreadable: vec![], used: true };
    out.push(("index-loss-alike", broken, expect));
    // Lengths that a walk refuses: those of an event chunk and of its row, and that of the trailer.
    let mut broken = base(m, layout);
    let chunk = broken.header(b"EVNT", 0, 24, 1 << 30, 8);
    row(&mut broken, b"EVNT", 56 + 24, 1 << 30, 8);
    out.push(("index-chunk-lengths", broken, Expect::NoIndex(vec![("malformed", chunk)])));
    let mut broken = base(m, layout);
    let (trailer, _) = broken.chunk(b"TRLR", 0);
    broken.put(trailer + 16, 104, 8);
    broken.stamp(trailer, trailer + 104);
    out.push(("index-trailer-length", broken, Expect::NoIndex(vec![("malformed", trailer as u64)])));
    // The row is compared before the checksum of the body.
    let mut broken = base(m, layout);
    let chunk = row(&mut broken, b"EVNT", 8, 7, 8);
    let record = chunk as usize + 64 + broken.place(0, 68);
    broken.file.bytes[record + 8] ^= 1;
    let (errors, unreadable) = (vec![("index", chunk)], vec![("checksum", chunk + 64)]);
    out.push(("index-and-checksum", broken, Expect::ByIndex { errors, unreadable, used: true }));
    let mut unused = |name, change: &dyn Fn(&mut Broken)| {
        let mut broken = base(m, layout);
        change(&mut broken);
        let expect = Expect::ByIndex { errors: vec![], unreadable: vec![], used: false };
        out.push((name, broken, expect));
    };
    unused("index-of-others", &|b| drop_number(row(b, b"SCHM", 56 + 12, 3, 1)));
    unused("index-gap", &|b| drop_number(row(b, b"EVNT", 0, 64, 8)));
    // The header in a row is of another file, or of no length.
    unused("index-salt", &|b| drop_number(row(b, b"EVNT", 56 + 4, 0, 4)));
    unused("index-no-length", &|b| drop_number(row(b, b"EVNT", 56 + 16, 0, 8)));
    unused("index-row-length", &|b| drop_number(b.body(b"INDX", 0, 4, 119, 4)));
    unused("index-no-rows", &|b| drop_number(b.body(b"INDX", 0, 8, 0, 4)));
    // Two rows in another order than their chunks.
    unused("index-order", &|b| {
        let (index, end) = b.chunk(b"INDX", 0);
        let rows = index + 64 + 16 + ROW;
        let (first, second) = b.file.bytes[rows..rows + 2 * ROW].split_at_mut(ROW);
        first.swap_with_slice(second);
        b.stamp(index, end);
    });
    // The trailer leads to a chunk that is no index, and to an index that does not end where the trailer starts.
    unused("index-elsewhere", &|b| {
        let (events, _) = b.chunk(b"EVNT", 0);
        b.body(b"TRLR", 0, 32, events as u64, 8);
    });
    unused("index-not-at-end", &|b| {
        let (_, end) = b.chunk(b"INDX", 0);
        let (start, _) = b.chunk(b"SCHM", 0);
        let (_, schema_end) = b.chunk(b"SCHM", 0);
        let schema = b.file.bytes[start..schema_end].to_vec();
        let len = b.file.bytes.len() + schema.len();
        let chunks = b.file.chunks.len() as u64 + 1;
        b.body(b"TRLR", 0, 4, chunks, 4);
        b.body(b"TRLR", 0, 8, len as u64, 8);
        b.file.bytes.splice(end..end, schema);
    });
    out
}

fn drop_number(_: u64) {}
