//! Folded lives: written and read, in pieces, joined, appended to, recoded, damaged.

use crate::support::stamp::{stamp, vector};
use crate::support::{found, naive, stride, written};
use kmt_format::edit::{Join, Rewrite, RewriteOptions};
use kmt_format::fold::{FoldedInterval, FoldedRow, FoldedSums, bin_of};
use kmt_format::kernel::ByteOrder;
use kmt_format::read::{Arrived, Incremental, Trace};
use kmt_format::write::{Writer, WriterOptions};
use kmt_format::{Compression, ErrorKind, Limits};
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use vector_builder::cases::Maker;
use vector_builder::cases::folded::{intervals, most, null_frees};
use vector_builder::file;
use vector_builder::model::{Fold, Layout, Lives, Op};

const LITTLE: (Maker, Layout) = (Maker { big: false, long: 8 }, Layout::plain(false, 8));

/// The intervals that can be read, as the vectors have them, and the number of those that cannot.
fn readable(trace: &Trace<'_>) -> (Vec<Json>, usize) {
    let read = trace.folds().iter().map(|(chunk, _)| trace.read_fold(chunk));
    let (good, bad): (Vec<_>, Vec<_>) = read.partition(Result::is_ok);
    (good.into_iter().flatten().map(|chunk| found::fold(&chunk, trace.schema())).collect(), bad.len())
}

/// The intervals of a sound file.
fn all(bytes: &[u8]) -> Vec<Json> {
    let trace = Trace::open(bytes).unwrap();
    assert!(trace.damages().is_empty() && trace.is_finished() && trace.header().folded);
    trace.check().unwrap();
    let (folds, bad) = readable(&trace);
    assert_eq!(bad, 0);
    folds
}

fn numbers(folds: &[Json]) -> Vec<u64> {
    folds.iter().map(|fold| fold["number"].as_u64().unwrap()).collect()
}

/// Lives of one kind: bytes asked for, if the kind is of a cache, if these are frees of NULL, and length, other CPU, other task of
/// each.
type Row = (u64, bool, bool, Vec<(u64, bool, bool)>);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let life =
        (any::<u64>(), 0u32..64, any::<bool>(), any::<bool>()).prop_map(|(n, bits, a, b)| (n >> bits, a, b));
    let of_null = prop::bool::weighted(0.2);
    prop::collection::vec((1u64..4, any::<bool>(), of_null, prop::collection::vec(life, 0..6)), 0..8)
}

