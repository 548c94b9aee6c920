//! Indices that are wrong: found by those who use them.

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::bytes::crc32;
use crate::cases::{self, Maker};
use crate::model::Layout;

const ROW: usize = 120;

/// What is changed in a file.
type Change<'a> = &'a dyn Fn(&mut Broken);

fn base(m: Maker, layout: Layout) -> Broken {
    Broken::new(&cases::two_cpus(m), layout)
}

/// Changes the row of the first chunk of a kind; the checksums of its header and of the index are right. Returns the
/// offset of the chunk.
pub(super) fn row(broken: &mut Broken, kind: &[u8; 4], at: usize, value: u64, len: usize) -> u64 {
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
        ("index-loss-damaged", 44, 4, 4),
        ("index-loss-overwritten", 44, 8, 4),
        ("index-classes", 48, u64::MAX, 8),
        ("index-header", 56 + 12, 5, 1),
    ] {
        let mut broken = base(m, layout);
        let chunk = row(&mut broken, b"EVNT", at, value, len);
        let errors = vec![("index", chunk)];
        out.push((name, broken, Expect::by_index(errors, vec![], true)));
    }
    // A counted loss of none is none, as in the head; a number that is not counted means nothing.
    for (name, at, value, len) in [("index-loss-alike", 44, 1, 4), ("index-lost-not-counted", 32, 9, 8)] {
        let mut broken = base(m, layout);
        row(&mut broken, b"EVNT", at, value, len);
        out.push((name, broken, Expect::by_index(vec![], vec![], true)));
    }
    // A bit that is not known is an uncounted loss.
    let mut broken = base(m, layout);
    broken.body(b"EVNT", 0, 4, 2, 4);
    copy_header(&mut broken);
    row(&mut broken, b"EVNT", 44, 1 << 30, 4);
    out.push(("index-loss-unknown", broken, Expect::by_index(vec![], vec![], true)));
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
    // The file is damaged elsewhere: it is walked.
    let mut damaged = |name, change: &dyn Fn(&mut Broken) -> (&'static str, u64)| {
        let mut broken = base(m, layout);
        let damage = change(&mut broken);
        out.push((name, broken, Expect::NoIndex(vec![damage])));
    };
    damaged("index-header-copy", &|b| {
        b.file.bytes[41] ^= 1;
        ("checksum", 0)
    });
    damaged("index-damaged-schema", &|b| {
        let (offset, _) = b.chunk(b"SCHM", 1);
        b.file.bytes[offset + 64 + 44] ^= 1;
        ("checksum", offset as u64 + 64)
    });
    damaged("index-not-stored", &|b| ("malformed", b.header(b"INDX", 0, 13, 1, 1)));
    damaged("index-body-checksum", &|b| {
        let (offset, _) = b.chunk(b"INDX", 0);
        b.file.bytes[offset + 64 + 12] ^= 1;
        ("checksum", offset as u64 + 64)
    });
    damaged("index-trailer-checksum", &|b| {
        let (offset, _) = b.chunk(b"TRLR", 0);
        b.file.bytes[offset + 64 + 16] ^= 1;
        ("checksum", offset as u64 + 64)
    });
    damaged("index-trailer-counts", &|b| {
        b.body(b"TRLR", 0, 4, 1, 4);
        ("malformed", b.file.bytes.len() as u64)
    });
    // The row is compared before the checksum of the body.
    let mut broken = base(m, layout);
    let chunk = row(&mut broken, b"EVNT", 8, 7, 8);
    let record = chunk as usize + 64 + broken.place(0, 68);
    broken.file.bytes[record + 8] ^= 1;
    let (errors, unreadable) = (vec![("index", chunk)], vec![("checksum", chunk + 64)]);
    out.push(("index-and-checksum", broken, Expect::by_index(errors, unreadable, true)));
    out.extend(prefixes(m, layout));
    let mut unused = |name, change: &dyn Fn(&mut Broken)| {
        let mut broken = base(m, layout);
        change(&mut broken);
        out.push((name, broken, Expect::by_index(vec![], vec![], false)));
    };
    unused("index-of-others", &|b| drop_number(row(b, b"SCHM", 56 + 12, 3, 1)));
    unused("index-gap", &|b| drop_number(row(b, b"EVNT", 0, 64, 8)));
    // The header in a row is of another file, or of no length.
    unused("index-salt", &|b| drop_number(row(b, b"EVNT", 56 + 4, 0, 4)));
    unused("index-no-length", &|b| drop_number(row(b, b"EVNT", 56 + 16, 0, 8)));
    unused("index-row-length", &|b| drop_number(b.body(b"INDX", 0, 4, 119, 4)));
    unused("index-head-length", &|b| drop_number(b.body(b"INDX", 0, 0, 15, 4)));
    unused("index-heap-outside", &|b| drop_number(b.body(b"INDX", 0, 12, 1 << 20, 4)));
    unused("index-first-row", &|b| drop_number(row(b, b"HDRC", 0, 128, 8)));
    unused("index-last-row", &|b| {
        let (index, _) = b.chunk(b"INDX", 0);
        let rows = b.number(index + 64 + 8, 4);
        b.body(b"INDX", 0, 8, rows - 1, 4);
    });
    unused("index-row-checksum", &|b| {
        let (index, _) = b.chunk(b"INDX", 0);
        let at = 16 + 2 * ROW + 116;
        let crc = b.number(index + 64 + at, 4);
        b.body(b"INDX", 0, at, crc ^ 1, 4);
    });
    unused("index-row-sync", &|b| drop_number(row(b, b"EVNT", 56, 0, 4)));
    // What a walk would call damage, in the header that a row has of an event chunk.
    unused("index-row-body", &|b| drop_number(row(b, b"EVNT", 56 + 24, 1 << 30, 8)));
    unused("index-row-prefix", &|b| drop_number(row(b, b"EVNT", 56 + 52, 1 << 30, 4)));
    unused("index-row-decoded", &|b| drop_number(row(b, b"EVNT", 56 + 32, (64 << 20) + 1, 8)));
    unused("index-row-stream", &|b| drop_number(row(b, b"EVNT", 56 + 40, 0xffff_ffff, 4)));
    unused("index-row-sequence", &|b| drop_number(row(b, b"EVNT", 56 + 44, 7, 4)));
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

