//! Chunks as they are stored: sequences, prefixes, blocks that are too long, filters, and limits of all that.

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::cases::{self, Maker};
use crate::codec;
use crate::model::{Layout, Loss, Op};

/// What is found in a changed file.
type Change<'a> = &'a dyn Fn(&mut Broken) -> Expect;

fn damage(code: &'static str, offset: u64) -> Expect {
    Expect::Damage(vec![(code, offset)])
}

/// A checksum that is wrong, in a chunk header whose own one is right.
fn wrong_checksum(b: &mut Broken, kind: &[u8; 4], at: usize) -> u64 {
    let (offset, _) = b.chunk(kind, 0);
    let wrong = b.number(offset + at, 4) ^ 1;
    b.put(offset + at, wrong, 4);
    b.seal(offset);
    offset as u64 + 64
}

pub fn stored(m: Maker, layout: Layout) -> Vec<Defect> {
    let small = Layout { index: false, trailer: false, ..layout };
    let mut out = sequences(m, small);
    out.extend(others(m, layout));
    out.extend(blocks(small));
    out.extend(filters(m, small));
    out.extend(limits(m, small));
    out
}

/// Event chunks: their sequence, and checksums before lengths.
fn sequences(m: Maker, layout: Layout) -> Vec<Defect> {
    let ops = [10, 20, 30].map(|time| [Op::Event(0, m.kmalloc(time, 0x40, 8)), Op::Flush(0)]).concat();
    let mut sequences = Broken::new(&ops, layout);
    let starts = [3, 1, 2].into_iter().enumerate().map(|(i, n)| sequences.header(b"EVNT", i, 44, n, 4));
    let starts: Vec<u64> = starts.collect();
    // The third one is above the second, which does not count.
    let expect = Expect::Damage(vec![("malformed", starts[1]), ("malformed", starts[2])]);
    let mut lengths = Broken::new(&ops[..1], layout);
    lengths.header(b"EVNT", 0, 32, 1 << 20, 8);
    let offset = wrong_checksum(&mut lengths, b"EVNT", 48);
    let mut prefix = Broken::new(&[Op::SubBuffer(0, vec![m.empty(10)], Loss::default())], layout);
    let start = wrong_checksum(&mut prefix, b"RAWP", 56);
    vec![
        ("sequences-below-the-first", sequences, expect),
        ("order-events-checksum-lengths", lengths, Expect::Unreadable("checksum", offset)),
        ("raw-prefix-checksum", prefix, damage("checksum", start)),
    ]
}

/// Chunks without events.
fn others(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    // The body starts at 256; the value is such that 64 bytes in front of its last 64 are at a multiple of 64.
    let ops = [Op::Meta(vec![("key", &[0; 169])]), Op::Event(0, m.kmalloc(10, 0x40, 8))];
    let mut add = |name, change: Change| {
        let mut broken = Broken::new(&ops, layout);
        let expect = change(&mut broken);
        out.push((name, broken, expect));
    };
    // The chunk within it is found, since it cannot be taken itself: its body is not that of its checksum.
    add("prefix-length-above-body", &|b| {
        let (start, end) = b.chunk(b"META", 0);
        b.file.bytes.copy_within(64..128, end - 128);
        let body_len = b.number(start + 24, 8);
        let offset = b.header(b"META", 0, 52, body_len + 1, 4);
        Expect::Damage(vec![("malformed", offset), ("checksum", end as u64 - 64)])
    });
    add("checksum-without-padding", &|b| {
        let (start, _) = b.chunk(b"META", 0);
        b.resize(b"META", 0, 190);
        b.put(start + 48, crate::bytes::crc32(&b.file.bytes[start + 64..start + 64 + 190]).into(), 4);
        b.seal(start);
        damage("checksum", start as u64 + 64)
    });
    // The checksum of a prefix is not checked here.
    add("prefix-checksum-of-others", &|b| {
        b.header(b"META", 0, 52, 4, 4);
        wrong_checksum(b, b"META", 56);
        Expect::Missing
    });
    for (name, kind) in [("order-index-checksum-codec", b"INDX"), ("order-trailer-checksum-codec", b"TRLR")] {
        add(name, &|b| {
            b.header(kind, 0, 13, 1, 1);
            damage("checksum", wrong_checksum(b, kind, 48))
        });
    }
    // The stored bytes cannot be as many as that; the memory for them is asked about behind it.
    add("memory-of-few-bytes", &|b| {
        b.header(b"META", 0, 32, 200 << 20, 8);
        damage("codec", b.header(b"META", 0, 13, 1, 1) + 64)
    });
    out
}

/// Blocks of LZ4 with one byte more than is to be decoded: 16 bytes of a value.
fn blocks(layout: Layout) -> Vec<Defect> {
    let literals = [&[0xf0, 2][..], &[b'x'; 17]].concat();
    // A literal, and a match of 16 bytes.
    let found = vec![0x1c, b'x', 1, 0, 0];
    let cases = [("codec-lz4-literals-too-long", literals), ("codec-lz4-match-too-long", found)];
    let defect = |(name, block): (_, Vec<u8>)| {
        let mut file = Broken::new(&[Op::Meta(vec![("key", &[b'x'; 16])])], layout);
        file.resize(b"META", 0, 12 + 8 + 3 + 16);
        file.header(b"META", 0, 52, 12 + 8 + 3, 4);
        let offset = file.store(b"META", 0, 1, &block) + 64;
        (name, file, damage("codec", offset))
    };
    cases.map(defect).into()
}

