//! The readable parts of a damaged file are recovered, and missing events are counted.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::support::model::{self, Op};
use crate::support::stride;
use crate::support::texts::Texts;
use kmt_format::edit::{Recovery, Rewrite, RewriteOptions};
use kmt_format::kernel::ByteOrder;
use kmt_format::raw::chunk_flags;
use kmt_format::read::Trace;
use kmt_format::{Compression, ErrorKind, Limits};

fn small_file(order: ByteOrder, long: usize) -> Vec<u8> {
    let mut ops = Vec::new();
    for i in 0..60u64 {
        let cpu = (i % 2) as u32;
        ops.push(Op::Event { cpu, class: (i % 6) as usize, step: 10, seed: i, repeat: i % 3 > 0 });
        if i % 15 == 14 {
            ops.push(Op::Flush { cpu });
        }
    }
    model::write(&ops, order, long).0
}

fn rewritten(file: &[u8], options: RewriteOptions) -> Result<(Vec<u8>, Recovery), ErrorKind> {
    let mut rewrite = Rewrite::new(file, Limits::default(), options).map_err(|e| e.kind().clone())?;
    let mut out = Vec::new();
    while let Some(bytes) = rewrite.next_bytes().unwrap() {
        out.extend(bytes);
    }
    Ok((out, rewrite.recovery().clone()))
}

/// Events by CPU and number.
type Events = BTreeMap<(u32, u64), Rc<str>>;

/// The events of a file that must be sound, and how many of them are unverified.
fn read(file: &[u8], texts: &mut Texts) -> (Events, u64) {
    let trace = Trace::open(file).unwrap();
    assert_eq!(trace.damages(), []);
    assert!(trace.is_finished());
    let mut out = Events::new();
    let mut unverified = 0;
    for (cpu, stream) in trace.streams() {
        for (chunk, info) in &stream.chunks {
            if chunk.flags & chunk_flags::UNVERIFIED != 0 {
                unverified += u64::from(info.event_count);
            }
            let texts = texts.of(&trace, file, chunk).unwrap();
            out.extend((info.first_event..).zip(texts.iter()).map(|(n, text)| ((*cpu, n), text.clone())));
        }
    }
    (out, unverified)
}

fn events(file: &[u8]) -> (Events, u64) {
    read(file, &mut Texts::default())
}

#[test]
fn a_longer_piece_holds_more() {
    for (order, long) in [(ByteOrder::Little, 8), (ByteOrder::Big, 4)] {
        let file = small_file(order, long);
        let mut texts = Texts::default();
        let (whole, _) = read(&file, &mut texts);
        let (mut before, mut salvaged) = (0, 0);
        for len in (0..file.len()).step_by(stride()).chain([file.len()]) {
            let Ok((new, recovery)) = rewritten(&file[..len], RewriteOptions::default()) else {
                assert!(len < 64, "a header is enough: {len}");
                continue;
            };
            let (found, unverified) = read(&new, &mut texts);
            assert!(found.iter().all(|(k, v)| whole.get(k) == Some(v)), "cut at {len}");
            assert!(found.len() >= before, "cut at {len}: {} events, {before} before", found.len());
            assert_eq!((recovery.events, recovery.events_unverified), (found.len() as u64, unverified));
            assert_eq!(recovery.is_sound(), len == file.len(), "cut at {len}");
            assert!(recovery.missing_is_exact || len < file.len());
            assert!(recovery.events + recovery.events_missing <= whole.len() as u64);
            before = found.len();
            salvaged = salvaged.max(unverified);
        }
        assert_eq!(before, whole.len());
        assert!(salvaged > 5, "torn chunks give up their records: {salvaged}");
    }
}

#[test]
fn every_flip_is_found_and_what_survives_is_the_clean_files() {
    for (order, long) in [(ByteOrder::Little, 8), (ByteOrder::Big, 4)] {
        let mut file = small_file(order, long);
        let mut texts = Texts::default();
        let (whole, _) = read(&file, &mut texts);
        for at in (0..file.len()).step_by(stride()) {
            let flip = [0x01u8, 0x80, 0xff][at % 3];
            file[at] ^= flip;
            let (new, recovery) = rewritten(&file, RewriteOptions::default()).unwrap();
            assert!(!recovery.is_sound(), "byte {at} ^ {flip:#x} went unnoticed");
            let (found, _) = read(&new, &mut texts);
            assert!(found.iter().all(|(k, v)| whole.get(k) == Some(v)), "byte {at}");
            if recovery.missing_is_exact {
                assert_eq!(recovery.events + recovery.events_missing, whole.len() as u64, "byte {at}");
            }
            file[at] ^= flip;
        }
    }
}

/// A wire that drops or adds bytes shifts all that follows; chunks are found at any offset.
#[test]
fn dropped_and_added_bytes_cost_only_their_chunk() {
    let file = small_file(ByteOrder::Little, 8);
    let (whole, _) = events(&file);
    let trace = Trace::open(&file).unwrap();
    let chunks: Vec<_> = trace.streams().values().flat_map(|s| s.chunks.clone()).collect();
    let (chunk, info) = chunks[1];
    let middle = chunk.offset as usize + 100;
    let dropped = [&file[..middle], &file[middle + 7..]].concat();
    let added = [&file[..middle], &[0x55; 13], &file[middle..]].concat();
    for damaged in [dropped, added] {
        let (new, recovery) = rewritten(&damaged, RewriteOptions::default()).unwrap();
        let (found, _) = events(&new);
        assert!(found.iter().all(|(k, v)| whole.get(k) == Some(v)));
        assert_eq!(recovery.events, whole.len() as u64 - u64::from(info.event_count));
        assert_eq!((recovery.events_missing, recovery.missing_is_exact), (info.event_count.into(), true));
        let note = Trace::open(&new).unwrap();
        assert!(note.metadata().text("recovery").unwrap().contains("events missing"));
    }
}

#[test]
fn codecs_change_nothing_but_the_size() {
    let ops: Vec<Op> = (0..3_000)
        .map(|i| Op::Event { cpu: 0, class: (i % 5) as usize, step: 9, seed: i, repeat: true })
        .collect();
    let plain = model::write(&ops, ByteOrder::Big, 8).0;
    let (whole, _) = events(&plain);
    let recode = |file: &[u8], compression| rewritten(file, RewriteOptions::new().compression(compression));
    let (lz4, recovery) = recode(&plain, Compression::Lz4).unwrap();
    assert!(recovery.is_sound() && lz4.len() < plain.len() / 2, "{} of {}", lz4.len(), plain.len());
    assert_eq!(events(&lz4).0, whole);
    assert!(recode(&lz4, Compression::None).unwrap().0 == plain);
    // As they are: the same bytes again.
    assert!(rewritten(&lz4, RewriteOptions::default()).unwrap().0 == lz4);
    if Compression::Zstd.is_available() {
        let (zstd, _) = recode(&lz4, Compression::Zstd).unwrap();
        assert_eq!(events(&zstd).0, whole);
        assert!(recode(&zstd, Compression::None).unwrap().0 == plain);
    } else {
        let error = recode(&plain, Compression::Zstd).unwrap_err();
        assert_eq!(error, ErrorKind::CodecNotBuilt { codec: "zstd" });
    }
}
