//! Words of sub-buffers and of their events: the check that comes first gives the error.

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::bytes::Bytes;
use crate::cases::Maker;
use crate::changed::sub_buffers::{put_data, word};
use crate::model::{Layout, Loss, Op};

/// Length of a SubBuffersHead; the commit word stands 8 bytes behind it.
const RAW_HEAD: usize = 72;

/// Values, and their lengths.
type Numbers<'a> = &'a [(u64, usize)];

pub fn words(m: Maker, layout: Layout) -> Vec<Defect> {
    let layout = Layout { index: false, ..layout };
    let (commit, second) = (RAW_HEAD + 8, RAW_HEAD + 1024 + 8);
    let mut out = Vec::new();
    let mut add = |name, code, change: &dyn Fn(&mut Broken) -> u64| {
        let of = |time| Op::SubBuffer(0, vec![m.empty(time)], Loss::default());
        let mut broken = Broken::new(&[of(100), of(110)], layout);
        let offset = change(&mut broken);
        out.push((name, broken, Expect::Unreadable(code, offset)));
    };
    let bit = |b: &mut Broken, at: usize, bit: u64| {
        let old = b.number(b.chunk(b"RAWP", 0).0 + 64 + at, m.long);
        b.body(b"RAWP", 0, at, old | 1 << bit, m.long) + at as u64
    };
    // The highest bit of the length of the data; a loss by bit 30 alone, in the first sub-buffer and the second one.
    add("raw-commit-bit-26", "sub-buffer", &|b| bit(b, commit, 26));
    add("raw-loss-stored-untold", "malformed", &|b| bit(b, commit, 30));
    add("raw-loss-stored-inside", "malformed", &|b| {
        b.body(b"RAWP", 0, 4, 2, 4);
        bit(b, second, 30)
    });
    // The data of the second one end behind it, which may not have a loss either.
    add("order-data-loss", "sub-buffer", &|b| {
        b.body(b"RAWP", 0, second, 2_000 | 1 << 31, m.long) + second as u64
    });
    // Data behind the first event, and where in them the error is. In two of them the time steps back.
    let back = [(word(m, 31, 50), 4), (0, 4)];
    let cases: [(_, _, &[Numbers], _, _); 4] = [
        ("order-class-time", "unknown-event-id", &[&back, &[(word(m, 2, 0), 4), (999, 2), (0, 6)]], 8, 0),
        ("order-time-record", "malformed", &[&back, &[(word(m, 1, 0), 4), (301, 2), (0, 2)]], 8, 0),
        ("raw-absolute-outside", "sub-buffer", &[&[(word(m, 31, 5), 4)]], 0, 0),
        // The record has 8 bytes, of which 4 are within the data.
        ("raw-long-outside", "sub-buffer", &[&[(word(m, 0, 5), 4), (12, 4), (301, 2), (0, 6)]], 0, 4),
    ];
    for (name, code, numbers, at, outside) in cases {
        add(name, code, &|b| {
            let mut data = Bytes::new(m.big);
            for &(value, len) in numbers.iter().copied().flatten() {
                data.number(value, len);
            }
            let body = put_data(b, m, 12, &data.data);
            b.body(b"RAWP", 0, commit, (12 + data.len() - outside) as u64, m.long);
            body + (commit + m.long + 12 + at) as u64
        });
    }
    out
}
