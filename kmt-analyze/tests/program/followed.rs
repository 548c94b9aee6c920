//! `dump --follow` has the events, and the stacks of the events, that `dump` has.

use std::fs;
use std::path::Path;

use kmt_format::Loss;
use kmt_format::fold::FoldedInterval;
use kmt_format::kernel::CpuStats;
use kmt_format::raw::ChunkKind;
use kmt_format::read::{Event, Trace};
use kmt_format::schema::Meaning;
use kmt_format::write::{StatsTaken, Writer, WriterOptions};
use serde_json::Value;

use crate::support::files::{Scratch, run, stdout};

/// An event of a capture.
struct Recorded {
    cpu: u32,
    pid: i32,
    time: u64,
    is_stack: bool,
    bytes: Vec<u8>,
}

fn recorded(trace: &Trace<'_>) -> Vec<Recorded> {
    let (mut merge, mut all) = (trace.merge(), Vec::new());
    while let Some(run) = merge.next_run() {
        for index in run.range {
            let event = Event::new(trace.schema(), run.chunk, index).unwrap();
            let mut bytes = Vec::new();
            event.to_record(&mut bytes);
            let is_stack = event.class().meaning == Meaning::KERNEL_STACK;
            all.push(Recorded { cpu: run.cpu, pid: event.pid(), time: event.time(), is_stack, bytes });
        }
    }
    all
}

/// Two events of one task in sequence, each followed by its stack.
fn two_with_stacks(events: &[Recorded]) -> Option<&[Recorded]> {
    let alike = |four: &&[Recorded]| {
        let stacks: Vec<bool> = four.iter().map(|event| event.is_stack).collect();
        stacks == [false, true, false, true]
            && four.iter().all(|event| (event.cpu, event.pid) == (four[0].cpu, four[0].pid))
    };
    events.windows(4).find(alike)
}

/// A writer with the event classes of a trace.
fn writer(trace: &Trace<'_>) -> Writer {
    let header = trace.header();
    let options = WriterOptions::new(header.order, header.long_size).align_u64(header.align_u64);
    let mut writer = Writer::new(options.page_size(header.page_size).trace_uuid([7; 16])).unwrap();
    for (_, class) in trace.schema().classes() {
        let id = writer.add_format(&class.system, &class.format_text).unwrap();
        writer.declare(id).unwrap();
    }
    writer
}

fn lines(args: &[&str], file: &Path) -> Vec<Value> {
    let text = stdout(&run(&[&["dump", "--json"], args].concat(), file));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_stack_behind_a_loss_has_no_event() {
    let scratch = Scratch::new();
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.18-stacks");
    let bytes = fs::read(scratch.convert(&capture)).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    let events = recorded(&trace);
    let [first, its_stack, second, stack] = two_with_stacks(&events).unwrap() else { unreachable!() };
    let add = |writer: &mut Writer, event: &Recorded| {
        writer.add_event(event.cpu, event.time, &event.bytes).unwrap();
    };
    let file = scratch.0.join("lossy.kmt");
    // Lost while recording: the stack of the first event, and the second event.
    let mut lossy = writer(&trace);
    add(&mut lossy, first);
    lossy.add_loss(first.cpu, Loss::counted(2)).unwrap();
    add(&mut lossy, stack);
    fs::write(&file, lossy.finish().unwrap()).unwrap();
    check(&file);
    // The same in a chunk that is damaged.
    let mut damaged = writer(&trace);
    for events in [&[first][..], &[its_stack, second], &[stack]] {
        events.iter().for_each(|event| add(&mut damaged, event));
        damaged.flush(first.cpu).unwrap();
    }
    let mut bytes = damaged.finish().unwrap();
    let chunks: Vec<_> = Trace::open(&bytes).unwrap().chunks().collect();
    let chunk = chunks.iter().filter(|chunk| chunk.kind == ChunkKind::EVENTS).nth(1).unwrap();
    bytes[(chunk.body_offset() + chunk.body_len - 1) as usize] ^= 1;
    fs::write(&file, bytes).unwrap();
    check(&file);
}

/// Where objects that die young are sums, the allocation of one CPU waits longer than the free of another that is younger.
#[test]
fn events_that_wait_for_the_end_of_their_objects_are_in_order() {
    let scratch = Scratch::new();
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.18-stacks");
    let bytes = fs::read(scratch.convert(&capture)).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    let event = recorded(&trace).into_iter().find(|event| !event.is_stack).unwrap();
    let header = trace.header();
    let options = WriterOptions::new(header.order, header.long_size).align_u64(header.align_u64);
    let mut writer = Writer::new(options.trace_uuid([7; 16]).folded(true)).unwrap();
    for (_, class) in trace.schema().classes() {
        writer.add_format(&class.system, &class.format_text).unwrap();
    }
    let mut interval = FoldedInterval::default();
    (interval.t_end, interval.threshold) = (1_000, 1_500);
    writer.add_fold(&interval).unwrap();
    let mut number = 0;
    let mut heartbeat = |writer: &mut Writer, now: u64| {
        let stats = CpuStats::parse(&format!("now ts: {now}\n")).unwrap();
        [0, 1].iter().for_each(|&cpu| writer.flush(cpu).unwrap());
        writer.add_stats(StatsTaken::Before, &[(0, stats)]).unwrap();
        // More than what is read at once.
        number += 1;
        writer.add_file(&format!("filler.{number}"), &vec![number; 300_000]).unwrap();
    };
    writer.add_event(0, 400, &event.bytes).unwrap();
    writer.add_event(0, 1_600, &event.bytes).unwrap();
    heartbeat(&mut writer, 2_000);
    heartbeat(&mut writer, 3_000);
    writer.add_event(1, 1_550, &event.bytes).unwrap();
    heartbeat(&mut writer, 4_000);
    let file = scratch.0.join("survivors.kmt");
    fs::write(&file, writer.finish().unwrap()).unwrap();
    let times = |args: &[&str]| -> Vec<Value> {
        lines(args, &file).into_iter().map(|mut event| event["ts"].take()).collect()
    };
    assert_eq!(times(&[]), [400, 1_550, 1_600]);
    assert_eq!(times(&["--follow"]), [400, 1_550, 1_600]);
}

/// The file has an event, and the stack of another event.
fn check(file: &Path) {
    let all = lines(&[], file);
    assert_eq!(all.len(), 2, "{all:#?}");
    assert!(all.iter().all(|event| event["of"].is_null()), "{all:#?}");
    assert_eq!(lines(&["--follow"], file), all);
}
