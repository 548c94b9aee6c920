//! Recovery: torn chunks, heads and tables that one condition alone keeps from being used.

use super::recover::{Errors, Made, loss_alone, ops, recovered};
use super::recover_codecs::again;
use super::recover_heads::{damage_record, set_header};
use super::{Defect, Expect};
use crate::broken::Broken;
use crate::cases::Maker;
use crate::model::{Layout, Loss, Op};

/// The third chunk of CPU 0 with both records, made of a torn one.
const WHOLE: [u64; 9] = [0, 2, 9, 3, 2, 30, 31, 1, 7];

/// An event chunk gets a length that the file does not have, and another sequence.
fn tear(b: &mut Broken, nth: usize, sequence: u64) -> (&'static str, u64) {
    let (start, end) = b.chunk(b"EVNT", nth);
    set_header(b, start, 44, sequence, 4);
    set_header(b, start, 16, (end - start) as u64 + (1 << 16), 8);
    ("truncated", start as u64)
}

/// The chunks of an old file whose third one is written behind that of the other CPU.
fn behind(without: &[usize], instead: &[(usize, [u64; 9])], missing: u64) -> Made {
    let mut made = Made::of(3, without, instead, (missing, true));
    let last = made.heads.len() - 1;
    made.heads.swap(last - 1, last);
    let at = made.events.iter().position(|event| *event == (1, 15)).unwrap_or(0);
    let event = made.events.remove(at);
    let third = made.events.iter().position(|event| event.1 >= 30).unwrap_or(made.events.len());
    made.events.insert(third, event);
    made
}

pub fn steps(m: Maker, layout: Layout) -> Vec<Defect> {
    let layout = Layout { index: false, ..layout };
    let mut out = Vec::new();
    let mut add = |name, change: &dyn Fn(&mut Broken) -> (Errors, Errors), made: Made| {
        out.push(recovered(m, layout, name, change, made));
    };
    // Step 4: a padding of 64 bytes and more whose last one is not 0.
    let padding = |b: &mut Broken| {
        let (start, end) = b.chunk(b"META", 0);
        b.file.bytes.splice(end..end, [0; 64]);
        b.put(start + 16, (end + 64 - start) as u64, 8);
        b.stamp(start, end + 64);
        b.file.bytes[end + 63] = 1;
        (vec![("checksum", start as u64 + 64)], vec![])
    };
    let mut made = Made::of(3, &[], &[], (0, true));
    made.kinds.remove(1);
    add("recover-padding-of-64", &padding, made);
    // Step 5: of two torn chunks the later one is taken; if it is not above the last whole one, neither is.
    let made = behind(&[], &[loss_alone(1, 10), (2, WHOLE)], 2);
    add("recover-two-torn", &|b| (vec![tear(b, 1, 1), tear(b, 2, 2)], vec![]), made);
    let not_above = |b: &mut Broken| {
        b.body(b"EVNT", 1, 4, 0, 4);
        (vec![tear(b, 1, 1), tear(b, 2, 0)], vec![])
    };
    add("recover-two-torn-first", &not_above, Made::of(3, &[1, 2], &[], (4, true)));
    // Step 10: a chunk of another class, as long as that of the first one.
    let schemas = |b: &mut Broken| {
        let (at, len) = (b.chunk(b"TRLR", 0).0, b.chunk(b"SCHM", 0).1 - b.chunk(b"SCHM", 0).0);
        let found = again(b, false);
        let shapes = 40 + 44 + 10 * 32;
        for (place, number) in [(4, 2), (8, 6), (shapes, 2), (shapes + 16, 2), (shapes + 32, 2)] {
            b.put(at + 64 + place, number, 4);
        }
        b.stamp(at, at + len);
        found
    };
    add("recover-schemas-of-one-length", &schemas, Made::of(4, &[], &[], (0, true)).of_sound_file());
    // Step 12: the sequence is that of the last whole chunk; a codec is stated, and not used.
    let equal = Made::of(3, &[2], &[], (2, true));
    add("recover-torn-twice", &|b| (vec![tear(b, 2, 1)], vec![]), equal);
    let stated = |b: &mut Broken| {
        let torn = tear(b, 2, 2);
        set_header(b, torn.1 as usize, 13, 1, 1);
        (vec![torn], vec![])
    };
    add("recover-torn-codec", &stated, behind(&[], &[loss_alone(2, 21)], 2));
    let nowhere = |b: &mut Broken| {
        b.body(b"EVNT", 2, 56, 0xffff_ffff, 4);
        b.body(b"EVNT", 2, 72, 0xffff_ffff, 4);
        (vec![tear(b, 2, 2)], vec![])
    };
    add("recover-torn-empty-tables", &nowhere, behind(&[], &[(2, WHOLE)], 0));
    // Step 13: a head above the torn chunk behind it, and one of the sequence of the chunk behind it.
    let above = |b: &mut Broken| {
        let (start, _) = b.chunk(b"EVNT", 1);
        set_header(b, start, 44, 5, 4);
        let checksum = damage_record(b, 1);
        (vec![tear(b, 2, 4)], vec![checksum])
    };
    let torn = [0, 4, 9, 3, 2, 30, 31, 1, 7];
    add("recover-head-above-torn", &above, behind(&[1], &[(2, torn)], 2));
    let same = |b: &mut Broken, first_event| {
        let (start, end) = b.chunk(b"EVNT", 1);
        b.body(b"EVNT", 1, 32, first_event, 8);
        b.put(start + 44, 2, 4);
        b.stamp(start, end);
        let checksum = damage_record(b, 1);
        (vec![("malformed", b.chunk(b"EVNT", 2).0 as u64)], vec![checksum])
    };
    add("recover-head-equal", &|b| same(b, 1), Made::of(3, &[1], &[], (2, true)));
    // The same in an unfinished file: its number of events is not counted.
    let uncounted = |b: &mut Broken| {
        let found = same(b, 900);
        let (trailer, _) = b.chunk(b"TRLR", 0);
        b.file.bytes.truncate(trailer);
        found
    };
    add("recover-head-uncounted", &uncounted, Made::of(3, &[1], &[], (2, false)));
    // The trailer is not the last chunk; and it has fewer events than there are.
    let more = |b: &mut Broken| {
        let (start, end) = b.chunk(b"META", 0);
        b.file.bytes.extend_from_within(start..end);
        (vec![], vec![])
    };
    let mut made = Made::of(3, &[], &[], (0, false));
    made.kinds.insert(made.kinds.len() - 4, "META");
    add("recover-behind-trailer", &more, made);
    let fewer = |b: &mut Broken| {
        b.body(b"TRLR", 0, 16, 5, 8);
        (vec![], vec![])
    };
    add("recover-more-than-counted", &fewer, Made::of(3, &[], &[], (0, true)).of_sound_file());
    out.extend(limits(m, layout));
    out.extend(tables(m, layout));
    out.push(before_classes(m, layout));
    out
}

