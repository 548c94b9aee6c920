//! The library's answers to the key `lookups` in the JSON of the conformance vectors.

use std::collections::BTreeMap;

use kmt_format::raw::chunk_flags;
use kmt_format::read::{
    ChunkRef, Event, EventChunk, Incremental, Item, Metadata, StackJoiner, Stream, SymbolTable, Trace,
};
use kmt_format::schema::Meaning;
use serde_json::{Value as Json, json};

use super::naive_metadata::hex;

fn text(bytes: &[u8]) -> Json {
    String::from_utf8(bytes.to_vec()).unwrap().into()
}

/// Results of a reader of the library.
pub struct Facts<'f> {
    pub metadata: &'f Metadata<'f>,
    pub symbols: Option<&'f SymbolTable<'f>>,
    pub streams: &'f BTreeMap<u32, Stream>,
    /// Chunks of events in the order of the file.
    pub chunks: Vec<ChunkRef>,
    /// CPU and class of each event, by CPU.
    pub classes: Vec<(u32, usize)>,
}

/// The answers; `stacks` are those of a reader that joins them.
pub fn answers(lookups: &Json, facts: &Facts<'_>, stacks: Option<Json>) -> Json {
    let mut out = serde_json::Map::new();
    for (key, questions) in lookups.as_object().unwrap() {
        let questions = questions.as_array().unwrap();
        let each = |answer: &dyn Fn(&[Json]) -> Json| {
            questions.iter().map(|q| answer(q.as_array().unwrap())).collect::<Json>()
        };
        let answers = match key.as_str() {
            "symbols" => each(&|q| symbol(facts.symbols, q[0].as_u64().unwrap())),
            "stacks" => stacks.clone().unwrap_or_else(|| lookups[key].clone()),
            "classes" => numbered(&facts.classes).map(|(cpu, n, class)| json!([cpu, n, class])).collect(),
            "missing" => {
                let rows = facts.streams.iter();
                rows.map(|(cpu, s)| json!([cpu, s.chunks_missing, s.events_missing])).collect()
            }
            "unverified" => {
                let chunks = facts.chunks.iter().filter(|c| c.flags & chunk_flags::UNVERIFIED != 0);
                chunks.map(|c| json!([c.cpu, c.sequence])).collect()
            }
            key => each(&|q| row(facts.metadata, key, q)),
        };
        out.insert(key.clone(), answers);
    }
    out.into()
}

/// Events with their numbers within their CPU.
fn numbered(events: &[(u32, usize)]) -> impl Iterator<Item = (u32, usize, usize)> {
    events.iter().enumerate().map(|(i, &(cpu, class))| {
        let before = events[..i].iter().filter(|(c, _)| *c == cpu).count();
        (cpu, before, class)
    })
}

fn symbol(symbols: Option<&SymbolTable<'_>>, address: u64) -> Json {
    match symbols.and_then(|s| s.resolve(address)) {
        Some(found) => json!([address, text(&found.name), found.offset, found.module.map(text)]),
        None => json!([address, null, null, null]),
    }
}

fn row(metadata: &Metadata<'_>, key: &str, q: &[Json]) -> Json {
    let int = |i: usize| q[i].as_i64().map_or(0, |n| n as i32);
    let long = |i: usize| q[i].as_u64().unwrap();
    let name = || q[0].as_str().unwrap();
    match key {
        "values" => json!([q[0], metadata.value(name()).map(hex)]),
        "contents" => json!([q[0], metadata.attachment(name()).map(hex)]),
        "comms" => json!([q[0], q[1], metadata.comm(int(0), long(1)).map(hex)]),
        "tgids" => json!([q[0], q[1], metadata.tgid(int(0), long(1))]),
        "cgroups" => {
            let found = metadata.cgroup(int(0), long(1) as u32, long(2));
            json!([q[0], q[1], q[2], found.map(|cgroup| text(&cgroup.path))])
        }
        "lines" => {
            let lines = metadata.lines_at(long(0));
            let lines = lines.map(|l| json!([text(&l.function), text(&l.file), l.line, l.depth]));
            json!([q[0], lines.collect::<Json>()])
        }
        other => panic!("{other} is asked"),
    }
}

/// Adds the answers of a whole file to what was found in it.
pub fn of_trace(trace: &Trace<'_>, mut found: Json, expected: &Json) -> Json {
    let Some(questions) = expected.get("lookups") else { return found };
    let chunks: Vec<ChunkRef> =
        trace.streams().values().flat_map(|s| s.chunks.iter().map(|(c, _)| *c)).collect();
    let mut classes = Vec::new();
    for chunk in &chunks {
        let events = trace.read(chunk).unwrap();
        classes.extend(events.events(trace.schema()).map(|e| (e.cpu(), e.class_index())));
    }
    let (metadata, symbols, streams) = (trace.metadata(), trace.symbols(), trace.streams());
    let facts = Facts { metadata, symbols, streams, chunks, classes };
    found["lookups"] = answers(questions, &facts, Some(stacks(trace)));
    found
}

/// The answers of a reader in pieces; stacks it leaves to its user.
pub fn of_incremental(
    reader: &Incremental,
    found: &[(ChunkRef, EventChunk<'static>)],
    questions: &Json,
) -> Json {
    let mut found: Vec<&(ChunkRef, EventChunk<'static>)> = found.iter().collect();
    found.sort_by_key(|(chunk, _)| chunk.cpu);
    let chunks = found.iter().map(|(chunk, _)| *chunk).collect();
    let schema = reader.schema().unwrap();
    let events = found.iter().flat_map(|(_, events)| events.events(schema));
    let classes = events.map(|e| (e.cpu(), e.class_index())).collect();
    let (metadata, symbols) = (reader.metadata().unwrap(), reader.symbols());
    let facts = Facts { metadata, symbols, streams: reader.streams().unwrap(), chunks, classes };
    answers(questions, &facts, None)
}

/// Each stack with the event that it belongs to, both numbered within their CPU; the stacks of a CPU together.
pub fn stacks(trace: &Trace<'_>) -> Json {
    let (mut joiner, mut numbers) = (StackJoiner::default(), BTreeMap::<u32, u64>::new());
    let mut found: BTreeMap<u32, Vec<Json>> = BTreeMap::new();
    for item in trace.items() {
        match item {
            Item::Event(event) => {
                let number = numbers.entry(event.cpu()).or_default();
                let owner = joiner.see(&event, *number);
                if is_stack(&event) {
                    found.entry(event.cpu()).or_default().push(json!([event.cpu(), *number, owner]));
                }
                *number += 1;
            }
            Item::Loss(gap) => joiner.gap(gap.cpu),
            other => panic!("{other:?}"),
        }
    }
    found.into_values().flatten().collect()
}

fn is_stack(event: &Event<'_>) -> bool {
    event.meaning() == Meaning::KERNEL_STACK
}
