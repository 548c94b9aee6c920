//! Calls that are allowed and refused, whatever the file.

use std::fs;

use crate::support::captures;
use crate::support::model::{self, Op};
use kmt_format::kernel::{ByteOrder, HeaderPage, SubBuffer};
use kmt_format::raw::{ChunkKind, chunk_flags};
use kmt_format::read::{Event, Incremental, Item, Trace};
use kmt_format::schema::{Meaning, Role};
use kmt_format::write::{Keep, Loss, SubBufferSummary, Writer, WriterLimits, WriterOptions};
use kmt_format::{Compression, ErrorKind, Limits};

fn options(long_size: usize) -> WriterOptions {
    WriterOptions::new(ByteOrder::Little, long_size).trace_uuid([1; 16]).compression(Compression::Lz4)
}

fn small_file() -> Vec<u8> {
    let event =
        |i: u64| Op::Event { cpu: (i % 2) as u32, class: (i % 6) as usize, step: 10, seed: i, repeat: true };
    model::write(&(0..40).map(event).collect::<Vec<_>>(), ByteOrder::Little, 8).0
}

#[test]
fn writers_refuse_what_cannot_be_expressed() {
    let kind = |error: kmt_format::Error| error.kind().clone();
    assert!(matches!(kind(Writer::new(options(2)).unwrap_err()), ErrorKind::Usage(_)));
    let mut writer = Writer::new(options(8)).unwrap();
    assert_eq!(kind(writer.add_event(0, 1, &[9, 0, 0, 0]).unwrap_err()), ErrorKind::UnknownEventId { id: 9 });
    assert!(matches!(kind(writer.add_format("x", "no format").unwrap_err()), ErrorKind::KernelText { .. }));
    let id = writer.add_format("kmem", &model::CLASSES[0].format_text(8)).unwrap();
    assert!(writer.knows_id(id) && !writer.knows_id(9));
    assert!(matches!(kind(writer.add_event(u32::MAX, 1, &[11, 0, 0, 0]).unwrap_err()), ErrorKind::Usage(_)));
    assert!(matches!(kind(writer.add_event(0, 1, &[11, 0, 0, 0]).unwrap_err()), ErrorKind::SubBuffer(_)));
    assert!(matches!(kind(writer.declare(12).unwrap_err()), ErrorKind::UnknownEventId { id: 12 }));
    // None of it left anything behind.
    writer.declare(id).unwrap();
    let file = writer.finish().unwrap();
    let trace = Trace::open(&file).unwrap();
    assert_eq!((trace.event_count(), trace.damages()), (0, &[][..]));
    assert_eq!(trace.schema().class(0).unwrap().meaning, Meaning::KMALLOC);
}

#[test]
fn pending_bytes_are_handed_out_once() {
    let mut writer = Writer::new(options(4)).unwrap();
    let first = writer.pending().to_vec();
    assert_eq!(first.len(), writer.pending_len());
    writer.clear_pending();
    assert_eq!(writer.pending_len(), 0);
    writer.add_metadata(&[("key", b"value")]).unwrap();
    let mut file = first;
    writer.take_into(&mut file);
    file.extend(writer.take());
    file.extend(writer.finish().unwrap());
    let trace = Trace::open(&file).unwrap();
    assert_eq!((trace.metadata().value("key"), trace.damages()), (Some(&b"value"[..]), &[][..]));
    assert_eq!(trace.chunk_count(), 4);
    assert_eq!(trace.len_bytes(), file.len() as u64);
}

#[test]
fn events_of_open_chunks_are_not_in_the_file() {
    let mut writer = Writer::new(options(4)).unwrap();
    let id = writer.add_format("kmem", &model::CLASSES[0].format_text(4)).unwrap();
    let mut record = [0; 128];
    record[..2].copy_from_slice(&id.to_le_bytes());
    for time in 1..=3 {
        writer.add_event(0, time, &record).unwrap();
    }
    assert_eq!(writer.events_closed(), 0);
    writer.flush(0).unwrap();
    writer.add_event(0, 9, &record).unwrap();
    assert_eq!(writer.events_closed(), 3);
    let cut = writer.take();
    assert_eq!(Trace::open(&cut).unwrap().event_count(), 3);
    writer.flush(0).unwrap();
    assert_eq!(writer.events_closed(), 4, "of those that were taken, too");
}

