//! New files of files with survivors and sums: parts of the time, anonymous ones; and exports of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use kmt_capture::survivors::SurvivorArgs;
use kmt_format::read::Trace;
use kmt_format::schema::Role;
use serde_json::Value;

use crate::support::files::{Scratch, at, data, json, run, stderr, stdout};
use crate::survivor_pairs::{MS, REPORTS, comparable, compare, difference, folded, seconds};

const ARGS: SurvivorArgs = SurvivorArgs { threshold: MS, interval: 50 * MS, memory: 8 << 20 };
const CAPTURES: [&str; 3] = ["x86_64-6.12", "s390x-6.1", "armhf-6.1"];

/// Runs a command that writes a file; returns the file, and what it reported.
fn make(command: &[&str], file: &Path) -> (PathBuf, String) {
    let stem = file.file_stem().unwrap().to_str().unwrap();
    let output = file.with_file_name(format!("{stem}.{}.kmt", command[0]));
    let made = run(&[command, &["--force", "-o", output.to_str().unwrap()]].concat(), file);
    assert!(matches!(made.status.code(), Some(0 | 3)), "{command:?}: {}", stderr(&made));
    (output, stderr(&made))
}

/// Begins and ends of intervals with their numbers, and of each CPU events and folded events.
fn intervals(file: &Path) -> Vec<(u64, u64, u64)> {
    let bytes = fs::read(file).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    assert!(trace.header().folded && trace.damages().is_empty() && trace.folds_missing() == 0);
    trace.folds().iter().map(|(_, info)| (info.number, info.t_begin, info.t_end)).collect()
}

fn is_verified(file: &Path) {
    let verified = run(&["verify"], file);
    assert!(verified.status.success(), "{}{}", stdout(&verified), stderr(&verified));
}

#[test]
fn a_slice_of_everything_has_the_same_events_and_sums() {
    for name in CAPTURES {
        let scratch = Scratch::new();
        let survivors = folded(&scratch.convert(&data(name)), &ARGS);
        let (slice, reported) = make(&["slice"], &survivors);
        assert!(reported.contains("; sums of ") && !reported.contains("moved"), "{reported}");
        is_verified(&slice);
        assert_eq!(intervals(&slice), intervals(&survivors), "{name}");
        assert_eq!(stdout(&run(&["dump"], &slice)), stdout(&run(&["dump"], &survivors)), "{name}");
        for (args, _) in REPORTS {
            let document = |file: &Path| {
                let mut document = json(&[args, &["--json"]].concat(), file);
                document["trust"] = Value::Null;
                document
            };
            assert_eq!(document(&slice), document(&survivors), "{name}: {args:?}");
        }
    }
}

#[test]
fn a_slice_has_whole_intervals() {
    for name in CAPTURES {
        let scratch = Scratch::new();
        let whole = scratch.convert(&data(name));
        let args = SurvivorArgs { interval: 5 * MS, ..ARGS };
        let survivors = folded(&whole, &args);
        let all = intervals(&survivors);
        let [_, first, .., last, _] = all.as_slice() else { panic!("{name}: {} intervals", all.len()) };
        let window = |from: u64, to: u64| format!("{}..{}", seconds(from), seconds(to));
        let within = window(first.1 + args.interval / 3, last.2 - args.interval / 3);
        let (slice, reported) = make(&["slice", "--time", &within], &survivors);
        assert!(reported.contains("the window was moved to whole intervals of sums"), "{reported}");
        is_verified(&slice);
        let kept: Vec<_> = intervals(&slice);
        let expected = (0..).zip(&all[1..all.len() - 1]).map(|(number, of)| (number, of.1, of.2));
        assert_eq!(kept, expected.collect::<Vec<_>>(), "{name}");
        // The same part of the file with every event.
        let (part, _) = make(&["slice", "--time", &window(first.1, last.2 - 1)], &whole);
        compare(name, &part, &slice, &REPORTS);
        let counts = |file: &Path| {
            let bytes = fs::read(file).unwrap();
            let trace = Trace::open(&bytes).unwrap();
            let mut cpus: std::collections::BTreeMap<u32, u64> =
                trace.streams().iter().map(|(cpu, stream)| (*cpu, stream.event_count())).collect();
            for (chunk, _) in trace.folds() {
                for &(cpu, events) in trace.read_fold(chunk).unwrap().cpus() {
                    *cpus.entry(cpu).or_default() += events;
                }
            }
            cpus
        };
        assert_eq!(counts(&slice), counts(&part), "{name}: events and folded events of each CPU");
    }
}

#[test]
fn sums_have_no_task_cpu_or_event_to_slice_by() {
    let scratch = Scratch::new();
    let survivors = folded(&scratch.convert(&data("x86_64-6.12")), &ARGS);
    for condition in [["--cpu", "0"], ["--pid", "1"], ["--event", "kmem:kmalloc"]] {
        let output = run(&[&["slice", "-o", "x.kmt"], &condition[..]].concat(), &survivors);
        assert!(!output.status.success() && stderr(&output).contains("died young"), "{output:?}");
    }
}

