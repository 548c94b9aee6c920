//! Events and losses as iterators: the same as the runs beneath them, nothing left out.

use std::collections::BTreeSet;

use crate::support::captures;
use crate::support::model::{self, Op};
use kmt_format::kernel::ByteOrder;
use kmt_format::read::{Event, Incremental, Item, Trace};
use kmt_format::schema::{Meaning, Role};
use kmt_format::{ErrorKind, Limits};

/// Three CPUs whose events interleave, with losses, and chunks that are closed now and then.
fn file() -> Vec<u8> {
    let mut ops = Vec::new();
    for seed in 0..3_000u64 {
        let cpu = (seed % 7 % 3) as u32;
        let class = (seed % 6) as usize;
        ops.push(Op::Event { cpu, class, step: 1 + (seed % 5) as i64, seed, repeat: seed % 3 == 0 });
        match seed % 500 {
            100 => ops.push(Op::Lost { cpu, counted: seed, uncounted: false }),
            300 => ops.push(Op::Flush { cpu }),
            _ => {}
        }
    }
    model::write(&ops, ByteOrder::Little, 8).0
}

/// CPU, time, name and record of an event.
type EventFields = (u32, u64, String, Vec<u8>);
/// Number of the event before which events are missing, CPU, and how many are.
type Lost = (usize, u32, u64);

/// The fields of an event that do not depend on the iterator.
fn fields_of(event: &Event<'_>) -> EventFields {
    let mut record = Vec::new();
    event.to_record(&mut record);
    (event.cpu(), event.time(), event.class().name.clone(), record)
}

/// By runs and indices: events, and the losses with the number of the event that each stands before.
fn by_runs(trace: &Trace<'_>) -> (Vec<EventFields>, Vec<Lost>) {
    let (mut events, mut losses) = (Vec::new(), Vec::new());
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        losses.extend(run.gap.map(|gap| (events.len(), run.cpu, gap.counted())));
        events
            .extend(run.range.clone().map(|i| fields_of(&Event::new(trace.schema(), run.chunk, i).unwrap())));
    }
    (events, losses)
}

fn by_items(trace: &Trace<'_>) -> (Vec<EventFields>, Vec<Lost>) {
    let (mut events, mut losses) = (Vec::new(), Vec::new());
    for item in trace.items() {
        match item {
            Item::Event(event) => events.push(fields_of(&event)),
            Item::Loss(gap) => losses.push((events.len(), gap.cpu, gap.counted())),
            other => panic!("{other:?}"),
        }
    }
    (events, losses)
}

#[test]
fn the_iterators_give_what_the_runs_hold() {
    let file = file();
    let trace = Trace::open(&file).unwrap();
    let (events, losses) = by_runs(&trace);
    assert_eq!((events.len() as u64, losses.len()), (trace.event_count(), 6));
    assert_eq!(by_items(&trace), (events.clone(), losses));
    assert_eq!(trace.events().unwrap().map(|e| fields_of(&e)).collect::<Vec<_>>(), events);
    let mut merge = trace.merge();
    let mut of_runs = Vec::new();
    while let Some(run) = merge.next_run() {
        assert_eq!(run.events().len(), run.range.len());
        of_runs.extend(run.events().map(|e| fields_of(&e)));
    }
    assert_eq!(of_runs, events);
    let (first, last) = (events[500].1, events[1_000].1);
    let within = |item| matches!(item, Item::Event(event) if (first..=last).contains(&event.time()));
    let expected = events.iter().filter(|e| (first..=last).contains(&e.1)).count();
    assert_eq!(trace.items_between(first, last).filter(|i| matches!(i, Item::Event(_))).count(), expected);
    assert_eq!(trace.items_between(first, last).filter(|i| within(i.clone())).count(), expected);
}

