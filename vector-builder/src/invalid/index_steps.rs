//! Steps of section INDX that a wrong reader takes for granted: the file is sound but for what one of them looks at.

use serde_json::json;

use super::index::row;
use super::{Defect, Expect};
use crate::broken::Broken;
use crate::cases::Maker;
use crate::model::{Layout, Loss, Op};

const ROW: usize = 120;

fn base(m: Maker, layout: Layout) -> Broken {
    Broken::new(&[Op::Meta(vec![("key", b"value")]), Op::Event(0, m.kmalloc(10, 0x40, 8))], layout)
}

/// Start of the index, the number of its rows, and the end of the file.
fn index_of(b: &Broken) -> (usize, usize, u64) {
    let (start, _) = b.chunk(b"INDX", 0);
    (start, b.number(start + 64 + 8, 4) as usize, b.file.bytes.len() as u64)
}

/// Puts bytes behind the body of the index, and makes the trailer right again.
fn insert(b: &mut Broken, at: usize, bytes: &[u8]) {
    b.file.bytes.splice(at..at, bytes.iter().copied());
    let trailer = b.file.bytes.len() - 128;
    b.put(trailer + 64 + 8, trailer as u64 + 128, 8);
    b.stamp(trailer, trailer + 128);
}

pub fn steps(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    let mut add = |name, layout, change: &dyn Fn(&mut Broken) -> Expect| {
        let mut broken = base(m, layout);
        let expect = change(&mut broken);
        out.push((name, broken, expect));
    };
    let no_index = |code, offset| Expect::NoIndex(vec![(code, offset)]);
    let unused = || Expect::by_index(vec![], vec![], false);
    // The trailer counts the zeros behind it.
    add("index-zeros-behind-trailer", layout, &|b| {
        let (.., end) = index_of(b);
        b.body(b"TRLR", 0, 8, end + 64, 8);
        b.file.bytes.resize(end as usize + 64, 0);
        no_index("not-a-chunk", end)
    });
    add("index-of-unknown-kind", layout, &|b| {
        let (start, end) = b.chunk(b"INDX", 0);
        b.file.bytes[start + 8..start + 12].copy_from_slice(b"xNDX");
        b.stamp(start, end);
        unused()
    });
    // A chunk between index and trailer, which the trailer does not count.
    add("index-not-at-end-uncounted", layout, &|b| {
        let (start, end) = b.chunk(b"META", 0);
        let (meta, at) = (b.file.bytes[start..end].to_vec(), b.chunk(b"INDX", 0).1);
        insert(b, at, &meta);
        no_index("malformed", b.file.bytes.len() as u64)
    });
    // A head of 12 bytes, with the rows behind it; their first offset is a length of a heap that is there.
    add("index-head-of-12", layout, &|b| {
        let (start, rows, _) = index_of(b);
        let (body, end) = (start + 64, b.chunk(b"INDX", 0).1);
        b.file.bytes.copy_within(body + 16..body + 16 + rows * ROW, body + 12);
        insert(b, end, &[0; 64]);
        b.put(body, 12, 4);
        b.put(start + 16, (end + 64 - start) as u64, 8);
        for at in [24, 32] {
            b.put(start + at, (12 + rows * ROW + 64) as u64, 8);
        }
        b.stamp(start, end + 64);
        unused()
    });
    // The first row is missing, then the last one; the trailer counts a chunk less.
    for (name, is_first) in [("index-without-first-row", true), ("index-without-last-row", false)] {
        add(name, layout, &|b| {
            let (start, rows, end) = index_of(b);
            let (from, body) = (start + 64 + 16, 16 + (rows - 1) * ROW);
            if is_first {
                b.file.bytes.copy_within(from + ROW..from + rows * ROW, from);
            }
            b.body(b"INDX", 0, 8, rows as u64 - 1, 4);
            b.resize(b"INDX", 0, body);
            b.body(b"TRLR", 0, 4, rows as u64 + 1, 4);
            no_index("malformed", end)
        });
    }
    add("index-file-length", layout, &|b| {
        b.body(b"TRLR", 0, 8, 64, 8);
        no_index("malformed", b.file.bytes.len() as u64)
    });
    let padded = Layout { padded: true, ..layout };
    add("index-long-rows", padded, &|_| Expect::by_index(vec![], vec![], true));
    // What a walk calls damage of the index and of the trailer. Rows of other lengths hold no chunk where one is looked for.
    add("index-prefix", padded, &|b| no_index("malformed", b.header(b"INDX", 0, 52, 5_000, 4)));
    add("index-trailer-prefix", padded, &|b| no_index("malformed", b.header(b"TRLR", 0, 52, 49, 4)));
    add("index-decoded", layout, &|b| no_index("malformed", b.header(b"INDX", 0, 32, 9_000, 8)));
    add("index-trailer-head", layout, &|b| no_index("malformed", b.body(b"TRLR", 0, 0, 39, 4)));
    out.extend(none(layout));
    out.extend(limits(m, layout, padded));
    out.extend(losses(m, layout));
    out
}

