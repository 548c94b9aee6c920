//! What holds of every trace: of the ledger, of imports, of slices, of anonymized files. A failure is shrunk to few events.

use std::fs;

use kmt_analyze::failure::Outcome;
use kmt_analyze::in_process;
use proptest::prelude::*;
use serde_json::Value;

use super::model::{BASE, Crafted};
use crate::support::files::{Scratch, at, convert};
use crate::support::model::{self, Event, Target, What};

const FILE: &str = "property.kmt";

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::default() }
}

/// Output of a command on a file.
fn out(args: &[&str], file: &[u8]) -> Vec<u8> {
    let args: Vec<&str> = args.iter().copied().chain([FILE]).collect();
    let ran = in_process::run(&args, &[(FILE, file)]);
    assert!(ran.ended.is_ok(), "{args:?}: {:?}", ran.ended);
    ran.written
}

fn json(args: &[&str], file: &[u8]) -> Value {
    serde_json::from_slice(&out(args, file)).unwrap()
}

/// Events as JSON lines.
fn events(file: &[u8]) -> Vec<Value> {
    let lines = out(&["dump", "--format", "jsonl"], file);
    lines
        .split(|&b| b == b'\n')
        .filter(|l| !l.is_empty())
        .map(|l| serde_json::from_slice(l).unwrap())
        .collect()
}

fn assert_sound(file: &[u8]) {
    let ran = in_process::run(&["verify", FILE], &[(FILE, file)]);
    assert!(matches!(ran.ended, Ok(Outcome::Done)), "{:?}", ran.ended);
}

/// Events on few addresses, so that each meets others.
fn what() -> impl Strategy<Value = What> {
    let small = (0..12u64, 0..3u64).prop_map(|(n, page)| BASE + ((16 + page) << 12) + n * 0x180);
    let alloc = (any::<bool>(), 20..24u64, small.clone(), 1..384u64)
        .prop_map(|(kmalloc, site, ptr, req)| What::Alloc { kmalloc, site, ptr, req, alloc: 384 });
    let free = (any::<bool>(), small).prop_map(|(kfree, ptr)| What::Free { kfree, ptr });
    let page = (16..19u64, 0..2u64);
    prop_oneof![
        4 => alloc,
        4 => free,
        1 => (page.clone(), any::<bool>()).prop_map(|((pfn, order), movable)| What::PageAlloc { pfn, order, movable }),
        1 => page.prop_map(|(pfn, order)| What::PageFree { pfn, order }),
    ]
}

fn trace() -> impl Strategy<Value = Vec<Event>> {
    let step = prop_oneof![Just(0u64), 1..100_000u64, Just(1_000_000), Just(1_000_001)];
    prop::collection::vec((step, 0..2u64, 7..9i64, what()), 1..120).prop_map(|steps| {
        let mut time = 1_000_000;
        let event = |(step, cpu, pid, what)| {
            time += step;
            Event { time, cpu, pid, what }
        };
        steps.into_iter().map(event).collect()
    })
}

fn written(events: &[Event]) -> Vec<u8> {
    let mut crafted = Crafted::new();
    crafted.release("6.1.0");
    events.iter().for_each(|e| crafted.event(e));
    crafted.writer.finish().unwrap()
}

/// The same events in chunks of `len` events.
fn written_in_chunks(events: &[Event], len: usize) -> Vec<u8> {
    let mut crafted = Crafted::new();
    crafted.release("6.1.0");
    for events in events.chunks(len) {
        events.iter().for_each(|e| crafted.event(e));
        (0..2).for_each(|cpu| crafted.writer.flush(cpu).unwrap());
    }
    crafted.writer.finish().unwrap()
}

/// All numbers of a report about events, as text.
fn totals(file: &[u8]) -> String {
    let summary = json(&["summary", "--json"], file);
    format!("{} {}", summary["slab"], summary["pages"])
}

/// Totals without what a loss makes uncertain, and the ranges for that.
fn certain(file: &[u8]) -> Value {
    let summary = json(&["summary", "--json"], file);
    let mut totals = serde_json::json!([summary["slab"], summary["pages"]]);
    remove_uncertain(&mut totals);
    totals
}

fn remove_uncertain(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !key.contains("uncertain") && !key.contains("range"));
            map.values_mut().for_each(remove_uncertain);
        }
        Value::Array(values) => values.iter_mut().for_each(remove_uncertain),
        _ => {}
    }
}

