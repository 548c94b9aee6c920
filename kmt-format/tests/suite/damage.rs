//! Whatever happens to a file: no panic, no endless loop, no wrong data taken for right, and what is undamaged is read.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::support::model::{self, Op};
use crate::support::stamp::{stamp, vector};
use crate::support::stride;
use crate::support::texts::Texts;
use kmt_format::kernel::ByteOrder;
use kmt_format::read::Trace;
use kmt_format::{ErrorKind, Limits};

fn small_file(order: ByteOrder, long: usize) -> Vec<u8> {
    let mut ops = Vec::new();
    for i in 0..60u64 {
        let cpu = (i % 2) as u32;
        ops.push(Op::Event { cpu, class: (i % 6) as usize, step: 10, seed: i, repeat: i % 3 > 0 });
        if i % 20 == 19 {
            ops.push(Op::Lost { cpu, counted: 5, uncounted: i == 39 });
        }
        if i % 15 == 14 {
            ops.push(Op::Flush { cpu });
        }
    }
    model::write(&ops, order, long).0
}

/// Every event that can be read, by CPU and number: its text is its fields.
type Read = BTreeMap<(u32, u64), Rc<str>>;

/// Reads what can be read; the second value says whether anything was told to be wrong.
fn read_all(file: &[u8], texts: &mut Texts) -> Result<(Read, bool), ErrorKind> {
    let trace = Trace::open(file).map_err(|e| e.kind().clone())?;
    let mut out = Read::new();
    let mut told = trace.damage_count() > 0 || !trace.is_finished();
    for (cpu, stream) in trace.streams() {
        told |= stream.events_missing > 0;
        for (chunk, info) in &stream.chunks {
            let Ok(texts) = texts.of(&trace, file, chunk) else {
                told = true;
                continue;
            };
            out.extend((info.first_event..).zip(texts.iter()).map(|(n, text)| ((*cpu, n), text.clone())));
        }
    }
    let mut merge = trace.merge();
    let mut merged = 0;
    while let Some(run) = merge.next_run() {
        merged += run.range.len();
    }
    assert_eq!(merged, out.len(), "the merge gives what the streams hold");
    Ok((out, told))
}

/// Start and end of each event chunk, and how many events it holds.
fn event_chunks(file: &[u8]) -> Vec<(u64, u64, u64)> {
    let trace = Trace::open(file).unwrap();
    let chunks = trace.streams().values().flat_map(|s| s.chunks.clone());
    chunks.map(|(c, info)| (c.offset, c.offset + c.total_len, u64::from(info.event_count))).collect()
}

fn kinds() -> [(ByteOrder, usize); 2] {
    [(ByteOrder::Little, 8), (ByteOrder::Big, 4)]
}

#[test]
fn every_truncation_gives_what_is_whole() {
    for (order, long) in kinds() {
        let file = small_file(order, long);
        let mut texts = Texts::default();
        let (whole, told) = read_all(&file, &mut texts).unwrap();
        assert!(!told);
        let chunks = event_chunks(&file);
        for len in (0..file.len()).step_by(stride()) {
            match read_all(&file[..len], &mut texts) {
                Err(_) => assert!(len < 64, "a header is enough to open a file: {len}"),
                Ok((events, told)) => {
                    assert!(told, "a cut file must say so: {len}");
                    assert!(events.iter().all(|(k, v)| whole.get(k) == Some(v)));
                    let expected: u64 = chunks.iter().filter(|c| c.1 <= len as u64).map(|c| c.2).sum();
                    assert_eq!(events.len() as u64, expected, "cut at {len}");
                }
            }
        }
    }
}

#[test]
fn every_flipped_byte_is_noticed_and_costs_only_its_chunk() {
    for (order, long) in kinds() {
        let mut file = small_file(order, long);
        let mut texts = Texts::default();
        let (whole, _) = read_all(&file, &mut texts).unwrap();
        let chunks = event_chunks(&file);
        for at in (0..file.len()).step_by(stride()) {
            // One of three flips a byte.
            let flip = [0x01u8, 0x80, 0xff][at % 3];
            file[at] ^= flip;
            let (events, told) =
                read_all(&file, &mut texts).unwrap_or_else(|e| panic!("byte {at} ^ {flip:#x}: {e}"));
            assert!(told, "byte {at} ^ {flip:#x} went unnoticed");
            assert!(events.iter().all(|(k, v)| whole.get(k) == Some(v)), "byte {at}: wrong data");
            let hit = chunks.iter().filter(|c| (c.0..c.1).contains(&(at as u64))).map(|c| c.2).sum::<u64>();
            assert_eq!(events.len() as u64, whole.len() as u64 - hit, "byte {at} ^ {flip:#x}");
            file[at] ^= flip;
        }
    }
}

