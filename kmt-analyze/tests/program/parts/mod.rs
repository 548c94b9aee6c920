//! Files of one recording are one trace: its figures are those of the recording in one file, wherever it was split.

mod commands;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use kmt_analyze::in_process;
use kmt_format::Loss;
use kmt_format::edit::Join;
use kmt_format::kernel::{
    ByteOrder, CpuStats, KernelSymbols, Symbol, SymbolOwner, TraceClock, parse_modules,
};
use kmt_format::read::Trace;
use kmt_format::write::{StatsTaken, Task, Writer, WriterOptions};
use serde_json::Value;

use crate::slab_records;
use crate::support::files::{Scratch, at, data, reports, stderr, stdout};

/// Time of a hundredth of a second.
const STEP: u64 = 10_000_000;
const SITE: u64 = 0xffff_ffff_8100_1010;
/// Allocations of the recording.
const OBJECTS: u64 = 24;
/// Event of CPU 1 before which events were lost, and their number: less than a tenth, for `leaks`.
const LOST: (usize, u64) = (9, 4);

/// An event: CPU, time, and its record.
type Made = (u32, u64, Vec<u8>);

/// The record of an allocation or a free of an object.
fn record(is_alloc: bool, object: u64) -> Vec<u8> {
    let of = if is_alloc { slab_records::alloc } else { slab_records::free };
    of(70 + (object % 3) as i32, 0xffff_8880_1000_0000 + 256 * object, SITE + 64 * (object % 4))
}

/// Events in the order of their times. Two of three objects are freed, on the other CPU.
fn events() -> Vec<Made> {
    let allocs = (0..OBJECTS).map(|n| ((n % 2) as u32, 100 + 10 * n, record(true, n)));
    let frees =
        (0..OBJECTS).filter(|n| n % 3 > 0).map(|n| ((n % 2) as u32 ^ 1, 155 + 10 * n, record(false, n)));
    let mut events: Vec<Made> = allocs.chain(frees).collect();
    events.sort_by_key(|(_, time, _)| *time);
    events
}

/// A recording in files: before these events of CPU 0 and CPU 1 a file ends. `uuid` is that of the recording.
fn recording(borders: &[[usize; 2]], uuid: u8) -> Vec<Vec<u8>> {
    let options = WriterOptions::new(ByteOrder::Little, 8).trace_uuid([uuid; 16]);
    let mut writer = Writer::new(options).unwrap();
    for event in ["kmem_cache_alloc", "kmem_cache_free"] {
        let path = format!("x86_64-6.1/tracefs/events/kmem/{event}/format");
        writer.add_format("kmem", &fs::read_to_string(data(&path)).unwrap()).unwrap();
    }
    let of_cpu = |cpu| events().into_iter().filter(|made| made.0 == cpu).collect::<Vec<_>>();
    let cpus: [Vec<Made>; 2] = [of_cpu(0), of_cpu(1)];
    let ends = borders.iter().copied().chain([[cpus[0].len(), cpus[1].len()]]);
    let (mut files, mut from) = (Vec::new(), [0, 0]);
    for (index, to) in ends.enumerate() {
        let number = (index + 1).to_string();
        writer.add_clock(&TraceClock::named("mono")).unwrap();
        let pairs = [("source", &b"live"[..]), (Join::PART_KEY, number.as_bytes())];
        writer.add_metadata(&pairs).unwrap();
        writer.add_tasks(&[Task::new(70, *b"first"), Task::new(71, *b"second")]).unwrap();
        let mut rows = Vec::new();
        for (cpu, made) in cpus.iter().enumerate() {
            let mut lost = 0;
            for (number, (_, time, record)) in made.iter().enumerate().take(to[cpu]).skip(from[cpu]) {
                if (cpu, number) == (1, LOST.0) {
                    writer.add_loss(1, Loss::counted(LOST.1)).unwrap();
                    lost = LOST.1;
                }
                writer.add_event(cpu as u32, time * STEP, record).unwrap();
            }
            let text = format!(
                "entries: 0\noverrun: {lost}\ncommit overrun: 0\ndropped events: 0\nread events: {}\n",
                to[cpu].saturating_sub(from[cpu])
            );
            rows.push((cpu as u32, CpuStats::parse(&text).unwrap()));
        }
        writer.add_stats(StatsTaken::After, &rows).unwrap();
        files.push(writer.next_file().unwrap());
        from = to;
    }
    files
}

/// The documents of a report about these files, which are given in this order.
fn document(report: &str, files: &[Vec<u8>]) -> Value {
    let names: Vec<String> = (1..=files.len()).map(|number| format!("a-{number}.kmt")).collect();
    let mut args = vec![report, "--json", "--threads", "1"];
    args.extend(names.iter().map(String::as_str));
    let named: Vec<(&str, &[u8])> =
        names.iter().map(String::as_str).zip(files.iter().map(|f| &**f)).collect();
    let ran = in_process::run(&args, &named);
    assert!(ran.ended.is_ok(), "{report}: {:?}", ran.ended);
    serde_json::from_slice(&ran.written).unwrap()
}

