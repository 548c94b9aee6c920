//! Everything that can be asked of a file.

use kmt_format::print::{EventText, PrintEnv};
use kmt_format::read::{Event, EventChunk, FoldChunk, Schema, Trace};

/// Asks for every field of every event, and for its text as long as there is not too much of it.
pub fn at(trace: &Trace<'_>) {
    let header = trace.header();
    let env = PrintEnv::new(header.order, header.long_size).with_symbols(trace.symbols());
    let mut merge = trace.merge();
    let mut line = Vec::new();
    while let Some(run) = merge.next_run() {
        for event in run.events() {
            for field in 0..event.class().fields.len() {
                let _ = (event.uint(field), event.bytes(field));
            }
            let _ = event.stack().map(|s| s.addresses().count());
            if line.len() < 1 << 16 {
                EventText::new(event.class(), &env).write(&mut line, &event, &env);
            }
        }
    }
    for (chunk, info) in trace.folds() {
        let Ok(read) = trace.read_fold(chunk) else { continue };
        assert_eq!(read.info(), info);
        let _ = folded(trace.schema(), &read);
    }
    if let Some(symbols) = trace.symbols() {
        let _ = symbols.resolve(0xffff_ffff_8100_0000);
        assert_eq!(symbols.entries().count(), symbols.len());
    }
}

/// An event as text: what two readers must agree on.
pub fn event(schema: &Schema, chunk: &EventChunk<'_>, index: usize) -> String {
    let Some(event) = Event::new(schema, chunk, index) else { return String::from("none") };
    let class = event.class();
    let mut out = format!("{} {} {}:{}", event.cpu(), event.time(), class.system, class.name);
    for field in 0..class.fields.len() {
        match event.uint(field) {
            Some(number) => out += &format!(" {number:x}"),
            None => out += &format!(" {:02x?}", event.bytes(field)),
        }
    }
    out
}

/// An interval of folded lives as text.
pub fn folded(schema: &Schema, chunk: &FoldChunk<'_>) -> String {
    let mut out = format!("{:?} {:?}", chunk.info(), chunk.cpus());
    for lives in chunk.lives() {
        let (alloc, free) = lives.indices();
        let bins: Vec<_> = lives.bins().collect();
        if alloc.is_some() {
            assert_eq!(bins.iter().map(|bin| u64::from(bin.1)).sum::<u64>(), lives.sums().count);
        }
        for index in alloc.into_iter().chain([free]) {
            out += &event(schema, chunk.events(), index);
        }
        out += &format!("{:?} {bins:?}", lives.sums());
    }
    out
}

/// All events that can be read, by CPU and number.
pub fn events(trace: &Trace<'_>) -> Vec<((u32, u64), String)> {
    let mut out = Vec::new();
    for (cpu, stream) in trace.streams() {
        for (chunk, info) in &stream.chunks {
            let Ok(read) = trace.read(chunk) else { continue };
            let all = 0..read.records().len();
            out.extend(
                all.map(|i| {
                    ((*cpu, info.first_event.wrapping_add(i as u64)), event(trace.schema(), &read, i))
                }),
            );
        }
    }
    out
}
