//! The naive reader's folded lives. Section "FOLD".

use std::collections::BTreeMap;

use super::naive::{Bytes, Class, Event, File, Shape, Value};
use super::naive_events::events;
use super::naive_metadata::hex;
use serde_json::{Map, Value as Json, json};

/// The fields of an event, as the conformance vectors write them.
pub fn fields(event: &Event) -> Json {
    let fields = event.fields.iter().zip(&event.signed).map(|((name, value), signed)| {
        let value = match value {
            Value::Number(n) if *signed => json!(*n as i64),
            Value::Number(n) => json!(n),
            Value::Bytes(bytes) => hex(bytes),
            Value::Opaque => Json::Null,
        };
        (name.clone(), value)
    });
    fields.collect::<Map<String, Json>>().into()
}

/// Takes in a chunk of folded lives; panics if anything in it is out of place.
pub fn fold(
    body: Bytes<'_>,
    classes: &BTreeMap<usize, Class>,
    shapes: &BTreeMap<usize, Shape>,
    file: &mut File,
) {
    let [head_len, flags] = [0, 4].map(|at| body.u32(at));
    let [number, begin, end, threshold] = [8, 16, 24, 32].map(|at| body.number(at, 8));
    let [rows, row_len, cpus, cpu_len, bins, bin_len, rows_at, cpus_at, bins_at, events_at] =
        [40, 44, 48, 52, 56, 60, 64, 68, 72, 76].map(|at| body.u32(at));
    let event_count = body.number(80, 8);
    assert!(head_len >= 88 && head_len <= body.data.len() && begin <= end);
    assert!(row_len >= 72 && cpu_len >= 16 && bin_len >= 8);
    let mut own = File { big: file.big, long: file.long, ..File::default() };
    events(body.from(events_at, body.data.len() - events_at), 0, classes, shapes, &mut own);
    let events = own.events.remove(&0).unwrap_or_default();
    let event = |index: usize| {
        let event = &events[index];
        json!({"class": format!("{}:{}", event.system, event.name), "fields": fields(event)})
    };
    let (mut list, mut last_end) = (Vec::new(), 0);
    for at in (0..rows).map(|i| rows_at + i * row_len) {
        let sums = [8, 16, 24, 32, 40, 48, 56].map(|field| body.number(at + field, 8));
        let [count, cross_cpu, elsewhere, _, _, over_ms, over_s] = sums;
        let (first, own) = (body.u32(at + 64), body.u32(at + 68));
        assert!(first >= last_end && first + own <= bins, "bins of a row");
        last_end = first + own;
        let bins = (first..first + own).map(|i| bins_at + i * bin_len);
        let bins: Vec<[usize; 2]> = bins.map(|at| [body.u32(at), body.u32(at + 4)]).collect();
        assert!(bins.iter().all(|bin| bin[0] < 1_920));
        let alloc = match body.u32(at) {
            0xffff_ffff => {
                assert!(sums[1..] == [0; 6] && bins.is_empty(), "frees of NULL have a number only");
                Json::Null
            }
            index => {
                let in_bins = bins.iter().map(|bin| bin[1] as u64).sum::<u64>();
                assert_eq!(in_bins, count, "bins add up");
                assert!(
                    cross_cpu <= elsewhere && elsewhere <= count && over_s <= over_ms && over_ms <= count
                );
                event(index)
            }
        };
        list.push(json!({"alloc": alloc, "free": event(body.u32(at + 4)), "sums": sums, "bins": bins}));
    }
    let cpus = (0..cpus).map(|i| cpus_at + i * cpu_len).map(|at| (body.u32(at), body.number(at + 8, 8)));
    let cpus: Vec<(usize, u64)> = cpus.collect();
    let sum = cpus.iter().fold(0u64, |sum, cpu| sum.saturating_add(cpu.1));
    assert_eq!(sum, event_count, "events of all CPUs");
    let found = json!({"number": number, "begin": begin, "end": end, "threshold": threshold,
        "written_through": flags & 1 == 1, "events": event_count, "cpus": cpus, "rows": list});
    let folds = file.metadata.entry("folds").or_insert_with(|| json!([])).as_array_mut().unwrap();
    let next = folds.last().map_or(0, |fold| fold["number"].as_u64().unwrap() + 1);
    folds.push(found);
    let missing = number.checked_sub(next).expect("numbers rise");
    let missing = missing + file.metadata.get("folds_missing").and_then(Json::as_u64).unwrap_or(0);
    file.metadata.insert("folds_missing".into(), missing.into());
}