fn made(m: Maker, number: u64, rows: &[Row]) -> Fold {
    let rows = rows.iter().map(|(bytes, cached, of_null, lives)| {
        let mut sums = FoldedSums::default();
        let mut bins: Vec<(u32, u32)> = Vec::new();
        for (length, cross_cpu, elsewhere) in lives {
            sums.add(*length, *cross_cpu, *cross_cpu || *elsewhere, 1_000_000);
            bins.push((bin_of(*length), 1));
        }
        let FoldedSums { count, cross_cpu, elsewhere, length_sum, length_max, over_ms, over_s } = sums;
        let (alloc, free) = match cached {
            true => (m.cache_alloc(9, 0x40 * bytes, "dentry"), m.free(9, 0x40, "dentry")),
            false => (m.kmalloc(9, 0x40 * bytes, *bytes), m.kfree(9, 0x40)),
        };
        if *of_null {
            return null_frees(free, count);
        }
        Lives {
            alloc: Some(alloc),
            free,
            sums: [count, cross_cpu, elsewhere, length_sum, length_max, over_ms, over_s],
            bins,
        }
    });
    let (rows, cpus) = (rows.collect(), vec![(2, number), (0, 1 << 40)]);
    Fold {
        number,
        begin: number,
        end: number + 1,
        threshold: 7,
        written_through: number % 2 == 1,
        cpus,
        rows,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// The library's writer makes the bytes of the builder, and both readers find in them what was written.
    #[test]
    fn what_is_written_is_read(
        intervals in prop::collection::vec((1u64..3, rows()), 1..4), big in any::<bool>(), wide in any::<bool>(),
    ) {
        let (m, layout) = (Maker { big, long: if wide { 8 } else { 4 } }, Layout::plain(big, if wide { 8 } else { 4 }));
        let mut number = 0;
        let made = intervals.iter().map(|(step, rows)| {
            number += step;
            made(m, number, rows)
        });
        let made: Vec<Fold> = made.collect();
        let mut ops = vec![Op::Event(0, m.kmalloc(5, 0x40, 100))];
        ops.extend(made.iter().cloned().map(Op::Fold));
        let bytes = written::write(&layout, &ops);
        prop_assert!(bytes == file::build(&ops, layout).bytes);
        let expected: Vec<Json> = made.iter().map(|fold| vector_builder::json::fold(fold, layout.long)).collect();
        prop_assert_eq!(&all(&bytes), &expected);
        let second = naive::read(&bytes).metadata;
        prop_assert_eq!(&second["folds"], &Json::from(expected));
        prop_assert_eq!(&second["folds_missing"], &json!(number + 1 - made.len() as u64));
        let trace = Trace::open(&bytes).unwrap();
        prop_assert_eq!(trace.folds_missing(), number + 1 - made.len() as u64);
        let events = made.iter().map(|fold| fold.number + (1 << 40)).sum::<u64>();
        prop_assert_eq!(trace.folded_event_count(), (events, trace.folds_missing() == 0));
    }
}

/// A file of three intervals with some classes of its own, written with that codec.
fn three(compression: Compression) -> Vec<u8> {
    let mut rewrite = RewriteOptions::new();
    rewrite = rewrite.compression(compression);
    recoded(&file::build(&intervals(LITTLE.0), LITTLE.1).bytes, rewrite)
}

fn recoded(bytes: &[u8], options: RewriteOptions) -> Vec<u8> {
    let mut rewrite = Rewrite::new(bytes, Limits::default(), options).unwrap();
    let mut out = Vec::new();
    while let Some(bytes) = rewrite.next_bytes().unwrap() {
        out.extend(bytes);
    }
    out
}

#[test]
fn another_codec_changes_nothing_but_the_codec() {
    for name in ["folded-le64", "folded-be32", "folded-le64-padded", "folded-be32-padded"] {
        let bytes = vector(&format!("{name}.kmt"));
        let expected = all(&bytes);
        assert_eq!(numbers(&expected), [0, 1, 2]);
        for compression in [Compression::None, Compression::Lz4] {
            let recoded = recoded(&bytes, RewriteOptions::new().compression(compression));
            assert_eq!(all(&recoded), expected, "{name}");
            let trace = Trace::open(&recoded).unwrap();
            let has_codec = trace.folds().iter().any(|(chunk, _)| chunk.codec != 0);
            assert_eq!(has_codec, compression == Compression::Lz4, "{name}");
        }
    }
}

#[test]
fn a_file_that_is_appended_to_keeps_its_intervals() {
    let bytes = three(Compression::None);
    let mut writer = Writer::append_to(&bytes, Limits::default(), Compression::None).unwrap();
    let mut interval = FoldedInterval::default();
    interval.number = 2;
    let used = writer.add_fold(&interval).unwrap_err();
    assert!(matches!(used.kind(), ErrorKind::Usage(_)), "{used}");
    interval.number = 3;
    writer.add_fold(&interval).unwrap();
    let whole = [bytes.clone(), writer.finish().unwrap()].concat();
    let found = all(&whole);
    assert_eq!(found[..3], all(&bytes));
    assert_eq!(numbers(&found), [0, 1, 2, 3]);
}

#[test]
fn files_of_one_recording_are_joined_with_rising_numbers() {
    let options = WriterOptions::new(ByteOrder::Big, 4).folded(true);
    let mut writer = Writer::new(options).unwrap();
    let mut interval = FoldedInterval::default();
    let mut files = Vec::new();
    for part in 0..3u64 {
        for number in 0..=part {
            (interval.number, interval.t_begin, interval.t_end) = (number, part, part);
            writer.add_fold(&interval).unwrap();
        }
        files.push(if part < 2 { writer.next_file().unwrap() } else { Vec::new() });
    }
    files[2] = writer.finish().unwrap();
    assert_eq!(numbers(&all(&files[2])), [0, 1, 2]);
    let mut join = Join::new(Limits::default());
    files.iter().for_each(|file| join.add(file).unwrap());
    let mut whole = Vec::new();
    while let Some(bytes) = join.next_bytes().unwrap() {
        whole.extend(bytes);
    }
    let found = all(&whole);
    assert_eq!(numbers(&found), [0, 1, 2, 3, 4, 5]);
    let begins: Vec<u64> = found.iter().map(|fold| fold["begin"].as_u64().unwrap()).collect();
    assert_eq!(begins, [0, 1, 1, 2, 2, 2]);
}

/// Start and end of each chunk, and its kind.
fn chunks(bytes: &[u8]) -> Vec<(usize, usize, String)> {
    let trace = Trace::open(bytes).unwrap();
    let place = |c: kmt_format::read::ChunkRef| {
        (c.offset as usize, (c.offset + c.total_len) as usize, c.kind.to_string())
    };
    trace.chunks().map(place).collect()
}

#[test]
fn the_number_of_events_has_64_bits_at_most() {
    let bytes = written::write(&LITTLE.1, &most(LITTLE.0));
    let trace = Trace::open(&bytes).unwrap();
    let (chunk, info) = trace.folds()[0];
    assert_eq!((info.events, trace.folded_event_count()), (u64::MAX, (u64::MAX, true)));
    let read = trace.read_fold(&chunk).unwrap();
    assert_eq!(read.cpus(), [(0, u64::MAX), (1, 1)]);
    let lives: Vec<_> = read.lives().collect();
    assert_eq!((lives.len(), lives[0].sums().count, lives[0].indices()), (1, u64::MAX, (None, 0)));
    assert!(lives[0].alloc(trace.schema()).is_none() && lives[0].free(trace.schema()).is_some());
}

#[test]
fn intervals_wait_for_their_classes() {
    let bytes = file::build(&intervals(LITTLE.0), Layout { index: false, ..LITTLE.1 }).bytes;
    let expected = all(&bytes);
    // Without the classes in front of the first interval: they are repeated at the end.
    let (start, end, _) = chunks(&bytes).into_iter().find(|c| c.2 == "SCHM").unwrap();
    let late = [&bytes[..start], &bytes[end..]].concat();
    let mut reader = Incremental::new();
    let mut found = Vec::new();
    for piece in late.chunks(100) {
        reader.push(piece);
        while let Some(arrived) = reader.next().unwrap() {
            if let Arrived::Folded(_, folded) = arrived {
                found.push(folded);
            }
        }
    }
    let schema = reader.schema().unwrap();
    let found: Vec<Json> = found.iter().map(|folded| found::fold(folded, schema)).collect();
    assert_eq!(found, expected);
    assert_eq!(readable(&Trace::open(&late).unwrap()), (expected, 0));
}

/// True if a reader learns that something is wrong.
fn is_told(trace: &Trace<'_>, unreadable: usize) -> bool {
    let mut chunks = trace.streams().values().flat_map(|stream| &stream.chunks);
    trace.damage_count() > 0
        || !trace.is_finished()
        || unreadable > 0
        || chunks.any(|(chunk, _)| trace.read(chunk).is_err())
}

#[test]
fn every_flipped_byte_is_noticed_and_costs_only_its_interval() {
    for (big, long) in [(false, 8), (true, 4)] {
        let mut bytes = file::build(&intervals(Maker { big, long }), Layout::plain(big, long)).bytes;
        let whole = all(&bytes);
        let folds: Vec<_> = chunks(&bytes).into_iter().filter(|chunk| chunk.2 == "FOLD").collect();
        for at in (0..bytes.len()).step_by(stride()) {
            let flip = [0x01u8, 0x80, 0xff][at % 3];
            let hit = folds.iter().position(|(start, end, _)| (*start..*end).contains(&at));
            // Of other chunks `damage` flips each byte.
            if hit.is_none() && at % 16 != 0 {
                continue;
            }
            bytes[at] ^= flip;
            let trace = Trace::open(&bytes).unwrap_or_else(|error| panic!("byte {at}: {error}"));
            let (found, unreadable) = readable(&trace);
            assert!(is_told(&trace, unreadable), "byte {at} went unnoticed");
            let left: Vec<_> = whole
                .iter()
                .enumerate()
                .filter(|(i, _)| Some(*i) != hit)
                .map(|(_, fold)| fold.clone())
                .collect();
            assert_eq!(found, left, "byte {at}");
            let (_, is_exact) = trace.folded_event_count();
            assert!(!is_exact || hit.is_none(), "byte {at}");
            bytes[at] ^= flip;
        }
    }
}

#[test]
fn every_truncation_keeps_the_intervals_that_are_whole() {
    let bytes = three(Compression::Lz4);
    let whole = all(&bytes);
    let sound = Trace::open(&bytes).unwrap();
    let folds: Vec<_> = chunks(&bytes).into_iter().filter(|chunk| chunk.2 == "FOLD").collect();
    for len in (64..bytes.len()).step_by(stride()) {
        let trace = Trace::open(&bytes[..len]).unwrap();
        let (found, unreadable) = readable(&trace);
        let count = folds.iter().filter(|(_, end, _)| *end <= len).count();
        assert_eq!((found.as_slice(), unreadable), (&whole[..count], 0), "{len}");
        assert!(!trace.folded_event_count().1, "{len}");
        // A recovery needs no padding.
        let bodies = sound.folds().iter().filter(|(c, _)| c.body_offset() + c.body_len <= len as u64).count();
        let recovered = recoded(&bytes[..len], RewriteOptions::new());
        assert_eq!(all(&recovered), whole[..bodies], "{len}");
    }
}

/// Bodies that no writer makes: each byte changed, with right checksums.
#[test]
fn changed_bytes_are_refused_or_read_without_a_panic() {
    let bytes = file::build(&intervals(LITTLE.0), LITTLE.1).bytes;
    let (start, end, _) = chunks(&bytes).into_iter().find(|chunk| chunk.2 == "FOLD").unwrap();
    let (mut refused, mut read) = (0, 0);
    for at in (start + 64..end).step_by(stride()) {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            stamp(&mut bytes, start);
            let trace = Trace::open(&bytes).unwrap();
            let (found, unreadable) = readable(&trace);
            refused += unreadable;
            read += found.len();
            for fold in found.iter().flat_map(|fold| fold["rows"].as_array().unwrap()) {
                let bins = fold["bins"].as_array().unwrap();
                let sum = bins.iter().map(|bin| bin[1].as_u64().unwrap()).sum::<u64>();
                let has_lives = !fold["alloc"].is_null();
                assert_eq!(sum, if has_lives { fold["sums"][0].as_u64().unwrap() } else { 0 }, "byte {at}");
            }
            let recovered = recoded(&bytes, RewriteOptions::new().compression(Compression::Lz4));
            assert_eq!(all(&recovered).len(), found.len(), "byte {at}: {value}");
        }
    }
    assert!(refused > 50 / stride() && read > 50 / stride(), "{refused} {read}");
}

