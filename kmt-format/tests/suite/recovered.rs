//! Recovery keeps what is whole, and the losses that the heads of other chunks have.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::support::stamp::vector;
use crate::support::stride;
use kmt_format::edit::{Recovery, Rewrite, RewriteOptions};
use kmt_format::read::{ChunkRef, Trace};
use kmt_format::{Compression, Limits, Loss};

/// Files with events, losses and all kinds of other chunks: plain and encoded, decoded and verbatim.
fn files() -> Vec<(String, Vec<u8>)> {
    let names = ["losses-le64", "losses-be32", "sub-buffers-le64", "sub-buffers-be32", "metadata-le64"];
    let plain = names.map(|name| (name.to_owned(), vector(&format!("{name}.kmt"))));
    let encoded = plain.clone().map(|(name, file)| {
        let (file, _) = rewritten(&file, RewriteOptions::new().compression(Compression::Lz4)).unwrap();
        (format!("{name} with LZ4"), file)
    });
    plain.into_iter().chain(encoded).collect()
}

fn rewritten(file: &[u8], options: RewriteOptions) -> Option<(Vec<u8>, Recovery)> {
    let mut rewrite = Rewrite::new(file, Limits::default(), options).ok()?;
    let mut out = Vec::new();
    while let Some(bytes) = rewrite.next_bytes().unwrap() {
        out.extend(bytes);
    }
    Some((out, rewrite.recovery().clone()))
}

fn recovered(file: &[u8]) -> (Vec<u8>, Recovery) {
    rewritten(file, RewriteOptions::new()).unwrap()
}

/// Chunks of a sound file by CPU and sequence: their losses, and numbers of their first events.
fn losses(file: &[u8]) -> BTreeMap<(u32, u32), (Loss, u64)> {
    let trace = Trace::open(file).unwrap();
    assert_eq!(trace.damages(), []);
    assert!(trace.is_finished());
    let mut out = BTreeMap::new();
    for (cpu, stream) in trace.streams() {
        for (chunk, info) in &stream.chunks {
            trace.read(chunk).unwrap();
            if !info.loss.is_none() {
                out.insert((*cpu, chunk.sequence), (info.loss, info.first_event));
            }
        }
    }
    out
}

fn chunks(file: &[u8]) -> Vec<ChunkRef> {
    Trace::open(file).unwrap().chunks().collect()
}

/// Bytes of a header and a prefix, CPU and sequence, loss and number of the first event.
type Head = (Range<usize>, (u32, u32), (Loss, u64));

/// Losses of a sound file, with the bytes of the chunk's header and prefix.
fn heads(file: &[u8]) -> Vec<Head> {
    let chunks = chunks(file);
    let head = |((cpu, sequence), loss): (_, _)| {
        let chunk = chunks.iter().find(|c| c.cpu == Some(cpu) && c.sequence == sequence).unwrap();
        let start = chunk.offset as usize;
        (start..start + 64 + chunk.prefix_len as usize, (cpu, sequence), loss)
    };
    losses(file).into_iter().map(head).collect()
}

#[test]
fn a_cut_file_keeps_the_losses_of_all_heads_that_are_there() {
    for (name, file) in files() {
        let heads = heads(&file);
        assert_eq!(heads.is_empty(), name.contains("metadata"), "{name}");
        for len in (64..file.len()).step_by(stride()) {
            let there = heads.iter().filter(|(bytes, ..)| bytes.end <= len);
            let there = there.map(|(_, chunk, loss)| (*chunk, *loss)).collect();
            assert_eq!(losses(&recovered(&file[..len]).0), there, "{name} cut at {len}");
        }
    }
}

#[test]
fn a_damaged_file_keeps_the_losses_of_all_sound_heads() {
    for (name, mut file) in files() {
        let heads = heads(&file);
        for at in (64..file.len()).step_by(7 * stride()) {
            file[at] ^= 0x10;
            let (new, recovery) = recovered(&file);
            file[at] ^= 0x10;
            assert!(!recovery.is_sound(), "{name}: byte {at}");
            let there = heads.iter().filter(|(bytes, ..)| !bytes.contains(&at));
            let there = there.map(|(_, chunk, loss)| (*chunk, *loss)).collect();
            assert_eq!(losses(&new), there, "{name}: byte {at}");
        }
    }
}

/// Chunks of each kind in a file, and events.
fn content(file: &[u8]) -> (BTreeMap<[u8; 4], usize>, u64) {
    let trace = Trace::open(file).unwrap();
    let mut kinds = BTreeMap::new();
    // Recovery writes these itself, and one pair about itself.
    let written = [*b"INDX", *b"TRLR", *b"HDRC", *b"META", *b"SCHM"];
    for chunk in trace.chunks().filter(|c| !written.contains(&c.kind.0)) {
        *kinds.entry(chunk.kind.0).or_default() += 1;
    }
    let pairs = trace.metadata().pairs.iter().filter(|(key, _)| key != "recovery").count();
    kinds.insert(*b"META", pairs);
    (kinds, trace.event_count())
}

#[test]
fn a_chunk_without_its_padding_is_whole() {
    let mut cut = 0;
    for (name, file) in files() {
        for chunk in chunks(&file) {
            let (body_end, end) =
                ((chunk.offset + 64 + chunk.body_len) as usize, (chunk.offset + chunk.total_len) as usize);
            let (whole, _) = recovered(&file[..end]);
            for len in body_end..end {
                let (new, recovery) = recovered(&file[..len]);
                let what = format!("{name}: {:?} at {} cut at {len}", chunk.kind, chunk.offset);
                assert_eq!(content(&new), content(&whole), "{what}");
                assert_eq!((recovery.events_unverified, recovery.is_sound()), (0, false), "{what}");
                // The bytes behind have moved up.
                let moved = [&file[..len], &file[end..]].concat();
                let (new, recovery) = recovered(&moved);
                assert_eq!(content(&new), content(&file), "{what}, with the rest of the file");
                assert_eq!(recovery.events_missing, 0, "{what}, with the rest of the file");
                cut += 1;
            }
        }
    }
    assert!(cut > 100, "{cut}");
}
