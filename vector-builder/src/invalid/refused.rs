//! Files that are refused.

use super::{Defect, Expect};
use crate::broken::Broken;
use crate::cases::{self, Maker};
use crate::model::Layout;

pub fn refused() -> Vec<Defect> {
    let base = || Broken::new(&cases::two_cpus(Maker { big: false, long: 8 }), Layout::plain(false, 8));
    let mut out = Vec::new();
    let mut add = |name, change: &dyn Fn(&mut Broken), code, offset| {
        let mut broken = base();
        change(&mut broken);
        out.push((name, broken, Expect::Refused(code, offset)));
    };
    add("empty-file", &|b| b.file.bytes.clear(), "not-kmt", 0);
    add("no-magic", &|b| b.file.bytes[..192].fill(b'x'), "not-kmt", 0);
    add("text-mode", &|b| drop(b.file.bytes.splice(4..6, [b'\n'])), "magic-damaged", 0);
    add("seven-bit", &|b| drop(b.file.bytes.splice(..192, *b"\x09KMT\r\n\x1a\n")), "magic-damaged", 0);
    add("byte-order", &|b| drop(b.file.bytes.splice(8..192, [3, 4, 1, 2])), "byte-order-mark", 8);
    add("magic-cut", &|b| b.file.bytes.truncate(3), "truncated", 0);
    add("magic-first-byte", &|b| drop(b.file.bytes.splice(.., *b"xKMT")), "magic-damaged", 0);
    add("short-header", &|b| b.file.bytes.truncate(40), "truncated", 0);
    add(
        "header-checksum",
        &|b| {
            b.file.bytes[30] ^= 4;
            b.file.bytes[64..192].fill(0);
        },
        "checksum",
        0,
    );
    add("header-length", &|b| b.file_header(16, 100, 4), "malformed", 16);
    add("header-length-0", &|b| b.file_header(16, 0, 4), "malformed", 16);
    add("major-version", &|b| b.file_header(12, 2, 2), "major-version", 12);
    // Beside a bit that is known.
    add("incompatible-beside", &|b| b.file_header(20, 3, 4), "incompatible-features", 20);
    add("incompatible", &|b| b.file_header(20, 0x8000_0000, 4), "incompatible-features", 20);
    add("size-of-long", &|b| b.file_header(30, 2, 1), "malformed", 30);
    add("page-shift", &|b| b.file_header(34, 31, 1), "malformed", 34);
    add(
        "critical-kind",
        &|b| {
            b.header(b"SCHM", 0, 8, u64::from_le_bytes(*b"NEWK\x01\0\0\0") & 0xffff_ffff, 4);
        },
        "unknown-critical-chunk",
        192,
    );
    // The body is not looked at.
    add(
        "critical-kind-checksum",
        &|b| {
            b.header(b"SCHM", 0, 8, u64::from_le_bytes(*b"NEWK\x01\0\0\0") & 0xffff_ffff, 4);
            b.file.bytes[192 + 64] ^= 1;
        },
        "unknown-critical-chunk",
        192,
    );
    out
}
