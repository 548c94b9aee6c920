//! Results of a reader, in the JSON of the conformance vectors.

use std::collections::BTreeMap;

use kmt_format::kernel::{CpuStats, FieldKind};
use kmt_format::read::{
    ChunkRef, Event, EventChunk, EventsInfo, FoldChunk, Header, Incremental, Metadata, Schema, SymbolTable,
    Trace,
};
use kmt_format::write::Loss;
use serde_json::{Map, Value as Json, json};

use super::naive;
use super::naive_folds;
use super::naive_lookups;
use super::naive_metadata::hex;

/// Compares key by key; lists that have no order of their own are sorted.
pub fn compare(name: &str, got: &Json, expected: &Json) {
    let keys =
        |json: &Json| json.as_object().unwrap().keys().cloned().collect::<std::collections::BTreeSet<_>>();
    assert_eq!(keys(got), keys(expected), "{name}");
    for key in keys(expected) {
        let sorted = |json: &Json| {
            let mut list: Vec<String> =
                json[&key].as_array().into_iter().flatten().map(Json::to_string).collect();
            list.sort();
            list
        };
        if ["stats", "unknown"].contains(&key.as_str()) {
            assert_eq!(sorted(got), sorted(expected), "{name}: {key}");
        } else {
            assert_eq!(got[&key], expected[&key], "{name}: {key}");
        }
    }
}

/// Two files around the first byte that differs.
pub fn difference(ours: &[u8], theirs: &[u8], at: usize) -> String {
    let from = at / 16 * 16;
    let line =
        |bytes: &[u8]| format!("{:02x?}", bytes.get(from..bytes.len().min(from + 48)).unwrap_or_default());
    let (lens, chunk) =
        ((ours.len(), theirs.len()), theirs[..at.min(theirs.len())].windows(4).rposition(|w| w == b"KMTC"));
    let kind = chunk.map(|c| (c, String::from_utf8_lossy(&theirs[c + 8..c + 12]).into_owned()));
    format!("byte {at} of {lens:?}, in {kind:?}\nours   {}\ntheirs {}", line(ours), line(theirs))
}