#[test]
fn only_sound_files_are_appended_to() {
    let file = small_file();
    let append = |file: &[u8]| Writer::append_to(file, Limits::default(), Compression::None);
    let mut writer = append(&file).unwrap();
    assert_eq!(writer.events_closed(), 40);
    writer.add_metadata(&[("later", b"yes")]).unwrap();
    let whole = [file.clone(), writer.finish().unwrap()].concat();
    let trace = Trace::open(&whole).unwrap();
    assert!(trace.is_finished() && trace.damages().is_empty());
    assert_eq!((trace.event_count(), trace.metadata().text("later")), (40, Some("yes")));
    assert!(Trace::open_indexed(&whole, Limits::default()).unwrap().is_some());
    // Cut short while it was appended to, the file still holds what it held.
    let cut = Trace::open(&whole[..file.len() + 70]).unwrap();
    assert_eq!((cut.event_count(), cut.is_finished()), (40, true));
    for at in [41, 200, file.len() / 2, file.len() - 100] {
        let mut damaged = file.clone();
        damaged[at] ^= 1;
        if let Err(error) = append(&damaged) {
            assert!(matches!(error.kind(), ErrorKind::Usage(_)), "{error}");
        } else {
            // The body of an event chunk is not looked at here.
            assert!(Trace::open(&damaged).unwrap().damages().is_empty());
        }
    }
    assert!(append(&file[..file.len() - 10]).is_err());
    assert!(matches!(append(b"").unwrap_err().kind(), ErrorKind::NotKmt));
}

#[test]
fn an_index_that_lies_gives_an_error() {
    let file = small_file();
    let trace = Trace::open(&file).unwrap();
    let index = trace.chunks().find(|c| c.kind == ChunkKind::INDEX).unwrap();
    let rows = index.offset as usize + 64 + 16;
    let events = trace.chunks().position(|c| c.kind == ChunkKind::EVENTS).unwrap();
    for (at, value) in [(8, 1u8), (16, 9), (24, 1), (40, 1), (44, 2), (48, 1)] {
        let mut lying = file.clone();
        lying[rows + events * 120 + at] ^= value;
        stamp(&mut lying, index.offset as usize, index.total_len as usize);
        let trace = Trace::open_indexed(&lying, Limits::default()).unwrap().unwrap();
        let chunk = trace.streams().values().flat_map(|s| &s.chunks).find(|(c, _)| trace.read(c).is_err());
        let error = trace.read(&chunk.unwrap().0).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Index(_)), "{at}: {error}");
        // Also where a time window would pass the chunk over.
        let mut merge = trace.merge_between(0, 1);
        while merge.next_run().is_some() {}
        assert!(merge.damages().iter().any(|d| matches!(d.error.kind(), ErrorKind::Index(_))), "{at}");
    }
    let mut gap = file.clone();
    gap[rows + 120] ^= 64;
    stamp(&mut gap, index.offset as usize, index.total_len as usize);
    assert!(
        Trace::open_indexed(&gap, Limits::default()).unwrap().is_none(),
        "rows that leave gaps are no index"
    );
    assert!(Trace::open_indexed(&file[..file.len() - 64], Limits::default()).unwrap().is_none());
}

fn stamp(file: &mut [u8], at: usize, len: usize) {
    let crc = crate::support::naive::crc32(&file[at + 64..at + len]).to_le_bytes();
    file[at + 48..at + 52].copy_from_slice(&crc);
    let crc = crate::support::naive::crc32(&file[at..at + 60]).to_le_bytes();
    file[at + 60..at + 64].copy_from_slice(&crc);
}

