//! Expected results of every reader for a vector, from the model and not from a reader.

use serde_json::{Map, Value as Json, json};

use crate::file::{File, UUID};
use crate::folds;
use crate::model::{Event, Fold, Layout, Op, Value};

/// Bytes as the vectors write them.
pub fn hex(bytes: &[u8]) -> Json {
    format!("hex:{}", bytes.iter().map(|b| format!("{b:02x}")).collect::<String>()).into()
}

fn fields(event: &Event, long: usize) -> Json {
    let values = event.all_values();
    let list = event.class.all_fields().into_iter().zip(values).map(|(field, value)| {
        let value = match value {
            Value::Number(n) if field.signed => {
                let shift = 64 - 8 * field.record_size(long) as u32;
                json!((n << shift) as i64 >> shift)
            }
            Value::Number(n) => json!(n),
            Value::Array(bytes) => hex(&bytes),
        };
        (field.name.to_owned(), value)
    });
    list.collect::<Map<_, _>>().into()
}

/// The events of each CPU in their order.
fn events(ops: &[Op], long: usize) -> Vec<Json> {
    let mut all: Vec<(u32, &Event)> = Vec::new();
    for op in ops {
        match op {
            Op::Event(cpu, event) => all.push((*cpu, event)),
            Op::SubBuffer(cpu, events, _) | Op::SubBufferWith(cpu, events, ..) => {
                all.extend(events.iter().map(|e| (*cpu, e)))
            }
            _ => {}
        }
    }
    all.sort_by_key(|(cpu, _)| *cpu);
    let row = |(cpu, event): (u32, &Event)| {
        let class = format!("{}:{}", event.class.system, event.class.name);
        json!({"cpu": cpu, "time": event.time, "class": class, "fields": fields(event, long)})
    };
    all.into_iter().map(row).collect()
}

/// CPUs in merged order: always the one whose next event is the oldest, the lowest of several.
pub fn merged(events: &[Json]) -> Vec<Json> {
    let mut queues: std::collections::BTreeMap<u64, std::collections::VecDeque<u64>> = Default::default();
    for event in events {
        let (cpu, time) = (event["cpu"].as_u64().unwrap_or(0), event["time"].as_u64().unwrap_or(0));
        queues.entry(cpu).or_default().push_back(time);
    }
    let mut out = Vec::new();
    loop {
        let next = queues.iter().filter_map(|(cpu, q)| Some((*q.front()?, *cpu))).min();
        let Some((_, cpu)) = next else { return out };
        queues.get_mut(&cpu).map(|q| q.pop_front());
        out.push(json!(cpu));
    }
}

fn losses(file: &File) -> Vec<Json> {
    let mut list = file.losses.clone();
    list.sort_by_key(|(cpu, at, _)| (*cpu, *at));
    let row = |(cpu, at, loss): &(u32, u64, crate::model::Loss)| json!({"cpu": cpu, "before": at, "counted": loss.counted, "uncounted": loss.uncounted, "damaged": loss.damaged, "overwritten": loss.overwritten});
    list.iter().map(row).collect()
}

/// What a reader finds in an interval.
pub fn fold(fold: &Fold, long: usize) -> Json {
    let event = |event: &Event| {
        let event = folds::sample(event);
        let class = format!("{}:{}", event.class.system, event.class.name);
        json!({"class": class, "fields": fields(&event, long)})
    };
    let rows = fold.rows.iter().map(|row| {
        json!({"alloc": row.alloc.as_ref().map(event), "free": event(&row.free), "sums": row.sums, "bins": row.bins})
    });
    let rows: Vec<Json> = rows.collect();
    json!({"number": fold.number, "begin": fold.begin, "end": fold.end, "threshold": fold.threshold,
        "written_through": fold.written_through, "events": fold.events(), "cpus": fold.cpus, "rows": rows})
}

/// Intervals that the numbers show to be missing.
fn missing<'f>(folds: impl Iterator<Item = &'f Fold>) -> u64 {
    let mut next = 0;
    let mut missing = 0;
    for fold in folds {
        missing += fold.number - next;
        next = fold.number + 1;
    }
    missing
}