fn format(header: &Header) -> Json {
    let (major, minor) = (header.version_major, header.version_minor);
    let order = header.order.name();
    json!({"major": major, "minor": minor, "order": order, "long": header.long_size, "uuid": hex(&header.trace_uuid)})
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn metadata(metadata: &Metadata<'_>, symbols: Option<&SymbolTable<'_>>, out: &mut Map<String, Json>) {
    let mut list = |key: &str, rows: Vec<Json>| {
        if !rows.is_empty() {
            out.insert(key.into(), rows.into());
        }
    };
    list("meta", metadata.pairs.iter().map(|(k, v)| json!([k, hex(v)])).collect());
    list(
        "files",
        metadata
            .attachments
            .iter()
            .map(|a| json!([a.name, hex(&a.contents), a.times.map(|(first, last)| [first, last])]))
            .collect(),
    );
    let lines = metadata.lines.iter();
    list(
        "lines",
        lines.map(|l| json!([l.address, text(&l.function), text(&l.file), l.line, l.depth])).collect(),
    );
    let cgroups = metadata.cgroups.iter();
    list("cgroups", cgroups.map(|c| json!([c.time, c.id, c.pid, c.hierarchy, text(&c.path)])).collect());
    let sums = metadata.sums.iter().map(|s| {
        let numbers = [s.events, s.bytes_req, s.bytes_alloc];
        json!([[s.time_first, s.time_last], s.call_site, text(&s.function), s.meaning.0, numbers])
    });
    list("sums", sums.collect());
    list("tasks", metadata.tasks.iter().map(|t| json!([t.time, t.pid, t.tgid, hex(&t.comm)])).collect());
    let mut stats = Vec::new();
    for (cpu, counters) in &metadata.counters {
        let kernel = |s: &CpuStats| {
            json!([
                s.entries,
                s.overrun,
                s.commit_overrun,
                s.bytes,
                s.dropped,
                s.read,
                s.oldest_time,
                s.now_time,
                null,
                null,
                null
            ])
        };
        stats.extend(counters.before.iter().map(|s| json!([cpu, 0, kernel(s)])));
        stats.extend(counters.after.iter().map(|s| json!([cpu, 1, kernel(s)])));
        stats.extend(counters.writer.iter().map(|w| {
            let mut numbers = [None::<u64>; 11];
            let counters = [
                (0, w.events),
                (3, w.bytes),
                (8, w.sub_buffers),
                (9, w.sub_buffers_damaged),
                (10, w.discarded),
            ];
            counters.into_iter().for_each(|(i, n)| numbers[i] = n);
            json!([cpu, 2, numbers])
        }));
    }
    list("stats", stats);
    if let Some(clock) = &metadata.clock {
        let ticks = clock.unit == kmt_format::kernel::ClockUnit::Ticks;
        let comparable = clock.comparable;
        out.insert("clock".into(), json!({"name": clock.name, "ticks": ticks, "comparable": comparable}));
    }
    if let Some(symbols) = symbols {
        let rows = symbols.entries().map(|s| {
            json!([s.address, s.size, char::from(s.kind).to_string(), s.owner.map(text), text(&s.name)])
        });
        let (start, end) = symbols.core_range();
        let rows: Vec<Json> = rows.collect();
        out.insert(
            "symbols".into(),
            json!({"start": start.unwrap_or(0), "end": end.unwrap_or(0), "symbols": rows}),
        );
    }
}

fn classes(schema: &Schema) -> Json {
    let row = |(number, class): (usize, &kmt_format::schema::EventClass)| {
        let fields = class.fields.iter().zip(class.roles.iter()).map(|(f, role)| {
            let kind = match f.kind {
                FieldKind::Scalar => 0,
                FieldKind::Array { .. } => 1,
                FieldKind::DataLoc => 2,
                FieldKind::RelLoc => 3,
                FieldKind::Tail => 4,
                FieldKind::Opaque(code) => code,
                other => panic!("{other:?} has no number here"),
            };
            json!([f.name, f.type_text, f.offset, f.size, kind, f.signed, f.element_size, role.0])
        });
        let fields: Vec<Json> = fields.collect();
        json!({"number": number, "id": class.id, "name": format!("{}:{}", class.system, class.name),
            "meaning": class.meaning.0, "print": class.print_fmt(), "fields": fields})
    };
    schema.classes().map(row).collect()
}

/// One event, with its fields.
pub fn event(event: &Event<'_>) -> Json {
    let class = event.class();
    let fields = class.fields.iter().enumerate().map(|(i, field)| {
        let value = match event.uint(i) {
            Some(n) if field.signed => json!(n as i64),
            Some(n) => json!(n),
            None => event.bytes(i).map_or(Json::Null, hex),
        };
        (field.name.clone(), value)
    });
    let fields: Map<String, Json> = fields.collect();
    let name = format!("{}:{}", class.system, class.name);
    json!({"cpu": event.cpu(), "time": event.time(), "class": name, "fields": fields})
}

fn loss(cpu: u32, info: &EventsInfo) -> Option<Json> {
    let Loss { counted, uncounted, damaged_input, overwritten, .. } = info.loss;
    let row = json!({"cpu": cpu, "before": info.first_event, "counted": counted, "uncounted": uncounted, "damaged": damaged_input, "overwritten": overwritten});
    (info.loss != Loss::default()).then_some(row)
}

/// Contents of a [`Trace`].
pub fn of_trace(trace: &Trace<'_>) -> Json {
    let mut out = Map::new();
    out.insert("format".into(), format(trace.header()));
    out.insert("finished".into(), trace.is_finished().into());
    out.insert("chunks".into(), trace.chunks().map(|c| json!(c.kind.to_string())).collect());
    unknown(trace.chunks(), &mut out);
    metadata(trace.metadata(), trace.symbols(), &mut out);
    out.insert("classes".into(), classes(trace.schema()));
    let folds: Vec<FoldChunk<'_>> =
        trace.folds().iter().map(|(chunk, _)| trace.read_fold(chunk).unwrap()).collect();
    assert!(folds.iter().map(FoldChunk::info).eq(trace.folds().iter().map(|(_, info)| info)));
    put_folds(&folds, trace.folds_missing(), trace.schema(), &mut out);
    let mut losses = Vec::new();
    let mut events = Vec::new();
    for (cpu, stream) in trace.streams() {
        for (chunk, info) in &stream.chunks {
            losses.extend(loss(*cpu, info));
            let chunk = trace.read(chunk).unwrap();
            let all =
                (0..chunk.records().len()).map(|i| event(&Event::new(trace.schema(), &chunk, i).unwrap()));
            events.extend(all);
        }
    }
    let mut merged = Vec::new();
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        merged.extend(run.range.map(|_| json!(run.cpu)));
    }
    assert_eq!(merge.damages(), []);
    out.insert("losses".into(), losses.into());
    out.insert("merged".into(), merged.into());
    out.insert("events".into(), events.into());
    out.into()
}

/// Folded lives, if the file has any.
fn put_folds(folds: &[FoldChunk<'_>], missing: u64, schema: &Schema, out: &mut Map<String, Json>) {
    if !folds.is_empty() {
        out.insert("folds".into(), folds.iter().map(|chunk| fold(chunk, schema)).collect());
        out.insert("folds_missing".into(), missing.into());
    }
}

/// An interval of folded lives.
pub fn fold(chunk: &FoldChunk<'_>, schema: &Schema) -> Json {
    let sample = |of: Event<'_>| {
        let of = event(&of);
        json!({"class": of["class"], "fields": of["fields"]})
    };
    let rows = chunk.lives().map(|lives| {
        let s = lives.sums();
        let sums = [s.count, s.cross_cpu, s.elsewhere, s.length_sum, s.length_max, s.over_ms, s.over_s];
        let (alloc, free) = (lives.alloc(schema).map(sample), lives.free(schema).unwrap());
        assert_eq!(alloc.is_none(), lives.indices().0.is_none());
        let bins: Vec<(u32, u32)> = lives.bins().collect();
        json!({"alloc": alloc, "free": sample(free), "sums": sums, "bins": bins})
    });
    let rows: Vec<Json> = rows.collect();
    let info = chunk.info();
    assert_eq!(rows.len(), info.rows as usize);
    json!({"number": info.number, "begin": info.t_begin, "end": info.t_end, "threshold": info.threshold,
        "written_through": info.written_through, "events": info.events, "cpus": chunk.cpus(), "rows": rows})
}