#[test]
fn limits_of_the_incremental_reader_and_of_decoding() {
    let mut writer = Writer::new(options(8)).unwrap();
    writer.add_file("zeros", &vec![0; 100_000]).unwrap();
    let file = writer.finish().unwrap();
    let limits = Limits::default().decoded_len(50_000);
    let trace = Trace::builder().limits(limits).open(&file).unwrap();
    assert!(matches!(trace.damages()[0].error.kind(), ErrorKind::LimitExceeded { limit: 50_000, .. }));
    assert!(Trace::open(&file).unwrap().damages().is_empty());
    // The first schema chunk is damaged: events wait for the second, as long as there is room.
    let mut file = small_file();
    let trace = Trace::open(&file).unwrap();
    let schema = trace.chunks().find(|c| c.kind == ChunkKind::SCHEMA).unwrap().offset as usize;
    file[schema + 100] ^= 1;
    for (held_back, expected) in [(1 << 20, 40), (0, 0)] {
        let mut reader = Incremental::with_limits(Limits::default().held_back(held_back));
        reader.push(&file);
        reader.end();
        let mut events = 0;
        while let Some(arrived) = reader.next().unwrap() {
            if let kmt_format::read::Arrived::Events(_, chunk) = arrived {
                events += chunk.records().len();
            }
        }
        assert_eq!(events, expected);
    }
}

