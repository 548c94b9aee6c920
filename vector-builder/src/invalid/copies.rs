//! Copies of a header that is damaged.

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::bytes::crc32;
use crate::cases::{self, Maker};
use crate::model::Layout;

/// The header is damaged; the first copy is at 64, with a body at 128, and a second one is the last chunk.
fn two_copies(m: Maker, layout: Layout) -> Broken {
    let mut broken = Broken::new(&cases::two_cpus(m), layout);
    broken.file.bytes.extend_from_within(64..192);
    broken.file.bytes[41] ^= 1;
    broken
}

pub fn copies(m: Maker, layout: Layout) -> Vec<Defect> {
    let mut out = Vec::new();
    let mut add = |name, change: &dyn Fn(&mut Broken) -> Vec<(&'static str, u64)>| {
        let mut broken = two_copies(m, layout);
        let damages = [vec![("checksum", 0)], change(&mut broken)].concat();
        out.push((name, broken, Expect::Damage(damages)));
    };
    // The first copy does not pass the checks of a header: the second one is used.
    add("header-copy-second", &|b| {
        b.file.bytes[128 + 41] ^= 2;
        b.stamp(64, 192);
        Vec::new()
    });
    add("header-copy-incompatible", &|b| {
        b.put(128 + 20, 1 << 31, 4);
        let crc = crc32(&b.file.bytes[128..128 + 60]);
        b.put(128 + 60, crc.into(), 4);
        b.stamp(64, 192);
        Vec::new()
    });
    // The header fails another check: its copy is used all the same.
    let mut other = |name, at: usize, value, len, code| {
        let mut broken = Broken::new(&cases::two_cpus(m), layout);
        broken.put(at, value, len);
        out.push((name, broken, Expect::Damage(vec![(code, at as u64)])));
    };
    other("header-copy-magic", 0, 0, 8, "not-kmt");
    other("header-copy-byte-order", 8, 0, 4, "byte-order-mark");
    other("header-copy-version", 12, 2, 2, "major-version");
    other("header-copy-length", 16, 100, 4, "malformed");
    let mut add = |name, change: &dyn Fn(&mut Broken) -> Vec<(&'static str, u64)>| {
        let mut broken = two_copies(m, layout);
        let damages = [vec![("checksum", 0)], change(&mut broken)].concat();
        out.push((name, broken, Expect::Damage(damages)));
    };
    // A copy is found by its sync and kind alone; the walk does not take its chunk.
    add("header-copy-not-sound", &|b| {
        b.file.bytes[64 + 4] ^= 1;
        vec![("not-a-chunk", 64)]
    });
    // The checksum of its body does not count either.
    add("header-copy-body-checksum", &|b| {
        b.file.bytes[64 + 50] ^= 1;
        let crc = crc32(&b.file.bytes[64..64 + 60]);
        b.put(64 + 60, crc.into(), 4);
        vec![("checksum", 128)]
    });
    out
}

/// The only copy is at 65,536, the last place where it is looked for, and behind it.
pub fn far_copies() -> Vec<Defect> {
    let mut out = Vec::new();
    for (name, at) in [("header-copy-last-place", 65_536), ("header-copy-too-far", 65_600)] {
        let mut broken =
            Broken::new(&cases::two_cpus(Maker { big: false, long: 8 }), Layout::plain(false, 8));
        let copy = broken.file.bytes[64..192].to_vec();
        let end = broken.file.bytes.len() as u64;
        broken.file.bytes.resize(at, 0);
        broken.file.bytes.extend(copy);
        // The chunk at 64 is no copy any more, but of a kind that is not known.
        broken.put(64 + 8, u64::from_le_bytes(*b"xOLD\0\0\0\0"), 4);
        broken.stamp(64, 192);
        broken.file.bytes[41] ^= 1;
        let expect = match at {
            65_536 => Expect::Damage(vec![("checksum", 0), ("not-a-chunk", end)]),
            _ => Expect::Refused("checksum", 0),
        };
        out.push((name, broken, expect));
    }
    out
}