/// A chunk above the limit, and a torn one that states more records than it has and may have.
fn limits(m: Maker, layout: Layout) -> Vec<Defect> {
    static LONG: [u8; 8_000] = [b'x'; 8_000];
    let mut all = ops(m);
    all[0] = Op::Meta(vec![("key", &LONG)]);
    let broken = Broken::new(&all, layout);
    let (start, end) = broken.chunk(b"META", 0);
    let mut made = Made::of(3, &[], &[], (0, true));
    made.kinds.remove(1);
    let expect = Expect::Recovered(vec![("limit-exceeded", start as u64)], vec![], made.json());
    let limit = (end - start - 1) as u64;
    let chunk = ("recover-chunk-len", broken, Expect::within("chunk_len", limit, expect));
    let mut broken = Broken::new(&ops(m), layout);
    broken.body(b"EVNT", 2, 40, 3, 4);
    let damages = vec![tear(&mut broken, 2, 2)];
    let made = behind(&[], &[(2, WHOLE)], 0);
    let expect = Expect::Recovered(damages, vec![], made.json());
    vec![chunk, ("recover-torn-records", broken, Expect::within("records", 2, expect))]
}

/// Step 12: a table behind the records, of which all bytes are there.
fn tables(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    // The offset of the table in the head, that of its count or length, what this becomes, and bytes of the table.
    for (name, at, count_at, count, len) in [
        ("recover-torn-contexts", 64, 48, 1, 8),
        ("recover-torn-descriptors", 60, 44, 1, 4),
        ("recover-torn-epochs", 56, 52, 1, 8),
        ("recover-torn-heap", 72, 76, 4, 4),
    ] {
        let mut broken = Broken::new(&ops(m), layout);
        let (start, end) = broken.chunk(b"EVNT", 2);
        let body_len = broken.number(start + 24, 8) as usize;
        assert!(start + 64 + body_len + len <= end, "the chunk has a padding");
        let old = start + 64 + broken.place(2, at);
        broken.file.bytes.copy_within(old..old + len, start + 64 + body_len);
        if at == 56 {
            broken.put(start + 64 + body_len, 5, 4);
            broken.put(start + 64 + body_len + 4, 1, 4);
        }
        broken.resize(b"EVNT", 2, body_len + len);
        broken.body(b"EVNT", 2, count_at, count, 4);
        broken.body(b"EVNT", 2, at, body_len as u64, 4);
        let damages = vec![tear(&mut broken, 2, 2)];
        let made = behind(&[], &[loss_alone(2, 21)], 2);
        out.push((name, broken, Expect::Recovered(damages, vec![], made.json())));
    }
    out
}

/// Step 13: a damaged chunk with a loss is the first one, in front of the classes.
fn before_classes(m: Maker, layout: Layout) -> Defect {
    let ops = [
        Op::Lost(0, Loss { uncounted: true, ..Loss::default() }),
        Op::Event(0, m.kmalloc(10, 0x40, 8)),
        Op::Flush(0),
        Op::Event(0, m.kmalloc(20, 0x40, 8)),
    ];
    let mut broken = Broken::new(&ops, layout);
    damage_record(&mut broken, 0);
    let ((classes, events), (_, end)) = (broken.chunk(b"SCHM", 0), broken.chunk(b"EVNT", 0));
    broken.file.bytes[classes..end].rotate_left(events - classes);
    let made = Made {
        kinds: vec!["HDRC", "EVNT", "SCHM", "EVNT", "SCHM", "META", "INDX", "TRLR"],
        heads: vec![
            serde_json::json!([0, 0, 9, 0, 0, 10, 10, 2, 0]),
            serde_json::json!([0, 1, 1, 1, 1, 20, 20, 0, 0]),
        ],
        events: vec![(0, 20)],
        missing: (1, true),
    };
    let unreadable = vec![("checksum", classes as u64 + 64)];
    ("recover-head-first", broken, Expect::Recovered(vec![], unreadable, made.json()))
}
