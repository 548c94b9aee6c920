//! Heads of sub-buffers: numbers at a limit and one above it, and rules that hold for event chunks too.

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::bytes::Bytes;
use crate::cases::Maker;
use crate::codec::lz4;
use crate::model::{Layout, Loss, Op};

/// Length of a SubBuffersHead.
const RAW_HEAD: usize = 72;

pub fn heads(m: Maker, layout: Layout) -> Vec<Defect> {
    let layout = Layout { index: false, ..layout };
    let loss = Loss { uncounted: true, ..Loss::default() };
    let mut out = Vec::new();
    // A chunk without sub-buffers, and in its head a number that is wrong by one.
    let mut add = |name, ops: &[Op], layout, (at, value, len), expect: &dyn Fn(u64) -> Expect| {
        let mut broken = Broken::new(ops, layout);
        broken.header(b"RAWP", 0, 13, 0, 1);
        broken.resize(b"RAWP", 0, RAW_HEAD);
        broken.body(b"RAWP", 0, 48, 0, 4);
        let offset = broken.body(b"RAWP", 0, at, value, len);
        out.push((name, broken, expect(offset)));
    };
    let malformed = |offset| Expect::Unreadable("malformed", offset);
    let none = [Op::SubBuffer(0, vec![], loss)];
    for (name, at, value, len) in [
        ("raw-none-layout", 56, 5, 2),
        ("raw-none-long", 44, (8 << 20) + 1, 4),
        ("raw-none-time-outside", 52, 1024 - 7, 2),
        ("raw-none-commit-outside", 54, 1024 - m.long as u64 + 1, 2),
    ] {
        add(name, &none, layout, (at, value, len), &malformed);
    }
    let encoded = Layout { codec: 1, trailer: false, ..layout };
    for (name, count) in [("raw-class-limit-at-limit", 21_840), ("raw-class-limit-above-limit", 21_841)] {
        let ops = [classes(count, m.big), Op::SubBuffer(0, vec![], loss)];
        let missing = |_| Expect::Missing;
        let expect: &dyn Fn(u64) -> Expect = if count == 21_840 { &missing } else { &malformed };
        add(name, &ops, encoded, (60, count as u64, 4), expect);
    }
    out.extend(counts(m, layout));
    out.extend(shared(m, layout));
    out
}

/// Classes that are all alike: no fields, and no text.
fn classes(count: usize, big: bool) -> Op {
    let mut out = Bytes::new(big);
    out.u32(40).u32(0).u32(0).u32(count).fill(0, 32);
    [44, 32, 16, 8].into_iter().for_each(|len| drop_bytes(out.number(len, 2)));
    out.fill(0, 40 + 44 * count);
    Op::Unknown(*b"SCHM", 1, out.data.leak())
}

fn drop_bytes(_: &mut Bytes) {}

/// Encodes the sub-buffers of the last chunk of a file.
fn encode(b: &mut Broken) -> u64 {
    let (start, _) = b.chunk(b"RAWP", 0);
    let body = start + 64;
    let len = b.number(start + 24, 8) as usize;
    let stored = lz4(&b.file.bytes[body + RAW_HEAD..body + len]);
    b.file.bytes.truncate(body + RAW_HEAD);
    b.file.bytes.extend(&stored);
    let end = b.file.bytes.len().next_multiple_of(64);
    b.file.bytes.resize(end, 0);
    b.put(start + 13, 1, 1);
    b.put(start + 16, (end - start) as u64, 8);
    b.put(start + 24, (RAW_HEAD + stored.len()) as u64, 8);
    b.stamp(start, end);
    body as u64
}

/// The most events, one more in the head, and one more in the data, whose record is too short as well.
fn counts(m: Maker, layout: Layout) -> Vec<Defect> {
    let few = [Op::SubBuffer(0, vec![m.empty(10)], Loss::default())];
    let mut above = Broken::new(&few, layout);
    above.body(b"RAWP", 0, RAW_HEAD + 8, 2_000, m.long);
    let offset = above.body(b"RAWP", 0, 40, 60_001, 4);
    let mut out = vec![("raw-count-above-limit", above, Expect::Unreadable("malformed", offset))];
    let layout = Layout { sub_buffer_len: 1 << 20, trailer: false, ..layout };
    for (name, last) in [("raw-count-at-limit", None), ("order-count-record", Some(m.page(10, 3, 0)))] {
        let mut events = vec![m.empty(10); 60_000];
        let has_last = last.is_some();
        events.extend(last);
        let mut broken = Broken::new(&[Op::SubBuffer(0, events, Loss::default())], layout);
        broken.body(b"RAWP", 0, 40, 60_000, 4);
        if has_last {
            broken.set_field((1, 4), 16, 1_000, 4);
        }
        let offset = encode(&mut broken);
        let expect = if has_last { Expect::Unreadable("malformed", offset) } else { Expect::Missing };
        out.push((name, broken, expect));
    }
    out
}

/// Rules that hold for chunks of events of either kind.
fn shared(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    let mut add = |name, change: &dyn Fn(&mut Broken) -> Expect| {
        let event = |time| vec![m.empty(time)];
        let (none, next) = (Loss::default(), Op::Flush(0));
        let ops = [
            Op::SubBuffer(0, event(0xff), none),
            next.clone(),
            Op::SubBuffer(0, event(0x1ff), none),
            next,
            Op::Event(0, m.empty(0x2ff)),
        ];
        let mut broken = Broken::new(&ops, layout);
        let expect = change(&mut broken);
        out.push((name, broken, expect));
    };
    let damage = |code, offset| Expect::Damage(vec![(code, offset)]);
    // The last byte of the head is the first one of the sub-buffer.
    add("raw-head-short", &|b| {
        b.body(b"RAWP", 0, 64, u64::MAX, 8);
        let (start, end) = b.chunk(b"RAWP", 0);
        let len = b.number(start + 24, 8) as usize;
        b.file.bytes.remove(start + 64 + RAW_HEAD);
        b.file.bytes.insert(end - 1, 0);
        b.resize(b"RAWP", 0, len - 1);
        Expect::Unreadable("malformed", b.body(b"RAWP", 0, 0, 71, 4))
    });
    add("raw-of-no-cpu", &|b| damage("malformed", b.header(b"RAWP", 0, 40, 0xffff_ffff, 4)));
    add("raw-sequence", &|b| damage("malformed", b.header(b"EVNT", 0, 44, 1, 4)));
    out
}
