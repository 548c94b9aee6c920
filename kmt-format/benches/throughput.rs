//! Cost per event, from bytes in memory to bytes in memory.
//!
//!     cargo bench -p kmt-format                                  the sample capture, over and over
//!     KMT_BENCH_DIR=saved/ cargo bench -p kmt-format             a capture of your own; 4 million events are telling
//!
//! An argument selects cases whose names contain it; `=area/case` is that one alone. Prints `area/case`, nanoseconds an event (best of the rounds, and the median), and what was checked.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use kmt_format::Compression;
use kmt_format::kernel::{
    ByteOrder, FieldKind, HeaderPage, OrderVote, SubBuffer, SubBufferItem, vote_byte_order,
};
use kmt_format::print::{EventText, PrintEnv};
use kmt_format::read::{Arrived, Event, Incremental, Item, Trace};
use kmt_format::schema::Role;
use kmt_format::write::{Keep, Writer, WriterOptions};

struct Input {
    header: HeaderPage,
    order: ByteOrder,
    formats: Vec<(String, String)>,
    raw: Vec<(u32, Vec<u8>)>,
}

fn main() {
    // `cargo test` runs benches too; there is nothing to time then.
    if std::env::args().any(|a| a == "--test") {
        return;
    }
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1");
    let dir = std::env::var_os("KMT_BENCH_DIR").map_or(default, PathBuf::from);
    let input = load(&dir);
    let mut file = Vec::new();
    convert(&input, Compression::None, &mut file);
    // Memory of the size of the file, used once already: what is measured is the writer, not the kernel's clearing of pages.
    let room = RefCell::new(file.clone());
    let trace = Trace::open(&file).expect("our own file");
    let events = trace.event_count();
    let raw_bytes: usize = input.raw.iter().map(|(_, r)| r.len()).sum();
    println!(
        "{}: {events} events, {:.1} raw bytes an event",
        dir.display(),
        raw_bytes as f64 / events as f64
    );
    println!("event chunks: {:.2} bytes an event", trace.event_bytes() as f64 / events as f64);
    let rounds = if events > 1_000_000 { 7 } else { 25 };
    let only = std::env::args().nth(1).filter(|a| !a.starts_with('-'));
    let time = |name: &str, work: &dyn Fn() -> u64| {
        if only.as_ref().is_some_and(|only| {
            if let Some(exact) = only.strip_prefix("=") {
                name != exact
            } else {
                !name.contains(only.as_str())
            }
        }) {
            return;
        }
        let mut nanos: Vec<f64> = (0..rounds)
            .map(|_| {
                let start = Instant::now();
                assert_eq!(black_box(work()), events, "{name}");
                start.elapsed().as_nanos() as f64 / events as f64
            })
            .collect();
        nanos.sort_by(f64::total_cmp);
        println!("{name:<28}{:8.1} ns/event  (median {:.1})", nanos[0], nanos[nanos.len() / 2]);
    };
    time("kernel/walk", &|| walk(&input));
    time("write/convert", &|| {
        convert(&input, Compression::None, &mut room.borrow_mut());
        events
    });
    time("write/verbatim", &|| verbatim(&input));
    time("read/open", &|| Trace::open(&file).expect("our own file").event_count());
    time("read/records", &|| records(&trace));
    let unverified = Trace::builder().body_checksums(false).open(&file).expect("our own file");
    time("read/records-unverified", &|| records(&unverified));
    time("read/merge", &|| merge(&trace));
    time("read/all-fields", &|| all_fields(&trace));
    time("read/sum-runs", &|| sum_runs(&trace));
    time("read/sum-events", &|| sum_events(&Trace::open(&file).expect("our own file")));
    time("read/sum-items", &|| sum_items(&trace));
    time("read/all-fields-events", &|| all_fields_events(&Trace::open(&file).expect("our own file")));
    time("read/all-fields-items", &|| all_fields_items(&trace));
    time("read/incremental", &|| incremental(&file));
    time("print/text", &|| text(&trace));
    let foreign = foreign(&input, &trace);
    let foreign = Trace::open(&foreign).expect("our own file");
    time("foreign/records", &|| records(&foreign));
    time("foreign/merge", &|| merge(&foreign));
    time("foreign/all-fields", &|| all_fields(&foreign));
    for (name, compression) in [("lz4", Compression::Lz4), ("zstd", Compression::Zstd)] {
        if !compression.is_available() {
            continue;
        }
        let mut file = Vec::new();
        convert(&input, compression, &mut file);
        let trace = Trace::open(&file).expect("our own file");
        println!("{name}: {:.2} bytes an event", trace.event_bytes() as f64 / events as f64);
        time(&format!("write/convert-{name}"), &|| {
            convert(&input, compression, &mut room.borrow_mut());
            events
        });
        time(&format!("read/records-{name}"), &|| records(&trace));
    }
}

