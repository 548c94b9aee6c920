//! Recovery of the heads of chunks that cannot be used, and of files without damage.

use super::recover::{Errors, Made, loss_alone, ops};
use super::{Defect, Expect};
use crate::broken::Broken;
use crate::bytes::crc32;
use crate::cases::Maker;
use crate::model::Layout;

pub fn heads(m: Maker, layout: Layout) -> Vec<Defect> {
    let layout = Layout { index: false, ..layout };
    let mut out = Vec::new();
    let mut add = |name, layout, change: &dyn Fn(&mut Broken) -> (Errors, Errors), made: Made| {
        let mut broken = Broken::new(&ops(m), layout);
        let (damages, unreadable) = change(&mut broken);
        out.push((name, broken, Expect::Recovered(damages, unreadable, made.json())));
    };
    // Step 14: nothing is damaged, and the trailer is there, or missing.
    add("recover-sound", layout, &|_| (vec![], vec![]), Made::of(3, &[], &[], (0, true)).of_sound_file());
    let unfinished = |b: &mut Broken| {
        let (trailer, _) = b.chunk(b"TRLR", 0);
        b.file.bytes.truncate(trailer);
        (vec![], vec![])
    };
    add("recover-unfinished", layout, &unfinished, Made::of(3, &[], &[], (0, false)));
    let counted = |b: &mut Broken| {
        b.body(b"TRLR", 0, 16, 7, 8);
        (vec![], vec![])
    };
    add("recover-missing-alone", layout, &counted, Made::of(3, &[], &[], (1, true)));
    // Step 13: the chunk before is that of the old file, also if its events cannot be read.
    let before = |b: &mut Broken| {
        let unreadable = b.body(b"EVNT", 0, 80, 99, 2);
        (vec![], vec![("malformed", unreadable), damage_record(b, 1)])
    };
    let made = Made::of(3, &[0, 1], &[loss_alone(1, 10)], (3, true));
    add("recover-loss-behind-unreadable", layout, &before, made);
    // So is the one behind: the sequence of the head is not below it.
    let behind = |b: &mut Broken| {
        let (start, _) = b.chunk(b"EVNT", 1);
        set_header(b, start, 44, 3, 4);
        let checksum = damage_record(b, 1);
        let unreadable = b.body(b"EVNT", 2, 80, 99, 2);
        (vec![("malformed", unreadable - 64)], vec![checksum])
    };
    let made = Made::of(3, &[1, 2], &[loss_alone(2, 10)], (4, true));
    add("recover-loss-before-unreadable", layout, &behind, made);
    // Of two heads with one sequence the first is in order.
    let equal = |b: &mut Broken| {
        let (start, _) = b.chunk(b"EVNT", 2);
        set_header(b, start, 44, 1, 4);
        damage_record(b, 2);
        (vec![("malformed", start as u64)], vec![damage_record(b, 1)])
    };
    add(
        "recover-heads-of-one-sequence",
        layout,
        &equal,
        Made::of(3, &[1, 2], &[loss_alone(1, 10)], (4, true)),
    );
    // A head without a loss counts among the missing events.
    let head = |b: &mut Broken| {
        let checksum = damage_record(b, 0);
        let (_, end) = b.chunk(b"EVNT", 0);
        b.file.bytes.truncate(end);
        (vec![], vec![checksum])
    };
    add("recover-head-alone", layout, &head, Made::of(1, &[0, 1, 2, 3], &[], (1, false)));
    // Step 5: a chunk of no CPU is not the torn one. It stands within the torn chunk, in place of a record.
    let no_cpu = |b: &mut Broken| {
        let (start, end) = b.chunk(b"EVNT", 2);
        let record = start + 64 + b.place(2, 68) + 8 + m.long;
        set_header(b, start, 16, (end - start) as u64 + 4_096, 8);
        let (other, other_end) = b.chunk(b"EVNT", 3);
        let chunk = b.file.bytes[other..other_end].to_vec();
        b.file.bytes.truncate(record);
        b.file.bytes.extend(chunk);
        set_header(b, record, 40, 0xffff_ffff, 4);
        set_header(b, record, 16, (other_end - other) as u64 + 64, 8);
        (vec![("truncated", start as u64)], vec![])
    };
    let one = [0, 2, 9, 3, 1, 30, 30, 1, 7];
    add("recover-torn-of-no-cpu", layout, &no_cpu, Made::of(2, &[2, 3], &[(2, one)], (1, false)));
    // Step 12: chunks of other CPUs follow the torn one, which is written behind them with all of its records.
    let too_long = |b: &mut Broken, nth| {
        let (start, end) = b.chunk(b"EVNT", nth);
        set_header(b, start, 16, (end - start) as u64 + (1 << 16), 8);
        (vec![("truncated", start as u64)], vec![])
    };
    let mut made = Made::of(3, &[], &[(2, [0, 2, 9, 3, 2, 30, 31, 1, 7])], (0, true));
    made.heads.swap(2, 3);
    made.events.rotate_right(1);
    made.events[..4].rotate_left(1);
    add("recover-torn-amid-others", layout, &|b| too_long(b, 2), made);
    // A later chunk of its CPU follows: no record is taken, and its loss stays in its place.
    let made = Made::of(3, &[1], &[loss_alone(1, 10)], (2, true));
    add("recover-torn-amid-its-own", layout, &|b| too_long(b, 1), made);
    // Step 12: the tables come after the records, and are cut.
    let tables = |b: &mut Broken| {
        let (start, _) = b.chunk(b"EVNT", 2);
        let records = start + 64 + b.place(2, 68);
        b.file.bytes.truncate(records + 2 * (8 + m.long));
        (vec![("truncated", start as u64)], vec![])
    };
    let made = Made::of(2, &[2, 3], &[loss_alone(2, 21)], (2, false));
    add("recover-torn-tables", Layout { records_first: true, ..layout }, &tables, made);
    // Step 5: the head of a CPU above the limit.
    let mut broken = Broken::new(&ops(m), layout);
    damage_record(&mut broken, 3);
    let damages = vec![("limit-exceeded", broken.chunk(b"EVNT", 3).0 as u64)];
    let made = Made::of(3, &[3], &[], (1, true)).json();
    let expect = Expect::within("streams", 1, Expect::Recovered(damages, vec![], made));
    out.push(("recover-cpus", broken, expect));
    // Step 7: more events than a file of this length may have.
    let mut broken = Broken::new(&ops(m), layout);
    let offsets = [0, 1].map(|nth| {
        broken.header(b"EVNT", nth, 13, 1, 1);
        broken.header(b"EVNT", nth, 32, 40 << 20, 8)
    });
    out.push(("recover-memory", broken, Expect::NotRecovered("limit-exceeded", offsets[1])));
    out
}

/// Changes a field of a chunk header; of the checksums only that of the header is made right.
pub(super) fn set_header(b: &mut Broken, start: usize, at: usize, value: u64, len: usize) {
    b.put(start + at, value, len);
    let crc = crc32(&b.file.bytes[start..start + 60]);
    b.put(start + 60, crc.into(), 4);
}

/// Damages the first record of an event chunk.
pub(super) fn damage_record(b: &mut Broken, nth: usize) -> (&'static str, u64) {
    let body = b.chunk(b"EVNT", nth).0 + 64;
    let record = body + b.place(nth, 68);
    b.file.bytes[record + 8] ^= 1;
    ("checksum", body as u64)
}
