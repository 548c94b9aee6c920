//! Chunks that are stored otherwise than by other writers.

use super::{Changed, built};
use crate::cases::Maker;
use crate::codec;
use crate::model::{Layout, Loss, Op};

pub fn stored(m: Maker, layout: Layout) -> Vec<(&'static str, Changed)> {
    vec![
        ("filter-wraps", filter_wraps(m, layout)),
        ("filter-no-records", filter_no_records(layout)),
        ("raw-long-prefix", raw_long_prefix(m, layout)),
    ]
}

/// Differences of times modulo 2^32, in records that start where the prefix ends.
fn filter_wraps(m: Maker, layout: Layout) -> Changed {
    let times = [10, 10 + 0xffff_fff0, 10 + 0x1_0000_0010];
    let (mut file, expected) = built(&times.map(|time| Op::Event(0, m.kmalloc(time, 0x40, 8))), layout);
    let mut rest = file.rest(b"EVNT", 0);
    assert_eq!(rest.len(), 3 * 16, "the prefix ends in front of the records");
    codec::filter(&mut rest, 0, 3, 16, layout.big);
    file.store(b"EVNT", 0, 0x11, &codec::lz4(&rest));
    (file, expected)
}

/// A filter without records: their offset means nothing.
fn filter_no_records(layout: Layout) -> Changed {
    let lost = Loss { uncounted: true, ..Loss::default() };
    let (mut file, expected) = built(&[Op::Lost(0, lost)], layout);
    file.body(b"EVNT", 0, 68, 0, 4);
    let rest = file.rest(b"EVNT", 0);
    file.store(b"EVNT", 0, 0x11, &codec::lz4(&rest));
    (file, expected)
}

/// The first of two sub-buffers belongs to the prefix, and is not encoded.
fn raw_long_prefix(m: Maker, layout: Layout) -> Changed {
    let sub_buffer = |time| Op::SubBuffer(0, vec![m.kmalloc(time, 0x40, 8)], Loss::default());
    let (mut file, expected) = built(&[sub_buffer(10), sub_buffer(20)], layout);
    file.header(b"RAWP", 0, 52, 72 + layout.sub_buffer_len as u64, 4);
    let rest = file.rest(b"RAWP", 0);
    file.store(b"RAWP", 0, 1, &codec::lz4(&rest));
    (file, expected)
}
