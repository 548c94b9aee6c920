//! The incremental reader finds the same as the slice reader, however the input is cut.

use kmt_format::read::{Arrived, ChunkRef, Damage, EventChunk, FoldChunk, Incremental, Trace};

use super::{look, open, repair};

pub fn run(data: &[u8]) {
    compare(data);
    let mut repaired = data.to_vec();
    repair::repair(&mut repaired);
    compare(&repaired);
}

#[derive(Default)]
struct Seen {
    chunks: u64,
    events: Vec<(ChunkRef, EventChunk<'static>)>,
    folds: Vec<FoldChunk<'static>>,
    damages: Vec<Damage>,
}

fn compare(data: &[u8]) {
    let slice = Trace::builder().limits(open::limits()).open(data);
    let mut reader = Incremental::with_limits(open::limits());
    let mut seen = Seen::default();
    let mut failed = None;
    // Where the input is cut depends on it, so that the fuzzer finds the cuts that matter.
    let mut state = repair::crc32(data) | 1;
    let mut rest = data;
    while !rest.is_empty() && failed.is_none() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let len = (1 + (state >> 20) as usize % 700).min(rest.len());
        reader.push(&rest[..len]);
        rest = &rest[len..];
        failed = take(&mut reader, &mut seen);
    }
    reader.end();
    failed = failed.or_else(|| take(&mut reader, &mut seen));
    match slice {
        Err(error) => assert_eq!(failed, Some(error)),
        Ok(trace) => {
            assert_eq!(failed, None);
            same(&trace, &reader, &seen);
        }
    }
}

fn take(reader: &mut Incremental, seen: &mut Seen) -> Option<kmt_format::Error> {
    loop {
        match reader.next() {
            Ok(Some(Arrived::Events(chunk, events))) => seen.events.push((chunk, events)),
            Ok(Some(Arrived::Folded(_, folded))) => seen.folds.push(folded),
            Ok(Some(Arrived::Chunk(_))) => seen.chunks += 1,
            Ok(Some(Arrived::Damage(damage))) => seen.damages.push(damage),
            Ok(Some(_)) => {}
            Ok(None) => return None,
            Err(error) => return Some(error),
        }
    }
}

fn same(trace: &Trace<'_>, reader: &Incremental, seen: &Seen) {
    assert_eq!(trace.damages(), reader.damages());
    assert_eq!(trace.chunk_count(), reader.chunk_count());
    assert_eq!(trace.is_finished(), reader.is_finished());
    assert_eq!(Some(trace.metadata()), reader.metadata());
    assert_eq!(trace.symbols().map(|s| s.len()), reader.symbols().map(|s| s.len()));
    let mut found = Vec::new();
    let mut unreadable = 0;
    for stream in trace.streams().values() {
        for (chunk, _) in &stream.chunks {
            match trace.read(chunk) {
                Ok(events) => found.push((chunk.offset, text(trace.schema(), &events))),
                Err(_) => unreadable += 1,
            }
        }
    }
    found.sort();
    let mut folds = Vec::new();
    for (chunk, _) in trace.folds() {
        match trace.read_fold(chunk) {
            Ok(folded) => folds.push(look::folded(trace.schema(), &folded)),
            Err(_) => unreadable += 1,
        }
    }
    let schema = reader.schema().expect("a header came");
    let mut arrived: Vec<_> = seen.events.iter().map(|(c, e)| (c.offset, text(schema, e))).collect();
    arrived.sort();
    assert_eq!(found, arrived);
    assert_eq!(folds, seen.folds.iter().map(|folded| look::folded(schema, folded)).collect::<Vec<_>>());
    assert_eq!(trace.folds_missing(), reader.folds_missing());
    assert_eq!(seen.damages.len() as u64, trace.damage_count() + unreadable);
}

fn text(schema: &kmt_format::read::Schema, events: &EventChunk<'_>) -> Vec<String> {
    (0..events.records().len().min(200)).map(|i| look::event(schema, events, i)).collect()
}