#[test]
fn events_outlive_the_iterator_that_gave_them() {
    let file = file();
    let trace = Trace::open(&file).unwrap();
    let kept: Vec<Event<'_>> = trace.events().unwrap().collect();
    let (events, _) = by_runs(&trace);
    assert_eq!(kept.iter().map(fields_of).collect::<Vec<_>>(), events);
}

#[test]
fn a_damaged_chunk_is_an_error_for_events_and_a_loss_for_items() {
    let mut file = file();
    let trace = Trace::open(&file).unwrap();
    let (all, losses) = by_runs(&trace);
    let (chunk, info) = trace.streams()[&1].chunks[1];
    let total = trace.event_count();
    // The last byte of a body lies behind what opening looks at.
    file[(chunk.body_offset() + chunk.body_len - 1) as usize] ^= 1;
    let trace = Trace::open(&file).unwrap();
    assert_eq!(trace.damage_count(), 0, "found when it is read");
    let error = trace.events().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Checksum { .. }), "{error}");
    assert_eq!(error.offset(), Some(chunk.body_offset()));
    assert_eq!(trace.check().unwrap_err(), error);
    let (events, with_damage) = by_items(&trace);
    assert_eq!(events.len() as u64, total - u64::from(info.event_count));
    assert!(events.iter().all(|event| all.contains(event)));
    let sum = |losses: &[(usize, u32, u64)]| losses.iter().map(|l| l.2).sum::<u64>();
    assert_eq!(sum(&with_damage), sum(&losses) + u64::from(info.event_count), "also what was lost before it");
}

#[test]
fn damage_that_opening_finds_is_an_error_for_events() {
    let mut file = file();
    let chunk = Trace::open(&file).unwrap().streams()[&0].chunks[0].0;
    file[chunk.offset as usize + 9] ^= 1;
    for damages in [1_000, 0] {
        let limits = Limits::default().damages(damages);
        let trace = Trace::builder().limits(limits).open(&file).unwrap();
        assert!(trace.damage_count() > 0 && trace.events().is_err());
        assert!(trace.items().count() > 0);
    }
}

#[test]
fn a_file_that_was_checked_is_read_again_the_same() {
    let file = file();
    let trace = Trace::open(&file).unwrap();
    let before = by_items(&trace);
    trace.check().unwrap();
    assert_eq!(by_items(&trace), before);
    let indexed = Trace::builder().by_index(true).open(&file).unwrap();
    assert_eq!(by_items(&indexed), before);
    let unverified = Trace::builder().body_checksums(false).open(&file).unwrap();
    assert_eq!(by_items(&unverified), before);
}

#[test]
fn an_incremental_reader_gives_events_with_their_fields() {
    let file = file();
    let mut reader = Incremental::new();
    let mut events = Vec::new();
    for piece in file.chunks(1_000) {
        reader.push(piece);
        while let Some(arrived) = reader.next().unwrap() {
            if let kmt_format::read::Arrived::Events(_, chunk) = arrived {
                events.extend(reader.events(&chunk).map(|e| fields_of(&e)));
            }
        }
    }
    let trace = Trace::open(&file).unwrap();
    let mut expected: Vec<_> = trace.events().unwrap().map(|e| fields_of(&e)).collect();
    events.sort();
    expected.sort();
    assert_eq!(events, expected);
}