fn load(dir: &Path) -> Input {
    let tracefs = if dir.join("tracefs").is_dir() { dir.join("tracefs") } else { dir.to_owned() };
    let text = fs::read_to_string(tracefs.join("events/header_page")).expect("events/header_page");
    let header = HeaderPage::parse(&text).expect("events/header_page");
    let mut formats = Vec::new();
    for system in dirs(&tracefs.join("events")) {
        for event in dirs(&system) {
            if let Ok(text) = fs::read_to_string(event.join("format")) {
                formats.push((system.file_name().unwrap_or_default().to_string_lossy().into_owned(), text));
            }
        }
    }
    let mut raw = Vec::new();
    for cpu in dirs(&tracefs.join("per_cpu")) {
        let number = cpu.file_name().unwrap_or_default().to_string_lossy().trim_start_matches("cpu").parse();
        raw.push((number.expect("cpuN"), fs::read(cpu.join("trace_pipe_raw")).expect("trace_pipe_raw")));
    }
    let mut vote = OrderVote::default();
    for page in raw.iter().flat_map(|(_, r)| r.chunks(header.sub_buffer_len()).take(8)) {
        vote_byte_order(&mut vote, page, &header, |_| true);
    }
    Input { header, order: vote.winner().expect("events"), formats, raw }
}

fn dirs(path: &Path) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> =
        fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path()).filter(|p| p.is_dir()).collect();
    out.sort();
    out
}

/// The events of the sub-buffers, and nothing done with them.
fn walk(input: &Input) -> u64 {
    let mut events = 0;
    for page in input.raw.iter().flat_map(|(_, r)| r.chunks(input.header.sub_buffer_len())) {
        for item in SubBuffer::parse(page, &input.header, input.order).expect("a sound capture").items() {
            if let Ok(SubBufferItem::Event { time, .. }) = item {
                black_box(time);
                events += 1;
            }
        }
    }
    events
}

/// Sub-buffers to a whole file in memory.
fn convert(input: &Input, compression: Compression, file: &mut Vec<u8>) {
    file.clear();
    let mut writer = new_writer(input, input.order, compression);
    for (cpu, raw) in &input.raw {
        for page in raw.chunks(input.header.sub_buffer_len()) {
            for item in SubBuffer::parse(page, &input.header, input.order).expect("a sound capture").items() {
                if let Ok(SubBufferItem::Event { time, record, .. }) = item {
                    writer.add_event(*cpu, time, record).expect("event");
                }
            }
            if writer.pending_len() > 1 << 20 {
                writer.take_into(file);
            }
        }
        writer.flush(*cpu).expect("a codec that is there");
    }
    file.append(&mut writer.finish().expect("a codec that is there"));
}

fn new_writer(input: &Input, order: ByteOrder, compression: Compression) -> Writer {
    let mut writer = Writer::new(
        WriterOptions::new(order, input.header.long_size()).trace_uuid([5; 16]).compression(compression),
    )
    .expect("options");
    for (system, text) in &input.formats {
        writer.add_format(system, text).expect("format");
    }
    writer
}

/// Every chunk checked, checksum and all, and every record looked at.
fn records(trace: &Trace<'_>) -> u64 {
    let mut events = 0;
    for (chunk, _) in trace.streams().values().flat_map(|s| &s.chunks) {
        let chunk = trace.read(chunk).expect("a sound file");
        let mut sum = 0u64;
        chunk.records().for_each(|r| {
            sum = sum.wrapping_add(r.value).wrapping_add(u64::from(r.time_offset)) ^ u64::from(r.descriptor);
            events += 1;
        });
        black_box(sum);
    }
    events
}

/// The same in the kernel's order, with the time of each.
fn merge(trace: &Trace<'_>) -> u64 {
    let mut events = 0;
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        run.chunk.for_each_in(run.range, |time, record| {
            black_box((time, record.value));
            events += 1;
        });
    }
    events
}

/// Sub-buffers kept as they are.
fn verbatim(input: &Input) -> u64 {
    let mut writer = new_writer(input, input.order, Compression::None);
    let mut events = 0;
    for (cpu, raw) in &input.raw {
        for page in raw.chunks(input.header.sub_buffer_len()) {
            events += writer
                .add_sub_buffer(*cpu, page, &input.header, Keep::Verbatim, |_, _| true)
                .expect("a sound capture")
                .events;
            black_box(writer.take());
        }
    }
    events
}

/// The file through the incremental reader, 64 KiB at a time.
fn incremental(file: &[u8]) -> u64 {
    let mut reader = Incremental::new();
    let mut events = 0;
    for piece in file.chunks(1 << 16) {
        reader.push(piece);
        while let Some(arrived) = reader.next().expect("our own file") {
            if let Arrived::Events(_, chunk) = arrived {
                chunk.records().for_each(|r| {
                    black_box(r.value);
                    events += 1;
                });
            }
        }
    }
    events
}

