//! Stored bodies of any bytes: decoded to their stated length or refused. What was encoded comes back.

use std::sync::OnceLock;

use kmt_format::edit::{Rewrite, RewriteOptions};
use kmt_format::kernel::ByteOrder;
use kmt_format::read::Trace;
use kmt_format::{Compression, Limits};

use super::{look, open, repair, story};

pub fn run(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else { return };
    stored(kind, rest);
    round_trip(kind, rest);
}

/// One chunk with these stored bytes, as META or EVNT.
fn stored(kind: u8, rest: &[u8]) {
    static PLAIN: OnceLock<Vec<u8>> = OnceLock::new();
    let plain = PLAIN.get_or_init(|| story::write(&[], ByteOrder::Little, 8, Compression::None));
    let mut file = plain[..192].to_vec();
    let mut chunk = vec![0; 64];
    chunk[..8].copy_from_slice(b"KMTCa st");
    chunk[8..12].copy_from_slice(if kind & 64 == 0 { b"META" } else { b"EVNT" });
    chunk[12] = 2;
    chunk[13] = kind & 0x33;
    let raw_len = 64 * u64::from(kind & 15) + rest.len() as u64 * u64::from(kind >> 4);
    let total = (64 + rest.len()).next_multiple_of(64) as u64;
    let prefix_len = if kind & 64 == 0 { 0 } else { rest.len().min(96) as u32 };
    chunk[16..24].copy_from_slice(&total.to_le_bytes());
    chunk[24..32].copy_from_slice(&(rest.len() as u64).to_le_bytes());
    chunk[32..40].copy_from_slice(&raw_len.to_le_bytes());
    chunk[40..44].fill(if kind & 64 == 0 { 0xff } else { 0 });
    chunk[52..56].copy_from_slice(&prefix_len.to_le_bytes());
    chunk.extend(rest);
    chunk.resize(total as usize, 0);
    file.extend(chunk);
    repair::repair(&mut file);
    let trace = Trace::builder().limits(open::limits()).open(&file).expect("the header is good");
    look::at(&trace);
}

/// The story that the bytes tell, with each codec and back.
fn round_trip(kind: u8, rest: &[u8]) {
    let (order, long) = match kind & 3 {
        0 => (ByteOrder::Little, 8),
        1 => (ByteOrder::Big, 8),
        2 => (ByteOrder::Little, 4),
        _ => (ByteOrder::Big, 4),
    };
    let plain = story::write(&story::of(rest, true), order, long, Compression::None);
    let mut file = plain.clone();
    let codec = if kind & 4 == 0 { Compression::Lz4 } else { Compression::Zstd };
    for compression in [codec, Compression::None] {
        let options = RewriteOptions::new().compression(compression);
        let mut rewrite = Rewrite::new(&file, Limits::default(), options).expect("our own file");
        let mut out = Vec::new();
        while let Some(bytes) = rewrite.next_bytes().expect("a good codec") {
            out.extend(bytes);
        }
        assert!(rewrite.recovery().is_sound());
        let trace = Trace::open(&out).expect("our own file");
        assert_eq!(trace.damages(), []);
        let original = Trace::open(&plain).expect("our own file");
        assert_eq!(look::events(&trace), look::events(&original));
        file = out;
    }
}