/// A file with an interval that cannot be read: `verify` finds it, and in a part of the file it is missing.
#[test]
fn an_unreadable_interval_is_missing_in_a_slice() {
    let scratch = Scratch::new();
    let survivors = folded(&scratch.convert(&data("x86_64-6.12")), &ARGS);
    let mut bytes = fs::read(&survivors).unwrap();
    let folds: Vec<_> = Trace::open(&bytes).unwrap().folds().to_vec();
    let sound = bytes.clone();
    for number in [1, folds.len() - 1] {
        bytes.clone_from(&sound);
        let (chunk, _) = folds[number];
        bytes[(chunk.body_offset() + chunk.body_len) as usize - 1] ^= 1;
        let damaged = scratch.0.join("damaged.kmt");
        fs::write(&damaged, &bytes).unwrap();
        assert_eq!(at_number(&json(&["verify", "--json"], &damaged), "/verify/damages_total"), 1);
        let (slice, _) = make(&["slice"], &damaged);
        is_verified(&slice);
        let made = fs::read(&slice).unwrap();
        assert_eq!(Trace::open(&made).unwrap().folds_missing(), 1, "interval {number} of {}", folds.len());
        let report = json(&["summary", "--json"], &slice);
        assert_eq!(at(&report, "/trace/lost_events_is_minimum"), true);
    }
}

fn at_number(value: &Value, pointer: &str) -> u64 {
    at(value, pointer).as_u64().unwrap()
}

/// Numbers of a field with that role in events and samples of sums.
fn numbers(file: &Path, roles: &[Role]) -> BTreeSet<u64> {
    let bytes = fs::read(file).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    let mut out = BTreeSet::new();
    for (chunk, _) in trace.folds() {
        let fold = trace.read_fold(chunk).unwrap();
        for event in fold.events().events(trace.schema()) {
            out.extend(
                roles.iter().filter_map(|&role| event.uint_with(role)).filter(|&number| number > 4096),
            );
        }
    }
    out
}

/// Leaves out names, addresses and times: what is left are counts and sizes.
fn blank(value: &mut Value) {
    match value {
        Value::String(text) => text.clear(),
        Value::Array(all) => all.iter_mut().for_each(blank),
        Value::Object(map) => {
            for key in ["trust", "selection", "first", "last", "start", "end", "file", "file_bytes"] {
                map.remove(key);
            }
            map.values_mut().for_each(blank);
        }
        _ => {}
    }
}

#[test]
fn anonymous_sums_have_other_addresses_and_names_and_the_same_numbers() {
    for name in CAPTURES {
        let scratch = Scratch::new();
        let survivors = folded(&scratch.convert(&data(name)), &ARGS);
        let (anonymous, reported) = make(&["anonymize", "--hide-symbols", "--hide-caches"], &survivors);
        assert!(reported.contains("sums of "), "{reported}");
        is_verified(&anonymous);
        let sites = |file: &Path| numbers(file, &[Role::CALL_SITE, Role::PTR, Role::PFN]);
        let (old, new) = (sites(&survivors), sites(&anonymous));
        assert!(old.len() > 10 && old.len() == new.len(), "{name}: {} and {}", old.len(), new.len());
        assert!(old.is_disjoint(&new), "{name}: {:x?}", old.intersection(&new).collect::<Vec<_>>());
        let bytes = fs::read(&anonymous).unwrap();
        for cache in ["maple_node", "dentry", "vm_area_struct", "filp"] {
            assert!(!bytes.windows(cache.len()).any(|part| part == cache.as_bytes()), "{name}: {cache}");
        }
        let lengths =
            |file: &Path| -> Vec<u64> { intervals(file).iter().map(|(_, begin, end)| end - begin).collect() };
        assert_eq!(lengths(&anonymous), lengths(&survivors), "{name}");
        for (args, left_out) in REPORTS {
            let document = |file: &Path| {
                let mut document = json(&[args, &["--json"]].concat(), file);
                blank(&mut document);
                comparable(&mut document, left_out);
                document
            };
            if let Some(at) = difference("", &document(&survivors), &document(&anonymous)) {
                panic!("{name}: {args:?}: {at}");
            }
        }
    }
}

fn export(args: &[&str], file: &Path) -> (String, String) {
    let output = run(&[&["export"], args].concat(), file);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    (stdout(&output), stderr(&output))
}

#[test]
fn exports_have_whole_numbers_or_report_what_they_lack() {
    let scratch = Scratch::new();
    let whole = scratch.convert(&data("x86_64-6.12"));
    let survivors = folded(&whole, &ARGS);
    let sorted = |args: &[&str], file: &Path| {
        let text = export(args, file).0;
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    // All objects are in these numbers.
    for args in [
        &["csv", "--of", "call-sites"][..],
        &["ndjson", "--of", "caches"],
        &["folded", "--by", "live"],
        &["csv", "--of", "callers"],
    ] {
        assert_eq!(sorted(args, &survivors), sorted(args, &whole), "{args:?}");
        assert!(!export(args, &survivors).1.contains("no rows"), "{args:?}");
    }
    // Rows of single objects and events are of survivors, and the others are counted.
    for args in [&["csv", "--of", "events"][..], &["ndjson", "--of", "objects"]] {
        let (rows, reported) = export(args, &survivors);
        assert!(rows.lines().count() < export(args, &whole).0.lines().count(), "{args:?}");
        assert!(reported.contains("died young and are only in sums"), "{args:?}: {reported}");
    }
    for args in [
        &["folded"][..],
        &["folded", "--by", "count"],
        &["folded", "--pages"],
        &["pprof"],
        &["dhat"],
        &["csv", "--of", "tasks"],
        &["csv", "--of", "call-sites", "--comm", "bash"],
        &["perfetto", "--comm", "bash"],
    ] {
        let output = run(&[&["export", "-o", "/dev/null", "--force"], args].concat(), &survivors);
        assert!(!output.status.success() && stderr(&output).contains("died young"), "{args:?}: {output:?}");
    }
}