#[test]
fn removed_and_inserted_bytes_cost_only_what_they_touch() {
    let file = small_file(ByteOrder::Little, 8);
    let mut texts = Texts::default();
    let (whole, _) = read_all(&file, &mut texts).unwrap();
    let chunks = event_chunks(&file);
    let (start, end, events) = chunks[1];
    let without = [&file[..start as usize], &file[end as usize..]].concat();
    let (read, told) = read_all(&without, &mut texts).unwrap();
    assert!(told);
    assert_eq!(read.len() as u64, whole.len() as u64 - events);
    // Zeros between chunks, as a file system may leave after a crash.
    let with = [&file[..start as usize], &[0; 640], &file[start as usize..]].concat();
    let (read, told) = read_all(&with, &mut texts).unwrap();
    assert!(told);
    assert_eq!(read, whole);
    // The same chunk a second time counts once.
    let twice = [&file[..end as usize], &file[start as usize..]].concat();
    let (read, told) = read_all(&twice, &mut texts).unwrap();
    assert!(told);
    assert_eq!(read, whole);
}

#[test]
fn a_missing_chunk_is_counted_to_the_event() {
    let file = small_file(ByteOrder::Little, 8);
    let (start, end, events) = event_chunks(&file)[1];
    let without = [&file[..start as usize], &file[end as usize..]].concat();
    let trace = Trace::open(&without).unwrap();
    assert_eq!(trace.streams().values().map(|s| s.events_missing).sum::<u64>(), events);
    let mut merge = trace.merge();
    let mut missing = 0;
    while let Some(run) = merge.next_run() {
        missing += run.gap.map_or(0, |g| g.events_damaged);
    }
    assert_eq!(missing, events);
}

/// A file with one byte changed and the header's checksum made right again.
fn with_header_byte(at: usize, value: u8) -> Vec<u8> {
    let mut file = small_file(ByteOrder::Little, 8);
    for copy in [0, 128] {
        file[copy + at] = value;
        let crc = crate::support::naive::crc32(&file[copy..copy + 60]);
        file[copy + 60..copy + 64].copy_from_slice(&crc.to_le_bytes());
    }
    file
}

#[test]
fn versions_and_features_decide() {
    let open = |file: &[u8]| Trace::open(file).map(|_| ()).map_err(|e| e.kind().clone());
    assert_eq!(open(&with_header_byte(12, 2)), Err(ErrorKind::MajorVersion { found: 2, supported: 1 }));
    assert_eq!(open(&with_header_byte(14, 9)), Ok(()), "a later minor version is read");
    assert_eq!(open(&with_header_byte(20, 2)), Err(ErrorKind::IncompatibleFeatures { bits: 2 }));
    assert_eq!(open(&with_header_byte(24, 2)), Ok(()), "compatible features are ignored");
    assert_eq!(open(b""), Err(ErrorKind::NotKmt));
    assert_eq!(
        open(b"hello, this is some text and no trace at all, whatever its length may come to be"),
        Err(ErrorKind::NotKmt)
    );
    let mut text_mode = small_file(ByteOrder::Little, 8);
    text_mode.remove(4);
    assert_eq!(open(&text_mode), Err(ErrorKind::MagicDamaged));
}

/// Inserts a chunk of an unknown kind before the first event chunk.
fn with_unknown_chunk(flags: u8) -> Vec<u8> {
    let file = small_file(ByteOrder::Little, 8);
    let at = event_chunks(&file).iter().map(|c| c.0).min().unwrap() as usize;
    let mut chunk = file[at..at + 64].to_vec();
    chunk[8..12].copy_from_slice(b"NEWK");
    chunk[12] = flags;
    chunk[16..24].copy_from_slice(&64u64.to_le_bytes());
    chunk[24..40].fill(0);
    chunk[40..44].fill(0xff);
    chunk[48..60].fill(0);
    let crc = crate::support::naive::crc32(&chunk[..60]);
    chunk[60..64].copy_from_slice(&crc.to_le_bytes());
    [&file[..at], &chunk, &file[at..]].concat()
}

#[test]
fn unknown_kinds_are_skipped_or_refused_by_rule() {
    let ancillary = with_unknown_chunk(0);
    let trace = Trace::open(&ancillary).unwrap();
    assert_eq!(trace.unknown_kinds().get(b"NEWK"), Some(&1));
    assert_eq!(trace.event_count(), 60);
    let error = Trace::open(&with_unknown_chunk(1)).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::UnknownCriticalChunk { kind: *b"NEWK" });
    assert!(error.offset().is_some());
}