/// The same events as a target of the other byte order would have written them.
fn foreign(input: &Input, trace: &Trace<'_>) -> Vec<u8> {
    let order = if input.order == ByteOrder::Little { ByteOrder::Big } else { ByteOrder::Little };
    let fields: HashMap<u16, Vec<(usize, usize)>> = trace
        .schema()
        .classes()
        .map(|(_, c)| {
            let numbers =
                c.fields.iter().filter(|f| matches!(f.kind, FieldKind::Scalar | FieldKind::DataLoc));
            (c.id, numbers.map(|f| (f.offset as usize, f.size as usize)).collect())
        })
        .collect();
    let mut writer = new_writer(input, order, Compression::None);
    let mut file = Vec::new();
    let mut swapped = Vec::new();
    for (cpu, raw) in &input.raw {
        for page in raw.chunks(input.header.sub_buffer_len()) {
            for item in SubBuffer::parse(page, &input.header, input.order).expect("a sound capture").items() {
                let Ok(SubBufferItem::Event { time, record, .. }) = item else { continue };
                swapped.clear();
                swapped.extend_from_slice(record);
                let id = input.order.uint_at(record, 0, 2).unwrap_or(0) as u16;
                for &(at, len) in fields.get(&id).map_or(&[][..], Vec::as_slice) {
                    swapped.get_mut(at..at + len).into_iter().for_each(<[u8]>::reverse);
                }
                writer.add_event(*cpu, time, &swapped).expect("event");
            }
        }
        file.append(&mut writer.take());
    }
    file.append(&mut writer.finish().expect("no codec"));
    file
}

/// Every field of every event, by the schema.
fn all_fields(trace: &Trace<'_>) -> u64 {
    let mut events = 0;
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        for index in run.range {
            let event = Event::new(trace.schema(), run.chunk, index).expect("an event");
            for field in 0..event.class().fields.len() {
                black_box(event.uint(field));
            }
            events += 1;
        }
    }
    events
}

/// The same by the iterator of events, which checks all chunks first.
fn all_fields_events(trace: &Trace<'_>) -> u64 {
    let mut events = 0;
    for event in trace.events().expect("a sound file") {
        for field in 0..event.class().fields.len() {
            black_box(event.uint(field));
        }
        events += 1;
    }
    events
}

/// The same by the iterator of events and losses.
fn all_fields_items(trace: &Trace<'_>) -> u64 {
    let mut events = 0;
    for item in trace.items() {
        let Item::Event(event) = item else { continue };
        for field in 0..event.class().fields.len() {
            black_box(event.uint(field));
        }
        events += 1;
    }
    events
}

/// The work of a small tool: the bytes of all allocations, and the time of each event. By runs and indices.
fn sum_runs(trace: &Trace<'_>) -> u64 {
    let (mut events, mut bytes) = (0, 0u64);
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        for index in run.range {
            let event = Event::new(trace.schema(), run.chunk, index).expect("an event");
            bytes += sum(&event);
            events += 1;
        }
    }
    black_box(bytes);
    events
}

/// The same by the iterator of events.
fn sum_events(trace: &Trace<'_>) -> u64 {
    let (mut events, mut bytes) = (0, 0u64);
    for event in trace.events().expect("a sound file") {
        bytes += sum(&event);
        events += 1;
    }
    black_box(bytes);
    events
}

/// The same by the iterator of events and losses.
fn sum_items(trace: &Trace<'_>) -> u64 {
    let (mut events, mut bytes) = (0, 0u64);
    for item in trace.items() {
        if let Item::Event(event) = item {
            bytes += sum(&event);
            events += 1;
        }
    }
    black_box(bytes);
    events
}

fn sum(event: &Event<'_>) -> u64 {
    black_box(event.time());
    if event.class().meaning.is_slab_alloc() { event.uint_with(Role::BYTES_ALLOC).unwrap_or(0) } else { 0 }
}

/// Every event through its print fmt.
fn text(trace: &Trace<'_>) -> u64 {
    let env = PrintEnv::new(trace.header().order, trace.header().long_size);
    let texts: HashMap<usize, EventText> =
        trace.schema().classes().map(|(i, c)| (i, EventText::new(c, &env))).collect();
    let mut events = 0;
    let mut out = Vec::new();
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        for index in run.range {
            let event = Event::new(trace.schema(), run.chunk, index).expect("an event");
            if let Some(text) = texts.get(&event.class_index()) {
                text.write(&mut out, &event, &env);
            }
            if out.len() > 1 << 16 {
                black_box(&out);
                out.clear();
            }
            events += 1;
        }
    }
    events
}