#[test]
fn sub_buffers_with_odd_times_or_without_events() {
    let mut writer = Writer::new(options(8)).unwrap();
    writer.add_format("odd", &model::CLASSES[4].format_text(8)).unwrap();
    let page =
        HeaderPage { timestamp_offset: 0, commit_offset: 8, commit_size: 8, data_offset: 16, data_size: 240 };
    let sub_buffer = |time: u64, deltas: &[u64]| {
        let mut data = Vec::new();
        for delta in deltas {
            // An absolute stamp, then an event of 8 bytes.
            data.extend((((delta & 0x7ff_ffff) << 5 | 31) as u32).to_le_bytes());
            data.extend(((delta >> 27) as u32).to_le_bytes());
            data.extend(2u32.to_le_bytes());
            data.extend([45, 1, 0, 0, 1, 0, 0, 0]);
        }
        let mut out = time.to_le_bytes().to_vec();
        out.extend((data.len() as u64).to_le_bytes());
        out.extend(data);
        out.resize(256, 0);
        out
    };
    assert_eq!(
        writer.add_sub_buffer(0, &sub_buffer(5, &[]), &page, Keep::Verbatim, |_, _| true).unwrap().events,
        0
    );
    let falling = writer
        .add_sub_buffer(0, &sub_buffer(5, &[100, 90, 200]), &page, Keep::Verbatim, |_, _| true)
        .unwrap();
    assert_eq!((falling.events, falling.times), (3, Some((100, 200))));
    assert_eq!(
        writer.add_sub_buffer(0, &sub_buffer(5, &[300]), &page, Keep::Verbatim, |_, _| true).unwrap().loss,
        Loss::default()
    );
    let short = writer.add_sub_buffer(0, &[0; 8], &page, Keep::Verbatim, |_, _| true).unwrap();
    assert!(short.damage.is_some() && short.loss == Loss::damaged_input());
    // A layout that a head cannot tell is decoded at once.
    let far = HeaderPage { data_offset: 70_000, data_size: 20, ..page };
    let mut wide = sub_buffer(400, &[]);
    wide.resize(70_000, 0);
    wide.extend([31u32 | 500 << 5, 0, 2].iter().flat_map(|w| w.to_le_bytes()));
    wide.extend([45, 1, 0, 0, 1, 0, 0, 0]);
    wide[8] = 20;
    assert_eq!(writer.add_sub_buffer(0, &wide, &far, Keep::Verbatim, |_, _| true).unwrap().events, 1);
    let file = writer.finish().unwrap();
    let trace = Trace::open(&file).unwrap();
    let kinds: Vec<String> =
        trace.chunks().map(|c| c.kind.to_string()).filter(|k| k == "EVNT" || k == "RAWP").collect();
    assert_eq!(kinds, ["EVNT", "EVNT", "RAWP", "EVNT"], "times that fall are decoded at once");
    let chunks = &trace.streams()[&0].chunks;
    assert_eq!(chunks[1].0.flags & chunk_flags::TIME_REGRESSION, chunk_flags::TIME_REGRESSION);
    let times: Vec<u64> = chunks
        .iter()
        .flat_map(|(c, _)| {
            let read = trace.read(c).unwrap();
            (0..read.records().len())
                .map(|i| Event::new(trace.schema(), &read, i).unwrap().time())
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(times, [100, 90, 200, 300, 500]);
}

#[test]
fn meanings_and_roles_by_name() {
    for (name, meaning) in [
        ("kmalloc_node", Meaning::KMALLOC),
        ("kfree", Meaning::KFREE),
        ("kmem_cache_alloc", Meaning::CACHE_ALLOC),
        ("mm_page_free", Meaning::PAGE_FREE),
        ("mm_page_free_batched", Meaning::PAGE_FREE_BATCHED),
        ("rss_stat", Meaning::RSS_STAT),
    ] {
        assert_eq!(Meaning::of("kmem", name), meaning);
        assert_eq!(Meaning::of("other", name), Meaning::OTHER);
    }
    assert!(Meaning::CACHE_ALLOC.is_slab_alloc() && Meaning::KFREE.is_slab_free());
    assert_eq!(Role::of("kmem", "rss_stat", "size"), Role::RSS_SIZE);
    assert_eq!(Role::of("kmem", "kmalloc", "accounted"), Role::ACCOUNTED);
    assert_eq!(Role::of("net", "x", "ptr"), Role::NONE);
    assert_eq!(format!("{:?} {}", ChunkKind(*b"EVNT"), ChunkKind([0, 1, b'a', b'b'])), "EVNT \\x00\\x01ab");
}

#[test]
fn small_writers_close_small_chunks_and_leave_out_a_long_index() {
    let limits = WriterLimits::new().chunk_len(160).index_rows(8);
    let write = |events: u64| {
        let mut writer = Writer::with_limits(options(8), limits).unwrap();
        let class = &model::CLASSES[0];
        let id = writer.add_format("kmem", &class.format_text(8)).unwrap();
        let mut record = vec![0; 64];
        record[..2].copy_from_slice(&id.to_le_bytes());
        (0..events).for_each(|time| writer.add_event(0, time, &record).unwrap());
        writer.finish().unwrap()
    };
    for (events, chunks, indexed) in [(30, 3, true), (100, 10, false)] {
        let file = write(events);
        let trace = Trace::open(&file).unwrap();
        assert_eq!((trace.event_count(), trace.damages()), (events, &[][..]));
        assert!(trace.is_finished());
        assert_eq!(trace.streams()[&0].chunks.len(), chunks);
        assert_eq!(trace.metadata().trailer.unwrap().index_offset.is_some(), indexed);
    }
}

#[test]
fn symbols_of_all_parts_are_one_table() {
    let text = b"c0100000 T _stext\nc0100100 t first\nc0100200 t second\nc0100300 T _etext\n";
    let all = kmt_format::kernel::parse_kallsyms(text, &[], 4096);
    let mut writer = Writer::new(options(4)).unwrap();
    for part in [&all.symbols[..2], &all.symbols[2..]] {
        let symbols = kmt_format::kernel::KernelSymbols { symbols: part.to_vec(), ..all.clone() };
        writer.add_symbols(&symbols, &[]).unwrap();
    }
    let module =
        kmt_format::kernel::parse_kallsyms(b"bf000000 t probe\t[m]\nbf000040 t last\t[m]\n", &[], 4096);
    writer.add_symbols(&module, &[]).unwrap();
    let file = writer.finish().unwrap();
    let trace = Trace::open(&file).unwrap();
    let symbols = trace.symbols().unwrap();
    let name = |address| symbols.resolve(address).map(|r| String::from_utf8(r.name.to_vec()).unwrap());
    assert_eq!(symbols.len(), 6);
    assert_eq!(symbols.core_range(), (Some(0xc010_0000), Some(0xc010_0300)));
    assert_eq!(name(0xc010_0110).as_deref(), Some("first"));
    assert_eq!(name(0xc010_0200).as_deref(), Some("second"));
    assert_eq!(name(0xc010_0310), None, "behind the kernel's end");
    assert_eq!(name(0xbf00_0010).as_deref(), Some("probe"));
    assert_eq!(symbols.resolve(0xbf00_0010).unwrap().module, Some(&b"m"[..]));
    assert_eq!(name(0xbeff_ffff), None);
}

/// Writer that knows the formats of a capture.
fn writer_for(name: &str, order: ByteOrder, long_size: usize) -> Writer {
    let mut writer = Writer::new(WriterOptions::new(order, long_size)).unwrap();
    for system in fs::read_dir(captures::dir(name).join("tracefs/events")).unwrap() {
        let system = system.unwrap().path();
        for event in fs::read_dir(&system).into_iter().flatten() {
            let text = fs::read_to_string(event.unwrap().path().join("format")).unwrap();
            writer.add_format(system.file_name().unwrap().to_str().unwrap(), &text).unwrap();
        }
    }
    writer
}

/// Times of the events that `see` is called for, and what was found.
fn seen(bytes: &[u8], page: &HeaderPage, keep: Keep) -> (Vec<u64>, SubBufferSummary) {
    let mut writer = writer_for("x86_64-6.1", ByteOrder::Little, 8);
    let mut times = Vec::new();
    let found = writer.add_sub_buffer(0, bytes, page, keep, |time, _| {
        times.push(time);
        true
    });
    (times, found.unwrap())
}

#[test]
fn each_event_is_seen_once_also_before_damage() {
    let page = captures::convert("x86_64-6.1").header_page;
    let raw = fs::read(captures::dir("x86_64-6.1").join("tracefs/per_cpu/cpu0/trace_pipe_raw")).unwrap();
    let sound = &raw[..page.sub_buffer_len()];
    let (times, found) = seen(sound, &page, Keep::Decoded);
    assert!(times.len() > 20 && found.events == times.len() as u64 && found.damage.is_none());
    let (verbatim, kept) = seen(sound, &page, Keep::Verbatim);
    assert_eq!((&verbatim, kept.events, kept.discarded), (&times, found.events, found.discarded));
    // The middle of the data is not a sequence of events.
    let mut damaged = sound.to_vec();
    damaged[2000..2400].fill(0xff);
    let (before, found) = seen(&damaged, &page, Keep::Decoded);
    assert!(!before.is_empty() && before.len() < times.len() && found.damage.is_some());
    assert_eq!(seen(&damaged, &page, Keep::Verbatim), (before, found));
}

/// What `see` refuses is left out, unless the sub-buffer is kept as it is.
#[test]
fn events_that_are_refused_are_left_out_of_decoded_sub_buffers() {
    let page = captures::convert("x86_64-6.1").header_page;
    let raw = fs::read(captures::dir("x86_64-6.1").join("tracefs/per_cpu/cpu0/trace_pipe_raw")).unwrap();
    let sound = &raw[..page.sub_buffer_len()];
    for (keep, is_all) in [(Keep::Decoded, false), (Keep::Verbatim, true)] {
        let mut writer = writer_for("x86_64-6.1", ByteOrder::Little, 8);
        let mut calls = 0u64;
        let found = writer.add_sub_buffer(0, sound, &page, keep, |_, _| {
            calls += 1;
            calls % 2 == 0
        });
        let kept = if is_all { calls } else { calls / 2 };
        assert_eq!(found.unwrap().events, kept, "{keep:?}");
        let file = writer.finish().unwrap();
        assert_eq!(Trace::open(&file).unwrap().events().unwrap().count() as u64, kept, "{keep:?}");
    }
}

#[test]
fn a_sub_buffer_is_added_in_one_call_and_damage_is_noted_behind_what_it_holds() {
    for name in captures::NAMES {
        let capture = captures::convert(name);
        let page = capture.header_page;
        let mut writer = writer_for(name, capture.order, page.long_size());
        let raw = fs::read(captures::dir(name).join("tracefs/per_cpu/cpu0/trace_pipe_raw")).unwrap();
        let mut events = 0;
        for bytes in raw.chunks(page.sub_buffer_len()) {
            events += writer.add_sub_buffer(0, bytes, &page, Keep::Decoded, |_, _| true).unwrap().events;
        }
        assert_eq!(events, capture.raw[&0].len() as u64, "{name}");
        // Cut in its middle: the events up to there, and a note.
        let bytes = &raw[..page.sub_buffer_len()];
        let data_len = SubBuffer::parse(bytes, &page, capture.order).unwrap().data_len();
        let cut = &bytes[..page.data_offset + data_len / 2];
        let found = writer.add_sub_buffer(0, cut, &page, Keep::Decoded, |_, _| true).unwrap();
        assert!(found.damage.is_some() && found.loss == Loss::damaged_input());
        let file = writer.finish().unwrap();
        let trace = Trace::open(&file).unwrap();
        let written: Vec<u64> = trace.events().unwrap().map(|e| e.time()).collect();
        assert!(written.len() as u64 >= events, "{name}");
        let times: Vec<u64> = capture.raw[&0].iter().map(|(time, _)| *time).collect();
        assert_eq!(written[..times.len()], times, "{name}");
        let losses = trace.items().filter_map(|item| match item {
            Item::Loss(gap) => Some(gap.loss),
            _ => None,
        });
        assert!(losses.last().is_some_and(|loss| loss == Loss::damaged_input()), "{name}");
    }
}

#[test]
fn a_trace_is_identified_without_being_asked_to() {
    let uuid = || WriterOptions::new(ByteOrder::Little, 8).trace_uuid;
    assert!(uuid() != uuid() && uuid()[..4] != uuid()[..4]);
    assert_eq!(options(8).trace_uuid, [1; 16]);
}

/// Names and numbers of the constants of a type, of its source.
fn constants(of: &str) -> Vec<(String, u16)> {
    let source = include_str!("../../src/schema/meaning.rs");
    let (_, rest) = source.split_once(&format!("\nimpl {of} {{")).unwrap();
    let (block, _) = rest.split_once("\n}").unwrap();
    let lines = block.lines().filter_map(|line| line.trim().strip_prefix("pub const "));
    let constant = |line: &str| {
        let (name, rest) = line.split_once(": Self = Self(").unwrap();
        (name.to_owned(), rest.strip_suffix(");").unwrap().parse().unwrap())
    };
    lines.map(constant).collect()
}

#[test]
fn every_meaning_and_role_prints_its_name() {
    let (meanings, roles) = (constants("Meaning"), constants("Role"));
    assert!(meanings.len() >= 11 && roles.len() >= 23);
    for (name, number) in meanings {
        assert_eq!(format!("{:?}", Meaning(number)), name);
    }
    for (name, number) in roles {
        assert_eq!((format!("{:?}", Role(number)), Role(number).is_known()), (name, true));
    }
    assert_eq!(format!("{:?} {:?}", Meaning(77), Role(77)), "Meaning(77) Role(77)");
}

#[test]
fn the_first_page_of_the_documentation_has_every_meaning_and_role() {
    let page = include_str!("../../src/lib.rs");
    for of in ["Meaning", "Role"] {
        for (name, _) in constants(of) {
            let row = format!("//! | [`{name}`](schema::{of}::{name}) | ");
            assert!(page.lines().any(|line| line.starts_with(&row)), "no row {row}");
        }
    }
}