fn unknown(chunks: impl Iterator<Item = ChunkRef>, out: &mut Map<String, Json>) {
    let kinds: Vec<Json> = chunks.filter(|c| !c.kind.is_known()).map(|c| json!(c.kind.to_string())).collect();
    if !kinds.is_empty() {
        out.insert("unknown".into(), kinds.into());
    }
}

/// Results of an [`Incremental`] reader.
pub fn of_incremental(
    reader: &Incremental,
    chunks: &[ChunkRef],
    found: &[(ChunkRef, EventChunk<'static>)],
    folds: &[FoldChunk<'static>],
) -> Json {
    let mut out = Map::new();
    let schema = reader.schema().unwrap();
    out.insert("format".into(), format(reader.header().unwrap()));
    out.insert("finished".into(), reader.is_finished().into());
    out.insert("chunks".into(), chunks.iter().map(|c| json!(c.kind.to_string())).collect());
    unknown(chunks.iter().copied(), &mut out);
    metadata(reader.metadata().unwrap(), reader.symbols(), &mut out);
    out.insert("classes".into(), classes(schema));
    put_folds(folds, reader.folds_missing(), schema, &mut out);
    let mut by_cpu: BTreeMap<u32, (Vec<Json>, Vec<Json>)> = BTreeMap::new();
    for (chunk, events) in found {
        let (losses, list) = by_cpu.entry(chunk.cpu.unwrap()).or_default();
        losses.extend(loss(events.cpu(), events.info()));
        list.extend((0..events.records().len()).map(|i| event(&Event::new(schema, events, i).unwrap())));
    }
    out.insert("losses".into(), by_cpu.values().flat_map(|(losses, _)| losses.clone()).collect());
    let events: Vec<Json> = by_cpu.into_values().flat_map(|(_, events)| events).collect();
    out.insert("merged".into(), merged(&events));
    out.insert("events".into(), events.into());
    out.into()
}

/// CPUs in merged order, the slow way.
fn merged(events: &[Json]) -> Json {
    let mut queues: BTreeMap<u64, std::collections::VecDeque<u64>> = BTreeMap::new();
    for event in events {
        queues.entry(event["cpu"].as_u64().unwrap()).or_default().push_back(event["time"].as_u64().unwrap());
    }
    let mut out = Vec::new();
    while let Some((_, cpu)) = queues.iter().filter_map(|(cpu, q)| Some((*q.front()?, *cpu))).min() {
        queues.get_mut(&cpu).unwrap().pop_front();
        out.push(json!(cpu));
    }
    out.into()
}

/// Results of the naive reader; it reads no classes and no print fmt, these are taken from `like`.
pub fn of_naive(file: &naive::File, like: &Json) -> Json {
    let mut out = file.metadata.clone();
    let order = if file.big { "big" } else { "little" };
    out.insert(
        "format".into(),
        json!({"major": 1, "minor": file.minor, "order": order, "long": file.long, "uuid": hex(&file.uuid)}),
    );
    out.insert("finished".into(), (file.kinds.last().is_some_and(|k| k == "TRLR")).into());
    out.insert("chunks".into(), file.kinds.clone().into());
    out.insert("classes".into(), like["classes"].clone());
    let mut losses: Vec<&naive::Loss> = file.losses.iter().collect();
    losses.sort_by_key(|l| l.cpu);
    let losses = losses.iter().map(|l| {
        let counted = if l.flags & 1 == 1 { l.count } else { 0 };
        json!({"cpu": l.cpu, "before": l.at, "counted": counted, "uncounted": l.flags & !13 != 0, "damaged": l.flags & 4 == 4, "overwritten": l.flags & 8 == 8})
    });
    out.insert("losses".into(), losses.collect());
    let events = file.events.values().flatten().map(|e| {
        let fields = naive_folds::fields(e);
        json!({"cpu": e.cpu, "time": e.time, "class": format!("{}:{}", e.system, e.name), "fields": fields})
    });
    let events: Vec<Json> = events.collect();
    out.insert("merged".into(), merged(&events));
    out.insert("events".into(), events.into());
    if let Some(lookups) = like.get("lookups") {
        out.insert("lookups".into(), naive_lookups::answers(lookups, file));
    }
    out.into()
}