#[test]
fn fields_are_asked_for_by_name_and_role() {
    for name in captures::NAMES {
        let capture = captures::convert(name);
        let trace = Trace::open(&capture.file).unwrap();
        let mut seen = 0;
        for event in trace.events().unwrap().filter(|e| e.meaning() == Meaning::KMALLOC) {
            seen += 1;
            let index = event.class().field_named("bytes_alloc").unwrap();
            let by_index = event.uint(index).unwrap();
            assert_eq!(event.field("bytes_alloc").unwrap().as_u64(), Ok(by_index));
            assert_eq!(event.field(Role::BYTES_ALLOC).unwrap().as_i64(), Ok(by_index as i64));
            assert_eq!(event.field(index).unwrap().field().name, "bytes_alloc");
            let error = event.field("bytes").unwrap_err();
            assert_eq!(error.to_string(), format!("kmem:{} has no field bytes", event.class().name));
            assert!(event.get(Role::STACK).is_none());
            let not_text = event.field(Role::PTR).unwrap().as_str().unwrap_err();
            assert_eq!(
                (not_text.code(), not_text.to_string().as_str()),
                ("field-type", "the field ptr is not an array")
            );
            // Addresses of 64-bit kernels are above the middle, and no signed numbers.
            let ptr = event.field("ptr").unwrap();
            assert_eq!(ptr.as_i64().is_err(), ptr.as_u64().unwrap() > i64::MAX as u64);
            assert_eq!(ptr.to_string(), format!("{:#x}", ptr.as_u64().unwrap()));
            let site = event.symbol(Role::CALL_SITE).map(|symbol| symbol.name.to_vec());
            let address = event.uint_with(Role::CALL_SITE).unwrap();
            let expected = trace.symbols().and_then(|s| s.resolve(address)).map(|s| s.name.to_vec());
            assert_eq!(site, expected);
        }
        assert!(seen > 20, "{name}: {seen}");
        let negative = trace.events().unwrap().find_map(|event| {
            let node = event.get("node").filter(|node| node.as_u64().is_err())?;
            Some((node.as_i64().unwrap(), node.to_string()))
        });
        assert!(negative.is_none_or(|n| n == (-1, "-1".to_owned())), "{name}");
    }
}

/// Chunks with other events only: first class 0, then class 1, each in chunks of its own.
fn one_class_a_chunk() -> Vec<u8> {
    let mut ops = Vec::new();
    for seed in 0..1_200u64 {
        let (cpu, class) = ((seed % 2) as u32, (seed / 100 % 2) as usize);
        ops.push(Op::Event { cpu, class, step: 1, seed, repeat: false });
        if seed % 100 == 99 {
            ops.extend([Op::Flush { cpu: 0 }, Op::Flush { cpu: 1 }]);
        }
        if seed == 750 {
            ops.push(Op::Lost { cpu, counted: 5, uncounted: false });
        }
    }
    model::write(&ops, ByteOrder::Little, 8).0
}

#[test]
fn a_question_about_one_class_reads_its_chunks_only() {
    let mut file = one_class_a_chunk();
    let events = |file: &[u8], index: usize| {
        let trace = Trace::builder().by_index(index == 1).open(file).unwrap();
        let wanted = trace.schema().class(0).unwrap().name.clone();
        let bits = trace.schema().class_bits(|class| class.name == wanted);
        let (mut merge, mut found, mut chunks, mut gaps) =
            (trace.merge_of(bits, None), 0, BTreeSet::new(), 0);
        while let Some(run) = merge.next_run() {
            chunks.insert(run.chunk_number);
            gaps += run.gap.map_or(0, |gap| gap.counted());
            found += run.events().filter(|e| e.class().name == wanted).count();
        }
        assert_eq!((found, gaps, merge.damages().len()), (600, 5, 0), "index {index}");
        chunks.len()
    };
    // Six of a CPU, and those around the loss.
    let all: usize = Trace::open(&file).unwrap().streams().values().map(|s| s.chunks.len()).sum();
    let read = events(&file, 0);
    assert!(all >= 24 && read < all * 2 / 3, "{read} of {all}");
    assert_eq!(events(&file, 1), read);
    // What is passed over is not even looked at: a flipped bit in it goes unnoticed.
    let trace = Trace::open(&file).unwrap();
    let (other, _) = trace.streams()[&0].chunks.iter().find(|(_, info)| info.classes == 2).unwrap();
    let at = (other.offset + other.total_len - 1) as usize;
    drop(trace);
    file[at] ^= 1;
    assert_eq!(events(&file, 0), read);
}
