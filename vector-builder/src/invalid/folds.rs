//! Folded lives with a defect.

use serde_json::json;

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::cases::Maker;
use crate::cases::folded::{MS, intervals};
use crate::model::{Layout, Op};

type Errors = Vec<(&'static str, u64)>;

/// Offsets in the body of the first interval: three rows, two CPUs, six bins, the events. The second row has
/// frees of NULL.
const ROWS: usize = 88;
const NULLS: usize = ROWS + 72;
const LONG: usize = ROWS + 2 * 72;
const CPUS: usize = ROWS + 3 * 72;
const BINS: usize = CPUS + 2 * 16;
const EVENTS: usize = BINS + 6 * 8;

/// Change of a number of the first interval: offset in the body, number, bytes; the error, and its offset in the body.
type Change = (&'static str, usize, u64, usize, &'static str, usize);

/// Found when the file is opened.
const HEADS: [Change; 2] =
    [("fold-head-length", 0, 87, 4, "malformed", 0), ("fold-end-before-begin", 24, 999, 8, "malformed", 0)];

/// Found when the chunk is read.
const BODIES: [Change; 38] = [
    ("fold-head-too-long", 0, 1 << 20, 4, "malformed", 0),
    ("fold-too-many-rows", 40, 1 << 25, 4, "limit-exceeded", 0),
    ("fold-too-many-cpus", 48, 20_000, 4, "limit-exceeded", 0),
    ("fold-row-length", 44, 71, 4, "malformed", 0),
    ("fold-cpu-length", 52, 15, 4, "malformed", 0),
    ("fold-bin-length", 60, 7, 4, "malformed", 0),
    ("fold-rows-outside", 40, 9_999, 4, "truncated", ROWS),
    ("fold-cpus-outside", 48, 9_999, 4, "truncated", CPUS),
    ("fold-bins-outside", 56, 0xffff_ffff, 4, "truncated", BINS),
    ("fold-rows-offset", 64, 1 << 20, 4, "truncated", 1 << 20),
    ("fold-events-outside", 76, 1 << 20, 4, "malformed", 0),
    ("fold-events-stride", EVENTS + 80, 99, 2, "malformed", EVENTS),
    ("fold-events-count", EVENTS + 40, 1 << 20, 4, "truncated", 0),
    ("fold-alloc", ROWS, 4, 4, "malformed", 0),
    ("fold-free", ROWS + 4, 0xffff_ffff, 4, "malformed", 0),
    ("fold-count", ROWS + 8, 6, 8, "malformed", 0),
    ("fold-event-count", 80, 24, 8, "malformed", 0),
    ("fold-event-count-0", 80, 0, 8, "malformed", 0),
    ("fold-cpu-events", CPUS + 8, 15, 8, "malformed", 0),
    ("fold-null-of-lives", ROWS, 0xffff_ffff, 4, "malformed", 0),
    ("fold-null-of-alloc", NULLS, 0, 4, "malformed", 0),
    ("fold-null-cross-cpu", NULLS + 16, 1, 8, "malformed", 0),
    ("fold-null-elsewhere", NULLS + 24, 1, 8, "malformed", 0),
    ("fold-null-length-sum", NULLS + 32, 1, 8, "malformed", 0),
    ("fold-null-length-max", NULLS + 40, 1, 8, "malformed", 0),
    ("fold-null-over-ms", NULLS + 48, 1, 8, "malformed", 0),
    ("fold-null-over-s", NULLS + 56, 1, 8, "malformed", 0),
    ("fold-cross-cpu", ROWS + 16, 3, 8, "malformed", 0),
    ("fold-elsewhere", ROWS + 24, 6, 8, "malformed", 0),
    ("fold-over-ms", LONG + 48, 4, 8, "malformed", 0),
    ("fold-over-s", LONG + 56, 3, 8, "malformed", 0),
    ("fold-bins-shared", LONG + 64, 3, 4, "malformed", 0),
    ("fold-bins-behind", LONG + 64, 5, 4, "malformed", 0),
    ("fold-bins-missing", LONG + 68, 1, 4, "malformed", 0),
    ("fold-bins-beyond", LONG + 68, 0xffff_ffff, 4, "malformed", 0),
    ("fold-bin-number", BINS, 1_920, 4, "malformed", 0),
    ("fold-bin-count", BINS + 4, 2, 4, "malformed", 0),
    ("fold-bin-count-0", BINS + 4, 0, 4, "malformed", 0),
];

pub fn folds(m: Maker, layout: Layout) -> Vec<Defect> {
    let base = || Broken::new(&intervals(m), layout);
    let mut out = Vec::new();
    for (name, at, value, len, code, further) in HEADS {
        let mut broken = base();
        let body = broken.body(b"FOLD", 0, at, value, len);
        out.push((name, broken, Expect::Folds(vec![(code, body + further as u64)], vec![], 1)));
    }
    for (name, at, value, len, code, further) in BODIES {
        let mut broken = base();
        // The records of the events stand behind their tables.
        let further = if name == "fold-events-count" { EVENTS + records_at(&broken) } else { further };
        let body = broken.body(b"FOLD", 0, at, value, len);
        out.push((name, broken, Expect::Folds(vec![], vec![(code, body + further as u64)], 0)));
    }
    out.push(null_bins(m, layout));
    out.extend(frames(&base));
    out.extend(numbers(m, layout));
    out.push(recovered(base()));
    out
}

/// Frees of NULL with bins that add up to their number, and are of no other row.
fn null_bins(m: Maker, layout: Layout) -> Defect {
    let mut ops = intervals(m);
    for op in &mut ops {
        if let Op::Fold(fold) = op {
            fold.rows
                .iter_mut()
                .filter(|row| row.alloc.is_none())
                .for_each(|row| row.bins = vec![(0, row.sums[0] as u32)]);
        }
    }
    let broken = Broken::new(&ops, layout);
    let unreadable = [0, 1].map(|n| ("malformed", broken.chunk(b"FOLD", n).0 as u64 + 64));
    ("fold-null-bins", broken, Expect::Folds(vec![], unreadable.to_vec(), 0))
}

/// records_offset of the events of the first interval.
fn records_at(broken: &Broken) -> usize {
    let (offset, _) = broken.chunk(b"FOLD", 0);
    broken.number(offset + 64 + EVENTS + 68, 4) as usize
}

/// Defects of the chunk header and of checksums.
fn frames(base: &dyn Fn() -> Broken) -> Vec<Defect> {
    let mut out = Vec::new();
    let mut add = |name, missing, change: &dyn Fn(&mut Broken) -> (Errors, Errors)| {
        let mut broken = base();
        let (damages, unreadable) = change(&mut broken);
        out.push((name, broken, Expect::Folds(damages, unreadable, missing)));
    };
    add("fold-not-in-prefix", 1, &|b| (vec![("malformed", b.header(b"FOLD", 0, 52, 87, 4) + 64)], vec![]));
    add("fold-prefix-checksum", 1, &|b| {
        let (offset, _) = b.chunk(b"FOLD", 0);
        b.put(offset + 56, 0, 4);
        b.seal(offset);
        (vec![("checksum", offset as u64 + 64)], vec![])
    });
    add("fold-checksum", 0, &|b| {
        let (offset, _) = b.chunk(b"FOLD", 0);
        b.file.bytes[offset + 64 + ROWS + 8] ^= 1;
        (vec![], vec![("checksum", offset as u64 + 64)])
    });
    add("fold-two-lengths", 0, &|b| (vec![], vec![("malformed", b.header(b"FOLD", 0, 32, 5, 8))]));
    add("fold-unknown-codec", 0, &|b| (vec![], vec![("unknown-codec", b.header(b"FOLD", 0, 13, 7, 1) + 13)]));
    add("fold-filter", 0, &|b| (vec![], vec![("unknown-codec", b.header(b"FOLD", 0, 13, 0x11, 1) + 13)]));
    add("fold-too-long", 0, &|b| {
        b.header(b"FOLD", 0, 32, 1 << 30, 8);
        (vec![], vec![("limit-exceeded", b.header(b"FOLD", 0, 13, 1, 1))])
    });
    add("fold-events-cut", 0, &|b| {
        let (offset, _) = b.chunk(b"FOLD", 0);
        let at = b.number(offset + 24, 8) - 95;
        (vec![], vec![("truncated", b.body(b"FOLD", 0, 76, at, 4) + at)])
    });
    // Without the bit a reader of the first candidate would have taken the events for all.
    add("fold-not-announced", 0, &|b| {
        b.file_header(20, 0, 4);
        ((0..3).map(|n| ("malformed", b.chunk(b"FOLD", n).0 as u64)).collect(), vec![])
    });
    // The third interval counts; the second one, which is damaged, is missing.
    add("fold-number-twice", 1, &|b| (vec![("malformed", b.body(b"FOLD", 1, 8, 0, 8) - 64)], vec![]));
    out
}

/// Intervals that are missing, of a file without index and trailer.
fn numbers(m: Maker, layout: Layout) -> Vec<Defect> {
    let layout = Layout { index: false, trailer: false, ..layout };
    let mut removed = Broken::new(&intervals(m), layout);
    removed.remove(b"FOLD", 1);
    let mut damaged = Broken::new(&intervals(m), layout);
    let (offset, _) = damaged.chunk(b"FOLD", 1);
    damaged.file.bytes[offset + 20] ^= 1;
    let mut far = Broken::new(&intervals(m), layout);
    far.body(b"FOLD", 2, 8, u64::MAX, 8);
    vec![
        ("fold-missing", removed, Expect::Folds(vec![], vec![], 1)),
        ("fold-header-damaged", damaged, Expect::Folds(vec![("not-a-chunk", offset as u64)], vec![], 1)),
        ("fold-number-far", far, Expect::Folds(vec![], vec![], u64::MAX - 2)),
    ]
}

/// A recovery leaves out what is damaged, and what cannot be read.
fn recovered(mut broken: Broken) -> Defect {
    let (offset, _) = broken.chunk(b"FOLD", 0);
    broken.file.bytes[offset + 64 + ROWS + 8] ^= 1;
    let bins = broken.body(b"FOLD", 1, ROWS + 8, 6, 8);
    let kinds =
        ["HDRC", "CLOK", "SCHM", "SCHM", "SCHM", "FOLD", "EVNT", "EVNT", "SCHM", "META", "INDX", "TRLR"];
    let (last, free) = (25_000 * MS, 11_000 * MS);
    let made = json!({
        "chunks": kinds,
        "heads": [[0, 0, 1, 0, 2, 2_000, last, 0, 0], [3, 0, 1, 0, 1, free, free, 0, 0]],
        "events": [[0, 2_000], [0, last], [3, free]],
        "missing": [0, true],
    });
    let unreadable = vec![("checksum", offset as u64 + 64), ("malformed", bins)];
    ("recover-fold", broken, Expect::Recovered(vec![], unreadable, made))
}
