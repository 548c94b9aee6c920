//! A trace in which every text is hostile: what a compromised target, or somebody who sends a file, can put there.

use std::fs;
use std::path::{Path, PathBuf};

use kmt_format::kernel::{FieldKind, KernelSymbols, Symbol, SymbolOwner, TraceClock};
use kmt_format::read::{Event, Trace};
use kmt_format::write::{Task, Writer, WriterOptions};

/// Steers a terminal, turns the order of text round, breaks lines, tables and quotes, and is a script.
pub const HOSTILE: &str = "\x1b[31m\u{202e}\u{9b}2J\nINJECTED\"',;\t<script>alert(1)</script>&\\";
/// The same where a line has to stay one, and words apart.
const LINE: &str = "\x1b[31m\u{202e}\u{9b}2J\"',;<script>alert(1)</script>&\\";

/// Facts of a file by key.
const KEYS: [&str; 24] = [
    "writer",
    "source",
    "uname",
    "host",
    "boot_id",
    "kernel.release",
    "kernel.machine",
    "cmdline",
    "page_size.source",
    "pointers",
    "slice",
    "anonymized",
    "clock.pair",
    "node0.cpus",
    "record.command",
    "record.command_outcome",
    "record.disabled",
    "recorder.pid",
    "perf/corrupt_chains",
    "perf/kernel_start",
    "tracefs/trace_clock",
    "tracefs/trace_options",
    "tracefs/current_tracer",
    "tracefs/tracing_thresh",
];

/// Writes the trace at `path` anew, with hostile texts.
pub fn poison(path: &Path, to: &Path) -> PathBuf {
    let bytes = fs::read(path).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    let header = trace.header();
    let mut writer = Writer::new(
        WriterOptions::new(header.order, header.long_size)
            .align_u64(header.align_u64)
            .page_size(header.page_size)
            .trace_uuid([7; 16]),
    )
    .unwrap();
    for (_, class) in trace.schema().classes() {
        let id = writer.add_format(&class.system, &class.format_text).unwrap();
        writer.declare(id).unwrap();
    }
    let strange = strange_format(&trace);
    let strange = writer.add_format(HOSTILE, &strange).and_then(|id| writer.declare(id).map(|()| id));
    writer.add_clock(&TraceClock::named(HOSTILE)).unwrap();
    facts(&mut writer);
    files(&mut writer);
    let tasks: Vec<Task> =
        trace.metadata().tasks.iter().map(|t| Task::new(t.pid, HOSTILE).tgid(t.tgid).since(t.time)).collect();
    writer.add_tasks(&tasks).unwrap();
    symbols(&trace, &mut writer);
    let mut merge = trace.merge();
    let mut record = Vec::new();
    while let Some(run) = merge.next_run() {
        for index in run.range {
            let event = Event::new(trace.schema(), run.chunk, index).unwrap();
            event.to_record(&mut record);
            poison_texts(&event, &mut record);
            writer.add_event(run.cpu, event.time(), &record).unwrap();
            if let (Ok(id), 0) = (&strange, index % 100) {
                let mut record = record.get(..8).unwrap().to_vec();
                record[..2].copy_from_slice(&id.to_le_bytes());
                record.extend([0; 8]);
                writer.add_event(run.cpu, event.time(), &record).unwrap();
            }
        }
    }
    fs::write(to, writer.finish().unwrap()).unwrap();
    to.to_owned()
}

/// An event whose name, field and text are hostile.
fn strange_format(trace: &Trace<'_>) -> String {
    let (_, class) = trace.schema().classes().next().unwrap();
    let common: Vec<&str> = class.format_text.lines().filter(|line| line.contains("common_")).collect();
    format!(
        "name: {LINE}\nID: 60000\nformat:\n{}\n\n\tfield:int {LINE};\toffset:8;\tsize:4;\tsigned:1;\n\n\
         print fmt: \"{}\"\n",
        common.join("\n"),
        LINE.replace(['"', '\\'], "")
    )
}