/// A file without other chunks: no rows, whose length counts all the same.
fn none(layout: Layout) -> Vec<Defect> {
    let with = |(name, row_len)| {
        let mut broken = Broken::new(&[], layout);
        broken.remove(b"HDRC", 0);
        broken.body(b"INDX", 0, 4, row_len, 4);
        broken.body(b"INDX", 0, 8, 0, 4);
        broken.resize(b"INDX", 0, 16);
        let end = broken.file.bytes.len() as u64;
        for (at, value, len) in [(4, 2, 4), (8, end, 8), (32, 64, 8)] {
            broken.body(b"TRLR", 0, at, value, len);
        }
        (name, broken, Expect::by_index(vec![], vec![], row_len == ROW as u64))
    };
    [("index-of-nothing", ROW as u64), ("index-of-nothing-row-length", ROW as u64 - 1)].map(with).into()
}

/// One chunk is longer than a chunk may be: that of the events, and the index.
fn limits(m: Maker, layout: Layout, padded: Layout) -> Vec<Defect> {
    let events: Vec<Op> = (0..200).map(|i| Op::Event(0, m.kmalloc(10 + i, 0x40, 8))).collect();
    let metas = vec![Op::Meta(vec![("key", b"value")]); 4];
    let mut out = Vec::new();
    for (name, ops, layout, kind) in
        [("index-long-events", events, layout, b"EVNT"), ("index-long-index", metas, padded, b"INDX")]
    {
        let broken = Broken::new(&ops, layout);
        let (start, end) = broken.chunk(kind, 0);
        let longest = broken.file.chunks.iter().filter(|c| c.offset != start).map(|c| c.end - c.offset).max();
        assert!(longest < Some(end - start), "no other chunk is as long");
        let expect = Expect::NoIndex(vec![("limit-exceeded", start as u64)]);
        let limits = json!({"chunk_len": end - start - 1});
        out.push((name, broken, Expect::Within(limits, Box::new(expect))));
    }
    out
}

/// Counted losses that differ, and rows of sub-buffers that differ from their heads.
fn losses(m: Maker, layout: Layout) -> Vec<Defect> {
    let counted = Loss { counted: 5, ..Loss::default() };
    let mut broken = Broken::new(&[Op::Lost(0, counted), Op::Event(0, m.kmalloc(10, 0x40, 8))], layout);
    let chunk = row(&mut broken, b"EVNT", 32, 6, 8);
    let mut out = vec![("index-loss-count", broken, Expect::by_index(vec![("index", chunk)], vec![], true))];
    for (name, at, value, len) in [
        ("index-raw-first-time", 8, 7, 8),
        ("index-raw-last-time", 16, 7, 8),
        ("index-raw-first-event", 24, 7, 8),
        ("index-raw-count", 40, 7, 4),
        ("index-raw-loss", 44, 2, 4),
        ("index-raw-classes", 48, u64::MAX, 8),
    ] {
        let ops = [Op::SubBuffer(0, vec![m.empty(10)], Loss::default())];
        let mut broken = Broken::new(&ops, layout);
        let chunk = row(&mut broken, b"RAWP", at, value, len);
        out.push((name, broken, Expect::by_index(vec![("index", chunk)], vec![], true)));
    }
    out
}
