//! The naive reader's answers to the key `lookups` of the conformance vectors: searches through everything, in the words
//! of the specification.

use serde_json::{Value as Json, json};

use super::naive::{Bytes, Event, File, Stream};
use super::naive_metadata::{Symbol, hex, symbols_of};

pub fn answers(asked: &Json, file: &File) -> Json {
    let mut out = serde_json::Map::new();
    for (key, questions) in asked.as_object().unwrap() {
        let questions = questions.as_array().unwrap();
        let each = |answer: &dyn Fn(&Json) -> Json| questions.iter().map(answer).collect::<Json>();
        let answers = match key.as_str() {
            "symbols" => each(&|q| symbol(file, q[0].as_u64().unwrap())),
            "stacks" => file.events.iter().flat_map(|(cpu, list)| stacks(list, &file.streams[cpu])).collect(),
            "classes" => {
                let lists = file.events.values();
                let rows = lists.flat_map(|list| list.iter().enumerate());
                rows.map(|(n, e)| json!([e.cpu, n, e.class])).collect()
            }
            "missing" => {
                file.streams.iter().map(|(cpu, s)| json!([cpu, s.chunks_missing, s.events_missing])).collect()
            }
            "unverified" => {
                let rows =
                    file.streams.iter().flat_map(|(cpu, s)| s.unverified.iter().map(move |n| (cpu, n)));
                rows.map(|(cpu, sequence)| json!([cpu, sequence])).collect()
            }
            "lines" => each(&|q| json!([q[0], lines(file, &q[0])])),
            "values" => each(&|q| json!([q[0], first(file, "meta", &q[0])])),
            "contents" => each(&|q| json!([q[0], first(file, "files", &q[0])])),
            "comms" => each(&|q| {
                let counts = |row: &Json| row[1] == q[0] && row[3] != hex(b"");
                json!([q[0], q[1], at(file, "tasks", counts, &q[1], 3)])
            }),
            "tgids" => each(&|q| {
                let counts = |row: &Json| row[1] == q[0] && row[2] != json!(0);
                json!([q[0], q[1], at(file, "tasks", counts, &q[1], 2)])
            }),
            "cgroups" => each(&|q| {
                let counts = |row: &Json| row[2] == q[0] && row[3] == q[1] && row[4] != json!("");
                json!([q[0], q[1], q[2], at(file, "cgroups", counts, &q[2], 4)])
            }),
            other => panic!("{other} is asked"),
        };
        out.insert(key.clone(), answers);
    }
    out.into()
}

fn rows<'f>(file: &'f File, key: &str) -> impl Iterator<Item = &'f Json> + use<'f> {
    file.metadata.get(key).and_then(Json::as_array).into_iter().flatten()
}

/// The text behind the name in the first row that has it.
fn first(file: &File, key: &str, name: &Json) -> Json {
    rows(file, key).find(|row| row[0] == *name).map_or(Json::Null, |row| row[1].clone())
}

/// Column `column` of the row with the highest time not above `time`, of several the last; of later rows the earliest.
fn at(file: &File, key: &str, counts: impl Fn(&Json) -> bool, time: &Json, column: usize) -> Json {
    let rows: Vec<(u64, &Json)> =
        rows(file, key).filter(|row| counts(row)).map(|row| (row[0].as_u64().unwrap(), row)).collect();
    let time = time.as_u64().unwrap();
    let before = rows.iter().filter(|(since, _)| *since <= time).max_by_key(|(since, _)| *since);
    let earliest = rows.iter().map(|(since, _)| *since).min();
    let behind = || rows.iter().rev().find(|(since, _)| Some(*since) == earliest);
    before.or_else(behind).map_or(Json::Null, |(_, row)| row[column].clone())
}

/// The rows of the last chunk that has some of the address, by depth.
fn lines(file: &File, address: &Json) -> Vec<Json> {
    let all: Vec<&Json> = rows(file, "lines").collect();
    let mut ends = file.line_chunks.clone();
    ends.push(all.len());
    for chunk in ends.windows(2).rev() {
        let mut found: Vec<&Json> =
            all[chunk[0]..chunk[1]].iter().copied().filter(|row| row[0] == *address).collect();
        found.sort_by_key(|row| row[4].as_u64());
        if !found.is_empty() {
            return found.iter().map(|row| json!([row[1], row[2], row[3], row[4]])).collect();
        }
    }
    Vec::new()
}

fn symbol(file: &File, address: u64) -> Json {
    let big = file.big;
    let bodies: Vec<Bytes<'_>> = file.symbols.iter().map(|data| Bytes { data, big }).collect();
    let bound = |at: usize| bodies.iter().rev().map(|b| b.number(at, 8)).find(|&bound| bound != 0);
    let chunks: Vec<Vec<Symbol>> = bodies.iter().map(|body| symbols_of(*body)).collect();
    let start = chunks.iter().flatten().map(|s| s.address).filter(|&start| start <= address).max();
    let candidate = chunks.iter().rev().find_map(|chunk| chunk.iter().find(|s| Some(s.address) == start));
    match candidate.filter(|s| holds(s, address, (bound(16), bound(24)))) {
        Some(s) => json!([address, s.name, address - s.address, s.owner.as_ref().map(|o| &o.0)]),
        None => json!([address, null, null, null]),
    }
}

fn holds(symbol: &Symbol, address: u64, (core_start, core_end): (Option<u64>, Option<u64>)) -> bool {
    let bounds_nothing = symbol.size == 0 || symbol.size >= u64::from(u32::MAX);
    if !bounds_nothing && address - symbol.address >= symbol.size {
        return false;
    }
    match &symbol.owner {
        None => {
            core_start.is_none_or(|start| symbol.address >= start)
                && core_end.is_none_or(|end| address <= end)
                && !(b"Aa".contains(&symbol.kind) && core_start.is_none())
                && !(bounds_nothing && core_end.is_none())
        }
        Some((_, base, size)) => {
            let within = |at: u64| *base == 0 || *size == 0 || at >= *base && at - base < *size;
            let is_near = !bounds_nothing || within(address) && address - symbol.address < 1 << 20;
            within(symbol.address) && is_near
        }
    }
}

/// Each stack of a CPU with the event that it belongs to.
fn stacks(events: &[Event], stream: &Stream) -> Vec<Json> {
    let is_stack = |n: usize| events[n].meaning == 9;
    let level = |n: usize| events[n].flags & 0x58;
    let mut owners: Vec<Option<usize>> = Vec::new();
    let mut out = Vec::new();
    for n in (0..events.len()).filter(|&n| is_stack(n)) {
        let last = (0..n).rfind(|&m| !is_stack(m) && level(m) == level(n));
        let owner = last.filter(|&m| {
            let is_cut = stream.gaps.iter().any(|&gap| m < gap && gap <= n);
            events[m].pid == events[n].pid && !owners.contains(&Some(m)) && !is_cut
        });
        owners.push(owner);
        out.push(json!([events[n].cpu, n, owner]));
    }
    out
}