/// The row of the first event chunk gets the header that the file has.
fn copy_header(broken: &mut Broken) {
    let (chunk, _) = broken.chunk(b"EVNT", 0);
    for at in (0..64).step_by(4) {
        let value = broken.number(chunk + at, 4);
        row(broken, b"EVNT", 56 + at, value, 4);
    }
}

/// Prefixes of an event chunk that are damaged when the file is opened, and by the index when the chunk is read.
fn prefixes(m: Maker, layout: Layout) -> Vec<Defect> {
    let changes: [(_, _, Change); 2] = [
        ("index-prefix-checksum", "checksum", &|b| {
            let (chunk, _) = b.chunk(b"EVNT", 0);
            b.file.bytes[chunk + 56] ^= 1;
            let crc = crc32(&b.file.bytes[chunk..chunk + 60]);
            b.put(chunk + 60, crc.into(), 4);
        }),
        ("index-prefix-length", "malformed", &|b| drop_number(b.header(b"EVNT", 0, 52, 95, 4))),
    ];
    let mut out = Vec::new();
    for (name, code, change) in changes {
        let mut broken = base(m, layout);
        change(&mut broken);
        copy_header(&mut broken);
        let damage = vec![(code, broken.chunk(b"EVNT", 0).0 as u64 + 64)];
        let expect =
            Expect::ByIndex { damages: damage.clone(), errors: damage, unreadable: vec![], used: true };
        out.push((name, broken, expect));
    }
    out
}

fn drop_number(_: u64) {}