#[test]
fn limits_are_kept() {
    let bytes = three(Compression::Lz4);
    for (name, limit) in [("records", 1), ("streams", 1), ("decoded_len", 300), ("chunk_len", 300)] {
        let mut limits = Limits::default();
        assert!(limits.set(name, limit));
        let Ok(trace) = Trace::builder().limits(limits).open(&bytes) else { continue };
        let (found, unreadable) = readable(&trace);
        assert!(trace.damage_count() > 0 || unreadable > 0, "{name}");
        assert!(found.len() < 3, "{name}");
    }
}

#[test]
fn the_writer_refuses_what_readers_refuse() {
    let (m, layout) = LITTLE;
    let record = |event| vector_builder::kernel::record(&event, layout.big, layout.long);
    let mut sums = FoldedSums::default();
    sums.add(40, true, true, 1_000_000);
    let bins = vec![(bin_of(40), 1)];
    let row = FoldedRow { alloc: Some(record(m.kmalloc(1, 2, 3))), free: record(m.kfree(1, 2)), sums, bins };
    let null = FoldedRow {
        alloc: None,
        sums: FoldedSums { count: 2, ..FoldedSums::default() },
        bins: Vec::new(),
        ..row.clone()
    };
    let add = |options: WriterOptions, change: &dyn Fn(&mut FoldedInterval)| {
        let mut writer = Writer::new(options).unwrap();
        for class in vector_builder::classes::ALL {
            writer.add_format(class.system, &class.format_text(8)).unwrap();
        }
        let mut interval = FoldedInterval::default();
        (interval.t_begin, interval.t_end, interval.rows) = (5, 6, vec![row.clone(), null.clone()]);
        change(&mut interval);
        writer.add_fold(&interval)
    };
    let folded = || WriterOptions::new(ByteOrder::Little, 8).folded(true);
    add(folded(), &|_| {}).unwrap();
    let changes: [&dyn Fn(&mut FoldedInterval); 12] = [
        &|interval| interval.t_end = 4,
        &|interval| interval.rows[0].bins[0].1 = 2,
        &|interval| interval.rows[0].bins[0].0 = 1_920,
        &|interval| interval.rows[0].bins.clear(),
        &|interval| interval.rows[0].sums.elsewhere = 0,
        &|interval| interval.rows[0].sums.elsewhere = 2,
        &|interval| interval.rows[0].sums.over_s = 1,
        &|interval| interval.rows[0].alloc = None,
        &|interval| interval.rows[1].alloc.clone_from(&row.alloc),
        &|interval| interval.rows[1].sums.length_sum = 1,
        &|interval| interval.rows[1].bins = vec![(0, 2)],
        &|interval| interval.rows = vec![row.clone(); kmt_format::write::FOLD_ROWS_MAX + 1],
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let error = add(folded(), change).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Usage(_)), "{number}: {error}");
    }
    let error = add(WriterOptions::new(ByteOrder::Little, 8), &|_| {}).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Usage(_)), "{error}");
}
