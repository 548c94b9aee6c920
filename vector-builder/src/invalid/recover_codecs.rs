//! Recovery of chunks with a codec that no reader has, and of classes that are stored in two ways.

use super::Defect;
use super::recover::{Errors, Made, loss_alone, recovered};
use crate::broken::Broken;
use crate::cases::Maker;
use crate::codec;
use crate::model::Layout;

/// A codec that only a private agreement has.
const PRIVATE: u64 = 12;

pub fn codecs(m: Maker, layout: Layout) -> Vec<Defect> {
    let layout = Layout { index: false, ..layout };
    let mut out = Vec::new();
    let mut add = |name, change: &dyn Fn(&mut Broken) -> (Errors, Errors), made: Made| {
        out.push(recovered(m, layout, name, change, made));
    };
    let unknown = |b: &mut Broken, kind, nth| ("unknown-codec", b.header(kind, nth, 13, PRIVATE, 1) + 13);
    let all = |schemas| Made::of(schemas, &[], &[], (0, true));
    // Steps 11 and 13: events, whose loss is kept.
    add(
        "recover-codec-events",
        &|b| (vec![], vec![unknown(b, b"EVNT", 1)]),
        Made::of(3, &[1], &[loss_alone(1, 10)], (2, true)),
    );
    // Step 8: other kinds are left out.
    let mut made = all(3);
    made.kinds.remove(1);
    add("recover-codec-meta", &|b| (vec![unknown(b, b"META", 0)], vec![]), made);
    add("recover-codec-schema", &|b| (vec![unknown(b, b"SCHM", 0)], vec![]), all(2));
    // The body of an unknown kind is not looked at: it is copied. Nothing is damaged or missing.
    let copied = |b: &mut Broken| {
        unknown(b, b"cNEW", 0);
        (vec![], vec![])
    };
    add("recover-codec-unknown-kind", &copied, all(3).of_sound_file());
    // Step 10: a SCHM chunk that is there twice is written once; stored with a codec, it is another one.
    add("recover-schema-twice", &|b| again(b, false), all(3).of_sound_file());
    add("recover-schema-encoded", &|b| again(b, true), all(4).of_sound_file());
    out
}

/// Puts the first SCHM chunk once more in front of the trailer, as it is or with LZ4.
pub(super) fn again(b: &mut Broken, encoded: bool) -> (Errors, Errors) {
    let (start, end) = b.chunk(b"SCHM", 0);
    let mut chunk = b.file.bytes[start..end].to_vec();
    let body = chunk[64..64 + b.number(start + 24, 8) as usize].to_vec();
    let stored = if encoded { codec::lz4(&body) } else { body };
    chunk.truncate(64);
    chunk.extend_from_slice(&stored);
    chunk.resize(chunk.len().next_multiple_of(64), 0);
    let (trailer, _) = b.chunk(b"TRLR", 0);
    let (chunks, len) = (b.number(trailer + 68, 4), b.number(trailer + 72, 8));
    b.body(b"TRLR", 0, 4, chunks + 1, 4);
    b.body(b"TRLR", 0, 8, len + chunk.len() as u64, 8);
    let end = trailer + chunk.len();
    b.file.bytes.splice(trailer..trailer, chunk);
    b.put(trailer + 13, encoded.into(), 1);
    b.put(trailer + 16, (end - trailer) as u64, 8);
    b.put(trailer + 24, stored.len() as u64, 8);
    b.stamp(trailer, end);
    (vec![], vec![])
}