/// Everything that the file tells.
pub fn expected(ops: &[Op], file: &File, layout: &Layout) -> Json {
    let mut out = Map::new();
    let minor = if layout.padded { 9 } else { 0 };
    let order = if layout.big { "big" } else { "little" };
    out.insert(
        "format".into(),
        json!({"major": 1, "minor": minor, "order": order, "long": layout.long, "uuid": hex(&UUID)}),
    );
    out.insert("finished".into(), layout.trailer.into());
    let kinds = file.chunks.iter().map(|c| String::from_utf8_lossy(&c.kind).into_owned());
    out.insert("chunks".into(), kinds.map(Json::from).collect());
    for op in ops {
        metadata(op, &mut out);
    }
    let classes = file.classes.iter().enumerate().map(|(i, class)| {
        let fields = class.all_fields().into_iter().zip(class.offsets(layout.long)).map(|(f, offset)| {
            json!([
                f.name,
                f.ctype,
                offset,
                f.record_size(layout.long),
                f.kind,
                f.signed,
                f.element_size(layout.long),
                f.role
            ])
        });
        let fields: Vec<Json> = fields.collect();
        json!({"number": i, "id": class.id, "name": format!("{}:{}", class.system, class.name),
            "meaning": class.meaning, "print": class.print, "fields": fields})
    });
    out.insert("classes".into(), classes.collect());
    out.insert("losses".into(), losses(file).into());
    let folds = ops.iter().filter_map(|op| if let Op::Fold(fold) = op { Some(fold) } else { None });
    if folds.clone().count() > 0 {
        out.insert("folds".into(), folds.clone().map(|fold| self::fold(fold, layout.long)).collect());
        out.insert("folds_missing".into(), missing(folds).into());
    }
    let events = events(ops, layout.long);
    out.insert("merged".into(), merged(&events).into());
    out.insert("events".into(), events.into());
    out.into()
}

fn metadata(op: &Op, out: &mut Map<String, Json>) {
    let mut push = |key: &str, value: Json| {
        let list = out.entry(key).or_insert_with(|| json!([]));
        list.as_array_mut().into_iter().for_each(|l| l.push(value.clone()));
    };
    match op {
        Op::Clock(name, ticks, comparable) => {
            out.insert("clock".into(), json!({"name": name, "ticks": ticks, "comparable": comparable}));
        }
        Op::Meta(pairs) => pairs.iter().for_each(|(key, value)| push("meta", json!([key, hex(value)]))),
        Op::File(name, contents, times) => {
            push("files", json!([name, hex(contents), times.map(|(first, last)| [first, last])]));
        }
        Op::Lines(lines) => lines.iter().for_each(|(address, function, file, line, depth)| {
            push("lines", json!([address, function, file, line, depth]));
        }),
        Op::Cgroups(cgroups) => cgroups.iter().for_each(|(time, id, pid, hierarchy, path)| {
            push("cgroups", json!([time, id, pid, hierarchy, path]));
        }),
        Op::Sums(sums) => sums.iter().for_each(|(times, call_site, function, meaning, numbers)| {
            push("sums", json!([times, call_site, function, meaning, numbers]));
        }),
        Op::Tasks(tasks) => tasks.iter().for_each(|(time, pid, tgid, comm)| {
            push("tasks", json!([time, pid, tgid, hex(comm.as_bytes())]));
        }),
        Op::Stats(stats) => {
            stats.iter().for_each(|(cpu, taken, numbers)| push("stats", json!([cpu, taken, numbers])));
            // Of rows of one CPU and `taken` the last one holds.
            let rows = out["stats"].as_array().cloned().unwrap_or_default();
            let is_last =
                |i: usize| rows[i + 1..].iter().all(|r| (&r[0], &r[1]) != (&rows[i][0], &rows[i][1]));
            out["stats"] = (0..rows.len()).filter(|&i| is_last(i)).map(|i| rows[i].clone()).collect();
        }
        Op::Symbols(owners, symbols, (start, end)) => {
            let owner = |i: u16| i.checked_sub(1).map(|i| owners[usize::from(i)].0);
            let symbols = symbols.iter().map(|(address, size, kind, i, name)| {
                json!([address, size, char::from(*kind).to_string(), owner(*i), name])
            });
            let all = out
                .entry("symbols")
                .or_insert_with(|| json!({"start": 0, "end": 0, "symbols": Vec::<Json>::new()}));
            all["symbols"].as_array_mut().into_iter().for_each(|list| list.extend(symbols.clone()));
            for (bound, value) in [("start", start), ("end", end)] {
                if *value != 0 {
                    all[bound] = json!(value);
                }
            }
        }
        Op::Unknown(kind, ..) => push("unknown", json!(String::from_utf8_lossy(kind))),
        _ => {}
    }
}

/// One line for each entry of the long lists: differences between versions can be read.
pub fn text(value: &Json) -> String {
    let Some(object) = value.as_object() else { return value.to_string() };
    let mut out = String::from("{\n");
    for (i, (key, value)) in object.iter().enumerate() {
        out += if i == 0 { "" } else { ",\n" };
        match value.as_array().filter(|list| list.iter().any(|v| v.is_object() || v.is_array())) {
            Some(list) => {
                let rows: Vec<String> = list.iter().map(|v| format!("  {v}")).collect();
                out += &format!("{:?}: [\n{}\n]", key, rows.join(",\n"));
            }
            None => out += &format!("{key:?}: {value}"),
        }
    }
    out + "\n}\n"
}