proptest! {
    #![proptest_config(config(48))]

    /// The ledger and a slow one that was written from the rules agree.
    #[test]
    fn ledger_agrees_with_the_model(events in trace()) {
        let file = written(&events);
        let lines = String::from_utf8(out(&["dump", "--format", "jsonl"], &file)).unwrap();
        let target = Target { page_size: 4096, no_frame: u64::MAX, late_frees: false, spans: Vec::new() };
        let model = model::run(&model::events(&lines), &target);
        let summary = json(&["summary", "--json"], &file);
        let mut compared = 0;
        for (name, expected) in &model.numbers {
            // A section of which no event was recorded is null.
            let value = name.split('.').fold(&summary, |part, key| {
                if part.is_null() { part } else { at(part, &format!("/{key}")) }
            });
            if let Some(value) = value.as_u64() {
                prop_assert_eq!(value, *expected, "{}", name);
                compared += 1;
            }
        }
        prop_assert!(compared > 0);
    }

    /// Two slices that meet hold the events of the whole, each in its order; one of a CPU holds that CPU's.
    #[test]
    fn slices_add_up(events_of in trace(), cut in 0.0..1.0f64, cpu in 0..2u64) {
        let file = written(&events_of);
        let all = events(&file);
        let times = || events_of.iter().map(|event| event.time);
        let (earliest, latest) = (times().min().unwrap(), times().max().unwrap());
        prop_assume!(earliest < latest);
        // Each part has an event: an empty one is refused.
        let at = events_of[((events_of.len() - 1) as f64 * cut) as usize].time.min(latest - 1);
        let seconds = |time: u64| format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
        let (first, second) = (format!("0..{}", seconds(at)), format!("{}..99", seconds(at + 1)));
        let mut found = Vec::new();
        for time in [&first, &second] {
            let part = out(&["slice", "-o", "-", "--time", time], &file);
            assert_sound(&part);
            found.extend(events(&part));
        }
        prop_assert_eq!(&found, &all);
        let cpu_text = cpu.to_string();
        let part = out(&["slice", "-o", "-", "--cpu", &cpu_text], &file);
        let expected: Vec<Value> = all.into_iter().filter(|e| e["cpu"].as_u64() == Some(cpu)).collect();
        prop_assert_eq!(events(&part), expected);
    }

    /// What was written is read, however it lies in chunks. The recovered part of a cut file is the beginning of each
    /// CPU's events, with the totals of these.
    #[test]
    fn recovered_parts_are_beginnings(events_of in trace(), len in 1..40usize, cut in 0.0..1.0f64) {
        let file = written_in_chunks(&events_of, len);
        let all = events(&file);
        prop_assert_eq!(&all, &events(&written(&events_of)));
        let mut told: Vec<&Event> = events_of.iter().collect();
        told.sort_by_key(|e| (e.time, e.cpu));
        let told: Vec<(u64, i64)> = told.iter().map(|e| (e.cpu, e.pid)).collect();
        let read = all.iter().map(|e| (e["cpu"].as_u64().unwrap(), e["pid"].as_i64().unwrap()));
        prop_assert_eq!(read.collect::<Vec<_>>(), told);
        let whole = out(&["recover", "-o", "-"], &file);
        assert_sound(&whole);
        prop_assert_eq!(events(&whole), all.clone());
        prop_assert_eq!(totals(&whole), totals(&file));

        let cut = &file[..(file.len() as f64 * cut) as usize];
        let ran = in_process::run(&["recover", "-o", "-", FILE], &[(FILE, cut)]);
        // A file without its schema has nothing that can be read.
        if ran.ended.is_err() || ran.written.is_empty() {
            return Ok(());
        }
        let found = events(&ran.written);
        let mut kept = Vec::new();
        for cpu in 0..2 {
            let of = |events: &[Value]| -> Vec<Value> {
                events.iter().filter(|e| e["cpu"].as_u64() == Some(cpu)).cloned().collect()
            };
            let (part, whole) = (of(&found), of(&all));
            prop_assert!(whole.starts_with(&part), "CPU {}", cpu);
            kept.extend(events_of.iter().filter(|e| e.cpu == cpu).take(part.len()).cloned());
        }
        kept.sort_by_key(|e| (e.time, e.cpu));
        if !kept.is_empty() {
            // What was freed behind the end is unknown: some is uncertain that would not be in a whole file.
            prop_assert_eq!(certain(&ran.written), certain(&written(&kept)));
        }
    }

    /// An anonymized file has the same totals, and no address is where it was; the same seed gives the same events.
    #[test]
    fn anonymized_totals_are_the_same(events_of in trace(), seed in 0..1_000u64) {
        let file = written(&events_of);
        let seed = seed.to_string();
        let anonymize = || out(&["anonymize", "-o", "-", "--seed", &seed], &file);
        let other = anonymize();
        assert_sound(&other);
        prop_assert_eq!(events(&anonymize()), events(&other));
        prop_assert_eq!(totals(&other), totals(&file));
        let kinds = |file: &[u8]| -> Vec<Value> { events(file).into_iter().map(|mut e| e["event"].take()).collect() };
        prop_assert_eq!(kinds(&other), kinds(&file));
        let addresses = |file: &[u8]| -> Vec<Value> {
            let lines = events(file).into_iter().map(|mut e| e["fields"]["ptr"].take());
            lines.filter(|ptr| !ptr.is_null()).collect()
        };
        for (before, after) in addresses(&file).iter().zip(addresses(&other)) {
            prop_assert_ne!(before, &after);
        }
    }
}

proptest! {
    #![proptest_config(config(24))]

    /// What is printed and read again prints the same.
    #[test]
    fn printed_events_are_imported(events_of in trace()) {
        let printed = out(&["dump"], &written(&events_of));
        let scratch = Scratch::new();
        let (input, output) = (scratch.0.join("trace.txt"), scratch.0.join("trace.kmt"));
        fs::write(&input, &printed).unwrap();
        convert(&input, &output, None).unwrap();
        let again = out(&["dump"], &fs::read(&output).unwrap());
        prop_assert_eq!(String::from_utf8(again).unwrap(), String::from_utf8(printed).unwrap());
    }
}
