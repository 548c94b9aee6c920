//! Damaged files, and what a recovery makes of them. Each case shows one step of section Recovery.

use serde_json::{Value as Json, json};

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::cases::Maker;
use crate::model::{Layout, Loss, Op};

pub(super) type Errors = Vec<(&'static str, u64)>;

/// What a recovery makes: kinds of chunks, heads of event chunks, time of each event, and the missing events.
pub(super) struct Made {
    pub kinds: Vec<&'static str>,
    pub heads: Vec<Json>,
    pub events: Vec<(u32, u64)>,
    pub missing: (u64, bool),
}

/// CPU, sequence, flags, first_event, record_count, t_base, t_last, loss_flags, lost_events.
const HEADS: [[u64; 9]; 4] = [
    [0, 0, 1, 0, 1, 10, 10, 0, 0],
    [0, 1, 1, 1, 2, 20, 21, 1, 5],
    [0, 2, 1, 3, 2, 30, 31, 1, 7],
    [1, 0, 1, 0, 1, 15, 15, 2, 0],
];
const EVENTS: [&[(u32, u64)]; 4] = [&[(0, 10)], &[(0, 20), (0, 21)], &[(0, 30), (0, 31)], &[(1, 15)]];

/// HDRC, META, xNEW, cNEW, SCHM, EVNT, EVNT, SCHM, EVNT, EVNT, SCHM, TRLR: rows of an index hold sound chunk headers.
pub(super) fn ops(m: Maker) -> Vec<Op> {
    let counted = |counted| Loss { counted, ..Loss::default() };
    vec![
        Op::Meta(vec![("key", b"value")]),
        Op::Unknown(*b"xNEW", 0, b"of a later version"),
        Op::Unknown(*b"cNEW", 2, b"to be copied"),
        Op::Event(0, m.kmalloc(10, 0x40, 8)),
        Op::Flush(0),
        Op::Lost(0, counted(5)),
        Op::Event(0, m.kmalloc(20, 0x80, 8)),
        Op::Event(0, m.kmalloc(21, 0xc0, 8)),
        Op::Flush(0),
        Op::Lost(0, counted(7)),
        Op::Event(0, m.page(30, 3, 0)),
        Op::Event(0, m.page(31, 4, 0)),
        Op::Flush(0),
        Op::Lost(1, Loss { uncounted: true, ..Loss::default() }),
        Op::Event(1, m.kmalloc(15, 0x40, 8)),
    ]
}

impl Made {
    /// All event chunks but some; of these the heads that take their place are given.
    pub fn of(
        schemas: usize,
        without: &[usize],
        instead: &[(usize, [u64; 9])],
        missing: (u64, bool),
    ) -> Self {
        let mut kinds = vec!["HDRC", "META", "cNEW"];
        kinds.extend(vec!["SCHM"; schemas]);
        let (mut heads, mut events) = (Vec::new(), Vec::new());
        for (i, head) in HEADS.iter().enumerate() {
            let other = instead.iter().find(|(of, _)| *of == i).map(|(_, head)| head);
            if let Some(head) = other.or(Some(head).filter(|_| !without.contains(&i))) {
                heads.push(json!(head));
                kinds.push("EVNT");
                events.extend(EVENTS[i].iter().take(head[4] as usize));
            }
        }
        kinds.extend(["SCHM", "META", "INDX", "TRLR"]);
        Self { kinds, heads, events, missing }
    }

    /// The same of a file without damage: no pair about the recovery.
    pub fn of_sound_file(mut self) -> Self {
        self.kinds.remove(self.kinds.len() - 3);
        self
    }

    pub fn json(&self) -> Json {
        json!({"chunks": self.kinds, "heads": self.heads, "events": self.events, "missing": [self.missing.0, self.missing.1]})
    }
}

/// A head that keeps only a loss, at the time of the last event before.
pub(super) fn loss_alone(of: usize, time: u64) -> (usize, [u64; 9]) {
    let [cpu, sequence, flags, first_event, _, _, _, loss, lost] = HEADS[of];
    (of, [cpu, sequence, flags | 8, first_event, 0, time, time, loss, lost])
}

/// The file of these tests, changed, and what a recovery makes of it.
pub(super) fn recovered(
    m: Maker,
    layout: Layout,
    name: &'static str,
    change: &dyn Fn(&mut Broken) -> (Errors, Errors),
    made: Made,
) -> Defect {
    let mut broken = Broken::new(&ops(m), layout);
    let (damages, unreadable) = change(&mut broken);
    (name, broken, Expect::Recovered(damages, unreadable, made.json()))
}

pub fn recover(m: Maker, layout: Layout) -> Vec<Defect> {
    let layout = Layout { index: false, ..layout };
    let mut out = Vec::new();
    let mut add = |name, change: &dyn Fn(&mut Broken) -> (Errors, Errors), made: Made| {
        out.push(recovered(m, layout, name, change, made));
    };
    let start = |b: &Broken, nth| b.chunk(b"EVNT", nth).0;
    let all = || Made::of(3, &[], &[], (0, true));
    // Step 1.
    let header = |b: &mut Broken| {
        b.file.bytes[41] ^= 1;
        (vec![("checksum", 0)], vec![])
    };
    add("recover-header", &header, all());
    // Step 2: bytes between chunks, bytes missing inside a chunk, a padding that is missing.
    let moved = |b: &mut Broken| {
        let at = start(b, 1);
        b.file.bytes.splice(at..at, [0x55; 13]);
        (vec![("not-a-chunk", at as u64)], vec![])
    };
    add("recover-moved", &moved, all());
    let inside = |b: &mut Broken| {
        let (start, end) = b.chunk(b"EVNT", 1);
        let records = start + 64 + b.place(1, 68);
        b.file.bytes.drain(records..records + 7);
        (vec![("not-a-chunk", end as u64)], vec![("checksum", start as u64 + 64)])
    };
    add("recover-inside", &inside, Made::of(3, &[1], &[loss_alone(1, 10)], (2, true)));
    let padding = |b: &mut Broken| {
        let (start, end) = b.chunk(b"EVNT", 1);
        let body_end = start + 64 + b.number(start + 24, 8) as usize;
        assert!(body_end < end, "the chunk has a padding");
        b.file.bytes.drain(body_end..end);
        (vec![("not-a-chunk", end as u64)], vec![("checksum", start as u64 + 64)])
    };
    add("recover-padding", &padding, all());
    // Step 3: classes, chunks that are malformed, events that cannot be read, a chunk that is there twice.
    let schema = |b: &mut Broken| {
        let at = b.chunk(b"SCHM", 0).0 + 70;
        b.file.bytes[at] ^= 1;
        (vec![("checksum", at as u64 - 6)], vec![])
    };
    add("recover-schema", &schema, Made::of(2, &[], &[], (0, true)));
    let malformed = |b: &mut Broken| (vec![("malformed", b.body(b"META", 0, 4, 7, 4))], vec![]);
    let mut made = all();
    made.kinds.remove(1);
    add("recover-malformed", &malformed, made);
    let unreadable = |b: &mut Broken| (vec![], vec![("malformed", b.body(b"EVNT", 0, 80, 99, 2))]);
    add("recover-unreadable", &unreadable, Made::of(3, &[0], &[], (1, true)));
    let twice = |b: &mut Broken| {
        let (start, end) = b.chunk(b"EVNT", 0);
        let copy = b.file.bytes[start..end].to_vec();
        b.file.bytes.splice(end..end, copy);
        (vec![("malformed", end as u64)], vec![])
    };
    add("recover-twice", &twice, all());
    out.extend(torn(m, layout));
    out.extend(losses(m, layout));
    out
}

/// Step 4: the file ends within an event chunk.
fn torn(m: Maker, layout: Layout) -> Vec<Defect> {
    let stride = 8 + m.long;
    let mut out = Vec::new();
    let one = [0, 2, 9, 3, 1, 30, 30, 1, 7];
    // The end of the file, from the first record on, and the chunk that is made of it.
    let cases: [(&str, i64, bool, Option<[u64; 9]>); 5] = [
        ("recover-torn", stride as i64, false, Some(one)),
        ("recover-torn-inside-record", 2 * stride as i64 - 1, false, Some(one)),
        ("recover-torn-record", 2 * stride as i64, true, Some(one)),
        ("recover-torn-loss", stride as i64 - 1, false, Some(loss_alone(2, 21).1)),
        ("recover-torn-prefix", -1, false, None),
    ];
    for (name, behind, bad_record, head) in cases {
        let mut broken = Broken::new(&ops(m), layout);
        let (start, end) = broken.chunk(b"EVNT", 2);
        let records = start + 64 + broken.place(2, 68);
        let len = (records as i64 + behind) as usize;
        assert!(len < end, "the chunk has a padding");
        if bad_record {
            broken.put(records + stride + 4, 99, 2);
        }
        broken.file.bytes.truncate(len);
        // Without a trailer, the numbers in the heads give the least number of missing events.
        let missing = match head {
            Some(head) => 2 - head[4],
            None => 0,
        };
        let instead: Vec<(usize, [u64; 9])> = head.map(|head| (2, head)).into_iter().collect();
        let mut made = Made::of(2, &[2, 3], &instead, (missing, false));
        if head.is_none() {
            made.heads.truncate(2);
        }
        let damages = vec![("truncated", start as u64)];
        out.push((name, broken, Expect::Recovered(damages, vec![], made.json())));
    }
    out
}

/// Step 5: losses of chunks that cannot be used; and a file that is refused.
fn losses(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    for (name, nth, time) in [("recover-loss", 1, 10), ("recover-first-loss", 3, 15)] {
        let mut broken = Broken::new(&ops(m), layout);
        let at = broken.chunk(b"EVNT", nth).0 + 64;
        let record = at + broken.place(nth, 68);
        broken.file.bytes[record + 8] ^= 1;
        let made = Made::of(3, &[nth], &[loss_alone(nth, time)], (HEADS[nth][4], true));
        out.push((name, broken, Expect::Recovered(vec![], vec![("checksum", at as u64)], made.json())));
    }
    let mut broken = Broken::new(&ops(m), layout);
    let offset = broken.header(b"cNEW", 0, 12, 3, 1);
    out.push(("recover-critical", broken, Expect::NotRecovered("unknown-critical-chunk", offset)));
    out
}