#[test]
fn limits_are_kept() {
    let file = small_file(ByteOrder::Little, 8);
    for limits in [
        Limits::default().chunk_len(128),
        Limits::default().event_body_len(64),
        Limits::default().records(1),
        Limits::default().descriptors(1),
        Limits::default().streams(1),
        Limits::default().classes(1),
        Limits::default().fields(3),
    ] {
        let trace = Trace::builder().limits(limits).open(&file).unwrap();
        let damaged = trace.damage_count() > 0
            || trace.streams().values().flat_map(|s| &s.chunks).any(|(c, _)| trace.read(c).is_err());
        assert!(damaged, "{limits:?}");
    }
    let error = Trace::builder().limits(Limits::default().chunks(3)).open(&file).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::LimitExceeded { found: 4, limit: 3, .. }));
}

/// Found by fuzzing: a head whose event number is near the end of what 64 bits hold.
#[test]
fn event_numbers_that_overflow_are_no_panic() {
    let mut file = small_file(ByteOrder::Little, 8);
    let (start, end, _) = event_chunks(&file)[1];
    let (start, end) = (start as usize, end as usize);
    let prefix_len = u32::from_le_bytes(file[start + 52..start + 56].try_into().unwrap()) as usize;
    file[start + 64 + 32..start + 64 + 40].fill(0xff);
    let body = crate::support::naive::crc32(&file[start + 64..end]).to_le_bytes();
    file[start + 48..start + 52].copy_from_slice(&body);
    let prefix = crate::support::naive::crc32(&file[start + 64..start + 64 + prefix_len]).to_le_bytes();
    file[start + 56..start + 60].copy_from_slice(&prefix);
    let header = crate::support::naive::crc32(&file[start..start + 60]).to_le_bytes();
    file[start + 60..start + 64].copy_from_slice(&header);
    let trace = Trace::open(&file).unwrap();
    assert!(trace.streams().values().any(|s| s.events_missing > 1 << 60));
    let mut merge = trace.merge();
    let mut events = 0;
    while let Some(run) = merge.next_run() {
        events += run.range.len() as u64;
    }
    assert_eq!(events, trace.event_count());
}

/// The library's writer keeps arrays in descriptors and payloads; another writer may keep them in contexts.
#[test]
fn an_array_that_a_context_places_must_lie_in_the_heap() {
    let format = "name: ev\nID: 11\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char tag[4];\toffset:8;\tsize:4;\tsigned:0;\n\nprint fmt: \"\"\n";
    let made = |pids: [u8; 2]| {
        let mut writer = model::writer(ByteOrder::Little, 8);
        writer.add_format("own", format).unwrap();
        for pid in pids {
            writer.add_event(0, 1, &[11, 0, 0, 0, pid, 0, 0, 0, b'a', b'b', 0, 0]).unwrap();
        }
        let mut file = writer.finish().unwrap();
        let schemas: Vec<usize> = {
            let trace = Trace::open(&file).unwrap();
            let all = trace.chunks().filter(|c| c.kind == kmt_format::raw::ChunkKind::SCHEMA);
            all.map(|c| c.offset as usize).collect()
        };
        for at in schemas {
            // Three shapes, three fields each: the array is the third, and its place is 1, where the task is.
            let slots = slots_at(&file[at + 64..]);
            for shape in 0..3 {
                let slot = at + 64 + slots + (shape * 3 + 2) * 8;
                file[slot] = 1;
                file[slot + 4..slot + 8].fill(0);
            }
            stamp(&mut file, at);
        }
        file
    };
    // Task 0: the array at the start of the heap. Task 200: none is there.
    let sound = made([0, 0]);
    let trace = Trace::open(&sound).unwrap();
    let tags: Vec<String> =
        trace.events().unwrap().map(|e| e.field("tag").unwrap().as_str().unwrap().to_owned()).collect();
    assert_eq!(tags, ["ab", "ab"]);
    let file = made([0, 200]);
    let trace = Trace::open(&file).unwrap();
    assert_eq!(trace.damage_count(), 0, "found when the chunk is read");
    let error = trace.events().map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Malformed("an array lies outside the heap"));
}

/// Start of the slots in a schema chunk's body.
fn slots_at(body: &[u8]) -> usize {
    let number = |offset: usize, len: usize| ByteOrder::Little.uint(&body[offset..offset + len]) as usize;
    // Classes, fields and shapes stand before them.
    number(0, 4) + (0..3).map(|i| number(12 + 4 * i, 4) * number(32 + 2 * i, 2)).sum::<usize>()
}