#[test]
fn a_recording_is_the_same_wherever_it_was_split() {
    let whole = recording(&[], 7);
    let expected = ["leaks", "summary", "lifetimes"].map(|report| (report, document(report, &whole)));
    assert_eq!(at(&expected[1].1, "/trace/lost_events"), LOST.1);
    assert_eq!(at(&expected[1].1, "/slab/alloc_events"), OBJECTS);
    let count = |cpu| events().iter().filter(|made| made.0 == cpu).count();
    let (first, second) = (count(0), count(1));
    for of_first in 0..=first {
        for of_second in [0, of_first.min(second), second - of_first.min(second), second] {
            let parts = recording(&[[of_first, of_second]], 7);
            for (report, expected) in &expected {
                let found = document(report, &parts);
                assert_eq!(&found, expected, "{report}, split at {of_first} and {of_second}");
            }
        }
    }
}

#[test]
fn files_together_have_the_events_and_losses_of_the_counters() {
    let parts = recording(&[[3, 5], [3, 12], [9, 12]], 7);
    assert_eq!(parts.len(), 4);
    let (mut in_files, mut counted) = ((0, 0), (0, 0));
    for part in &parts {
        let trace = Trace::open(part).unwrap();
        assert!(trace.is_finished() && trace.damages().is_empty());
        let chunks = trace.streams().values().flat_map(|stream| &stream.chunks);
        let lost: u64 = chunks.map(|(_, info)| info.loss.counted).sum();
        in_files = (in_files.0 + trace.event_count(), in_files.1 + lost);
        for stats in trace.metadata().counters.values().filter_map(|counters| counters.after) {
            counted = (counted.0 + stats.read.unwrap(), counted.1 + stats.overrun.unwrap());
        }
    }
    assert_eq!(in_files, counted);
    assert_eq!(in_files, (events().len() as u64, LOST.1));
    let document = document("summary", &parts);
    assert_eq!(at(&document, "/trace/events"), in_files.0);
    assert_eq!(at(&document, "/trace/lost_events"), in_files.1);
}

/// The events and facts of a file as a recording in files, of which one ends before each of these events.
fn split(file: &[u8], borders: &[usize]) -> Vec<Vec<u8>> {
    let trace = Trace::open(file).unwrap();
    let header = trace.header();
    let options = WriterOptions::new(header.order, header.long_size)
        .align_u64(header.align_u64)
        .page_size(header.page_size)
        .trace_uuid(header.trace_uuid);
    let mut writer = Writer::new(options).unwrap();
    for (_, class) in trace.schema().classes() {
        let id = writer.add_format(&class.system, &class.format_text).unwrap();
        writer.declare(id).unwrap();
    }
    describe(&trace, &mut writer, 1);
    let (mut files, mut bytes, mut record, mut number) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        assert!(run.gap.is_none(), "a capture without losses");
        for event in run.events() {
            if borders.contains(&number) {
                bytes.extend(writer.next_file().unwrap());
                files.push(std::mem::take(&mut bytes));
                describe(&trace, &mut writer, files.len() + 1);
            }
            event.to_record(&mut record);
            writer.add_event(run.cpu, event.time(), &record).unwrap();
            writer.take_into(&mut bytes);
            number += 1;
        }
    }
    bytes.extend(writer.finish().unwrap());
    files.push(bytes);
    files
}

/// Adds what each file of a recording has.
fn describe(trace: &Trace<'_>, writer: &mut Writer, number: usize) {
    let metadata = trace.metadata();
    metadata.clock.iter().for_each(|clock| writer.add_clock(clock).unwrap());
    let number = number.to_string();
    let pairs = metadata.pairs.iter().map(|(key, value)| (&**key, &**value));
    let pairs: Vec<(&str, &[u8])> = pairs.chain([(Join::PART_KEY, number.as_bytes())]).collect();
    writer.add_metadata(&pairs).unwrap();
    for file in &metadata.attachments {
        writer.add_file_at(&file.name, &file.contents, file.times).unwrap();
    }
    let tasks = metadata.tasks.iter();
    let tasks: Vec<Task> =
        tasks.map(|task| Task::new(task.pid, &*task.comm).tgid(task.tgid).since(task.time)).collect();
    writer.add_tasks(&tasks).unwrap();
    let Some(table) = trace.symbols() else { return };
    let entries: Vec<_> = table.entries().collect();
    let mut owners: Vec<&[u8]> = Vec::new();
    let mut symbols: Vec<Symbol<'_>> = Vec::new();
    for entry in &entries {
        let owner = entry.owner.map_or(SymbolOwner::Core, |owner| {
            let known = owners.iter().position(|known| *known == owner);
            let number = known.unwrap_or(owners.len());
            if known.is_none() {
                owners.push(owner);
            }
            SymbolOwner::Owner(number as u16)
        });
        let (address, size, kind, name) = (entry.address, entry.size, entry.kind, &*entry.name);
        symbols.push(Symbol { address, size, kind, owner, name });
    }
    symbols.sort_by_key(|symbol| symbol.address);
    let modules = metadata.attachment("modules").map(String::from_utf8_lossy);
    let modules = modules.map(|text| parse_modules(&text)).unwrap_or_default();
    writer.add_symbols(&KernelSymbols { symbols, owners, all_zero: false }, &modules).unwrap();
}