fn filters(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut raw = Broken::new(&[Op::SubBuffer(0, vec![m.empty(10)], Loss::default())], layout);
    let rest = codec::lz4(&raw.rest(b"RAWP", 0));
    let offset = raw.store(b"RAWP", 0, 0x11, &rest) + 13;
    let raw = ("raw-filter", raw, Expect::Unreadable("unknown-codec", offset));
    // The filter moves records by the length that they must have, whatever the head has.
    let mut stride = Broken::new(&cases::many(m), Layout { codec: 1, ..layout });
    let offset = stride.body(b"EVNT", 0, 80, 0xffff, 2);
    let expect = Expect::within("records", 39, Expect::Unreadable("limit-exceeded", offset));
    // The planes of one record are the record.
    let mut prefix = Broken::new(&[Op::Event(0, m.kmalloc(10, 0x40, 8))], layout);
    let records = prefix.place(0, 68) as u64;
    prefix.header(b"EVNT", 0, 52, records + 8, 4);
    let rest = codec::lz4(&prefix.rest(b"EVNT", 0));
    let offset = prefix.store(b"EVNT", 0, 0x11, &rest) + 64;
    let prefix = ("filter-of-one-in-prefix", prefix, Expect::Unreadable("malformed", offset));
    vec![raw, ("order-filter-records-limit", stride, expect), prefix]
}

fn limits(m: Maker, layout: Layout) -> Vec<Defect> {
    let one = [Op::Event(0, m.kmalloc(10, 0x40, 8))];
    let raw = |cpu| Op::SubBuffer(cpu, vec![m.empty(10)], Loss::default());
    let mut out = Vec::new();
    let mut add = |name, ops: &[Op], change: Change| {
        let mut broken = Broken::new(ops, layout);
        let expect = change(&mut broken);
        out.push((name, broken, expect));
    };
    // All of the body is prefix, and a block of nothing is behind it: stored it is longer than decoded.
    let longer = |b: &mut Broken| {
        let decoded = b.number(b.chunk(b"EVNT", 0).0 + 24, 8);
        b.header(b"EVNT", 0, 52, decoded, 4);
        (decoded + 1, b.store(b"EVNT", 0, 1, &codec::lz4(&[])))
    };
    add("stored-body-at-limit", &one, &|b| Expect::within("event_body_len", longer(b).0, Expect::Missing));
    add("stored-body-above-limit", &one, &|b| {
        let (stored, offset) = longer(b);
        Expect::within("event_body_len", stored - 1, damage("limit-exceeded", offset))
    });
    add("raw-body-above-limit", &[raw(0)], &|b| {
        let offset = b.chunk(b"RAWP", 0).0;
        Expect::within(
            "event_body_len",
            b.number(offset + 24, 8) - 1,
            damage("limit-exceeded", offset as u64),
        )
    });
    add("sum-of-sub-buffers-above-limit", &[raw(0), raw(1)], &|b| {
        let starts = [0, 1].map(|nth| {
            b.header(b"RAWP", nth, 13, 1, 1);
            b.header(b"RAWP", nth, 32, 60 << 20, 8)
        });
        Expect::Refused("limit-exceeded", starts[1])
    });
    // CPUs of events and of counters are counted apart, whichever of them come first.
    let counters = || Op::Stats([2, 3].map(|cpu| (cpu, 0, [Some(1); 11])).into());
    let events = [0, 1].map(|cpu| [Op::Event(cpu, m.kmalloc(10, 0x40, 8)), Op::Flush(cpu)]).concat();
    let ops = [vec![counters()], events, vec![counters()]].concat();
    add("cpus-of-counters-apart", &ops, &|_| Expect::within("streams", 2, Expect::Missing));
    add("schema-no-shapes-too-high", &one, &|b| {
        for at in [12, 16, 20, 24, 28] {
            b.body(b"SCHM", 0, at, 0, 4);
        }
        damage("limit-exceeded", b.body(b"SCHM", 0, 8, 65_521, 4))
    });
    add("order-limit-row-length", &one, &|b| {
        b.body(b"SCHM", 0, 4, 65_521, 4);
        damage("limit-exceeded", b.body(b"SCHM", 0, 32, 43, 2))
    });
    // 31 arrays of 4,000 bytes and one of 1 byte.
    let name = "x".repeat(3_999);
    let arrays = (0..32).map(|i| Op::Event(0, m.free(10 + i, 0x40, if i < 31 { &name } else { "" })));
    add("arrays-above-limit-by-1", &arrays.collect::<Vec<_>>(), &|b| {
        let (offset, _) = b.chunk(b"EVNT", 0);
        let rest = (31 * 4_000) - 16 * b.number(offset + 32, 8);
        assert_eq!(rest % 32, 0, "the limit is a number for each event");
        Expect::within("arrays", rest / 32, Expect::Unreadable("limit-exceeded", offset as u64 + 64))
    });
    out
}