#[test]
fn a_schema_that_contradicts_another_one_contributes_nothing() {
    let format = |name: &str, id: u16| {
        model::CLASSES[usize::from(id)].format_text(8).replace("name: ", &format!("name: {name}"))
    };
    let made = |names: [&str; 2]| {
        let mut writer = model::writer(ByteOrder::Little, 8);
        for (id, name) in names.iter().enumerate() {
            let id = writer.add_format("kmem", &format(name, id as u16)).unwrap();
            writer.declare(id).unwrap();
            let mut record = [0; 256];
            record[..2].copy_from_slice(&id.to_le_bytes());
            writer.add_event(0, 1, &record).unwrap();
            writer.flush(0).unwrap();
        }
        writer.take()
    };
    // Without its first class; the file behind it has one, and another second class.
    let mut file = made(["a", "b"]);
    let schemas = |file: &[u8]| -> Vec<(usize, usize)> {
        let trace = Trace::open(file).unwrap();
        let found = trace.chunks().filter(|c| c.kind == kmt_format::raw::ChunkKind::SCHEMA);
        found.map(|c| (c.offset as usize, c.total_len as usize)).collect()
    };
    let first = schemas(&file)[0].0;
    file[first + 100] ^= 1;
    assert_eq!(Trace::open(&file).unwrap().schema().classes().count(), 1);
    let mut writer = model::writer(ByteOrder::Little, 8);
    for (id, name) in ["other", "c"].iter().enumerate() {
        let id = writer.add_format("kmem", &format(name, id as u16)).unwrap();
        writer.declare(id).unwrap();
    }
    let other = writer.finish().unwrap();
    let (at, len) = schemas(&other)[0];
    let at_end = file.len() as u64;
    file.extend_from_slice(&other[at..at + len]);
    let trace = Trace::open(&file).unwrap();
    let damages: Vec<(u64, &str)> = trace.damages().iter().map(|d| (d.offset, d.error.code())).collect();
    assert_eq!(damages, [(first as u64, "checksum"), (at_end, "malformed")]);
    let names: Vec<&str> = trace.schema().classes().map(|(_, c)| c.name.as_str()).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(names[0].starts_with('b'));
    assert_eq!(trace.schema().class_count(), 2);
}

/// A vector of the specification, after a change to the body of the chunk of a kind that stands last; its checksums
/// are right.
fn changed(name: &str, kind: &[u8; 4], change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut file = vector(name);
    let trace = Trace::open(&file).unwrap();
    let chunk = trace.chunks().filter(|c| c.kind.0 == *kind).last().unwrap();
    let (start, end) = (chunk.offset as usize, (chunk.offset + chunk.total_len) as usize);
    change(&mut file[start + 64..end]);
    stamp(&mut file, start);
    file
}

#[test]
fn an_earlier_trailer_does_not_stand_in_for_a_damaged_one() {
    let file = changed("appended-le64.kmt", b"TRLR", |body| body[0] = 39);
    let trace = Trace::open(&file).unwrap();
    assert_eq!(trace.chunks().filter(|c| c.kind.0 == *b"TRLR").count(), 2);
    assert_eq!(trace.damages()[0].error.code(), "malformed");
    assert!(!trace.is_finished() && trace.metadata().trailer.is_none());
    // The same for one that is followed by other chunks only.
    let whole = changed("appended-le64.kmt", b"TRLR", |_| {});
    let end = Trace::open(&whole).unwrap().chunks().last().unwrap().offset as usize;
    let trace = Trace::open(&whole[..end]).unwrap();
    assert!(!trace.is_finished() && trace.metadata().trailer.is_none() && trace.damages().is_empty());
}

#[test]
fn nothing_of_a_damaged_chunk_is_used() {
    let sound = Trace::open(&changed("added-le64.kmt", b"META", |_| {})).unwrap().metadata().pairs.len();
    assert!(sound > 2);
    // One pair too many, a text of the last row outside the heap.
    let file = changed("added-le64.kmt", b"META", |body| body[8] += 1);
    assert_eq!(Trace::open(&file).unwrap().metadata().pairs, []);
    let file = changed("added-le64.kmt", b"LINE", |body| body[16 + 2 * 32 + 10] = 1);
    let trace = Trace::open(&file).unwrap();
    assert_eq!((trace.damage_count(), trace.metadata().lines.len()), (1, 0));
}