fn facts(writer: &mut Writer) {
    let filter = format!("perf record --filter {HOSTILE}");
    let sampled = format!("{} 3 9\n", LINE.replace(' ', ""));
    let mut pairs: Vec<(&str, &[u8])> = KEYS.iter().map(|key| (*key, HOSTILE.as_bytes())).collect();
    pairs.push(("perf/cmdline", filter.as_bytes()));
    pairs.push(("perf/sampled", sampled.as_bytes()));
    pairs.push((HOSTILE, HOSTILE.as_bytes()));
    writer.add_metadata(&pairs).unwrap();
}

fn files(writer: &mut Writer) {
    let slabinfo = format!(
        "slabinfo - version: 2.1\n# name\n{LINE} 10 20 192 21 1 : tunables 0 0 0 : slabdata 1 1 0\n\
         kmalloc-64 10 64 64 64 1 : tunables 0 0 0 : slabdata 1 1 0\n"
    );
    let zone = format!("Node 0, zone {LINE} 1 2 3 4 5 6 7 8 9 10 11\n");
    let types = format!(
        "Page block order: 9\nPages per block:  512\n\nFree pages count per migrate type at order 0 1 2\n\
         Node    0, zone   {LINE}, type    {LINE}     1 2 3\n\nNumber of blocks type     {LINE}\n\
         Node 0, zone   {LINE}            7\n"
    );
    let conditions = format!("kmem:kmalloc filter={LINE}\n{LINE}:{LINE} enable=1\n");
    for when in ["", ".before", ".after"] {
        writer.add_file(&format!("slabinfo{when}"), slabinfo.as_bytes()).unwrap();
        writer.add_file(&format!("buddyinfo{when}"), zone.as_bytes()).unwrap();
        writer.add_file(&format!("zoneinfo{when}"), zone.as_bytes()).unwrap();
        writer.add_file(&format!("pagetypeinfo{when}"), types.as_bytes()).unwrap();
    }
    writer.add_file("event_conditions", conditions.as_bytes()).unwrap();
    writer.add_file("printk_formats", format!("0xffffffff81000000 : \"{LINE}\"\n").as_bytes()).unwrap();
    writer.add_file("modules", format!("{LINE} 4096 1 - Live 0xffffffffc0000000\n").as_bytes()).unwrap();
    writer.add_file(HOSTILE, HOSTILE.as_bytes()).unwrap();
}

fn symbols(trace: &Trace<'_>, writer: &mut Writer) {
    let names: Vec<String> = (0..trace.symbols().unwrap().len()).map(|n| format!("{HOSTILE}{n}")).collect();
    let symbols = trace.symbols().unwrap().entries().zip(&names).map(|(symbol, name)| Symbol {
        address: symbol.address,
        size: symbol.size,
        kind: symbol.kind,
        owner: SymbolOwner::Owner(0),
        name: name.as_bytes(),
    });
    let symbols =
        KernelSymbols { symbols: symbols.collect(), owners: vec![HOSTILE.as_bytes()], all_zero: false };
    writer.add_symbols(&symbols, &[]).unwrap();
}

/// Texts of an event, as much as fits into them.
fn poison_texts(event: &Event<'_>, record: &mut [u8]) {
    for (index, field) in event.class().fields.iter().enumerate().filter(|(_, field)| field.is_text()) {
        let Some(len) = event.bytes(index).map(<[u8]>::len) else { continue };
        let offset = field.offset as usize;
        let start = match field.kind {
            FieldKind::DataLoc => event.order().uint_at(record, offset, 4).unwrap() as usize & 0xffff,
            _ => offset,
        };
        let end = start + len.saturating_sub(1);
        record[start..end].iter_mut().zip(HOSTILE.bytes()).for_each(|(to, byte)| *to = byte);
    }
}