/// A border between an event and its stack, and files without events of a CPU.
#[test]
fn reports_on_the_files_of_a_capture_are_those_on_the_whole() {
    let scratch = Scratch::new();
    let stacks = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.18-stacks");
    for capture in [data("x86_64-6.12"), stacks] {
        let file = fs::read(scratch.convert(&capture)).unwrap();
        let whole = split(&file, &[]);
        let events = usize::try_from(Trace::open(&file).unwrap().event_count()).unwrap();
        let (third, half) = (events / 3, events / 2);
        let parts = split(&file, &[third, third + 1, third + 2, third + 3, half, half + 1, events - 1]);
        assert_eq!(parts.len(), 8);
        // `info` has the lengths of the file.
        for report in reports().into_iter().filter(|report| !["info", "all"].contains(report)) {
            let names = ["1", "2", "3", "4", "5", "6", "7", "8"];
            let args = |of: &[&'static str]| [&[report, "--json"], of].concat();
            let named: Vec<(&str, &[u8])> = names.into_iter().zip(parts.iter().map(|part| &**part)).collect();
            let found = in_process::run(&args(&names), &named);
            let expected = in_process::run(&args(&["w"]), &[("w", &whole[0])]);
            assert_eq!(found.ended.is_ok(), expected.ended.is_ok(), "{report}: {:?}", found.ended);
            let parsed = |written: &[u8]| serde_json::from_slice::<Value>(written).ok();
            assert_eq!(parsed(&found.written), parsed(&expected.written), "{report}");
        }
    }
}

/// The program on files of a folder.
fn program(scratch: &Scratch, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-analyze"));
    command.args(words).env("COLUMNS", "80").current_dir(&scratch.0).output().unwrap()
}

#[test]
fn files_that_are_not_one_recording_are_refused() {
    let scratch = Scratch::new();
    let parts = recording(&[[2, 2], [4, 4], [6, 6], [8, 8]], 7);
    for (number, part) in parts.iter().enumerate() {
        fs::write(scratch.0.join(format!("a-{}.kmt", number + 1)), part).unwrap();
    }
    fs::write(scratch.0.join("b-3.kmt"), &recording(&[[2, 2], [4, 4]], 8)[2]).unwrap();
    fs::write(scratch.0.join("one.kmt"), kmt_format::example().unwrap()).unwrap();
    for (files, reason) in [
        (&["a-1.kmt", "a-3.kmt"][..], "file 2 of the recording is missing, between a-1.kmt and a-3.kmt"),
        (&["a-5.kmt", "a-1.kmt"], "files 2 to 4 of the recording are missing, between a-1.kmt and a-5.kmt"),
        (&["a-2.kmt", "b-3.kmt"], "a-2.kmt and b-3.kmt are of different recordings"),
        (&["a-2.kmt", "a-2.kmt"], "a-2.kmt and a-2.kmt are both file 2 of the recording"),
        (&["a-2.kmt", "one.kmt"], "one.kmt is not one of several files of a recording"),
    ] {
        let output = program(&scratch, &[&["leaks"], files].concat());
        assert_eq!(output.status.code(), Some(1), "{files:?}");
        assert!(stderr(&output).contains(reason), "{files:?}: {}", stderr(&output));
    }
}

#[test]
fn screens_name_the_files() {
    let scratch = Scratch::new();
    for (number, part) in recording(&[[4, 4], [8, 8]], 7).iter().enumerate() {
        fs::write(scratch.0.join(format!("a-{}.kmt", number + 1)), part).unwrap();
    }
    // In any order, and with the first one missing.
    let three = ["a-3.kmt", "a-1.kmt", "a-2.kmt"];
    let text = stdout(&program(&scratch, &[&["info"], &three[..]].concat()));
    assert!(text.contains("3 parts of a.kmt"), "{text}");
    let text = stdout(&program(&scratch, &["info", "a-3.kmt", "a-2.kmt"]));
    assert!(text.contains("2 parts of a.kmt"), "{text}");
    let first = program(&scratch, &three);
    let findings = program(&scratch, &[&["findings"], &three[..]].concat());
    assert_eq!(stdout(&first), stdout(&findings));
    assert_eq!(first.status.code(), Some(3), "events were lost: {}", stderr(&first));
    assert!(
        stdout(&first).contains("a-3.kmt a-1.kmt a-2.kmt"),
        "commands name the files: {}",
        stdout(&first)
    );
    let left = fs::read_dir(&scratch.0).unwrap().count();
    assert_eq!(left, 3, "no other file stays");
}
