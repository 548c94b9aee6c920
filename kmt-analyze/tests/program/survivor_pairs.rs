//! Pairs of a file with every event and the file of survivors made of it, and comparisons of the reports of both.
//!
//! The tests are in `survivors` and `survivor_reports`.

use std::fs;
use std::path::{Path, PathBuf};

use kmt_capture::convert::{Limits, Options, convert};
use kmt_capture::record::Symbols;
use kmt_capture::survivors::SurvivorArgs;
use kmt_format::read::Trace;
use serde_json::Value;

use crate::support::files::{json, run, stdout};

/// Nanoseconds of a millisecond.
pub const MS: u64 = 1_000_000;

/// A report with its options, and the keys that are left out of the comparison.
pub type Compared = (&'static [&'static str], &'static [&'static str]);

/// Reports of all objects and pages.
pub const REPORTS: [Compared; 5] = [
    // Whether an address had events before an unmatched free is known only where all of them are in the file. Ranges of lost
    // events are found by leaving out more.
    (&["summary"], &["frees_allocated_before", "frees_untraced_birth", "ranges"]),
    (&["callers", "-l", "0"], &[]),
    (&["caches", "-l", "0"], &[]),
    (&["sizes", "-l", "0"], &[]),
    (&["lifetimes", "-l", "0"], &[]),
];

/// The file of survivors of a file with every event.
pub fn folded(whole: &Path, args: &SurvivorArgs) -> PathBuf {
    let output = whole.with_extension("survivors.kmt");
    let options = Options {
        input: whole.to_owned(),
        output: output.clone(),
        force: true,
        compression: kmt_format::Compression::None,
        symbols: Symbols::Used,
        verbatim: false,
        quiet: true,
        instance: None,
        boot: None,
        survivors: Some(*args),
        limits: Limits::default(),
    };
    convert(&options).unwrap();
    output
}

/// Leaves out of a document what is about the file, not about memory.
pub fn comparable(value: &mut Value, left_out: &[&str]) {
    match value {
        Value::Object(map) => {
            for key in left_out.iter().chain(&[
                "events",
                "per_cpu",
                "file",
                "bytes_per_event",
                "file_bytes",
                "folded_events",
            ]) {
                map.remove(*key);
            }
            map.values_mut().for_each(|value| comparable(value, left_out));
        }
        Value::Array(all) => {
            // Sparse slabs need the address of each object.
            all.retain(|row| row.get("kind").is_none_or(|kind| kind != "sparse slabs"));
            all.iter_mut().for_each(|value| comparable(value, left_out));
            // Rows with equal keys come in the order of their first events.
            all.sort_by_cached_key(Value::to_string);
        }
        _ => {}
    }
}

/// The first place where two documents differ.
pub fn difference(path: &str, expected: &Value, found: &Value) -> Option<String> {
    match (expected, found) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            a.iter().find_map(|(key, value)| difference(&format!("{path}.{key}"), value, &b[key]))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            (0..).zip(a.iter().zip(b)).find_map(|(at, (a, b))| difference(&format!("{path}[{at}]"), a, b))
        }
        (a, b) if a == b => None,
        (a, b) => Some(format!("{path}: {a} of all events, {b} of survivors")),
    }
}

/// The same rows of both files in these reports; a report that refuses one refuses both.
pub fn compare(name: &str, whole: &Path, survivors: &Path, reports: &[Compared]) {
    for (args, left_out) in reports {
        let document = |file: &Path| {
            let mut document = json(&[*args, &["--json"]].concat(), file);
            comparable(&mut document, left_out);
            document
        };
        if let Some(at) = difference("", &document(whole), &document(survivors)) {
            panic!("{name}: {}: {at}", args[0]);
        }
    }
}

/// A part of the time: it is moved to the begin and end of intervals.
pub fn compare_windows(name: &str, whole: &Path, survivors: &Path, interval: u64, reports: &[Compared]) {
    let bytes = fs::read(survivors).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    let folds: Vec<_> = trace.folds().iter().map(|(_, info)| *info).collect();
    let [_, first, .., last, _] = folds.as_slice() else { return };
    let window = |from: u64, to: u64| format!("{}..{}", seconds(from), seconds(to));
    let within = window(first.t_begin + interval / 3, last.t_end - interval / 3);
    let at_borders = window(first.t_begin, last.t_end - 1);
    for (args, left_out) in reports {
        let document = |file: &Path, window: &str| {
            let mut document = json(&[*args, &["--json", "--time", window]].concat(), file);
            comparable(&mut document, &[*left_out, &["options"]].concat());
            document
        };
        if let Some(at) = difference("", &document(whole, &at_borders), &document(survivors, &within)) {
            panic!("{name}: {args:?}: {within} is {at_borders}: {at}");
        }
    }
    let text = stdout(&run(&["summary", "--time", &within], survivors));
    assert!(text.contains("moved to the begin and end of intervals"), "{text}");
}

/// Steps of whole intervals, by kind, call site and cache.
pub fn compare_timelines(name: &str, whole: &Path, survivors: &Path, interval: u64) {
    let all = json(&["timeline", "--json"], whole);
    let number = |key: &str| all["timeline"][key].as_u64().unwrap();
    let (start, end) = (number("start"), number("start") + number("step") * number("steps"));
    let first = start.next_multiple_of(interval);
    let steps = (end.saturating_sub(first) / interval).min(40);
    let window = format!("{}..{}", seconds(first), seconds(first + steps * interval - 1));
    let steps = steps.to_string();
    for key in ["kind", "call-site", "cache"].into_iter().filter(|_| steps != "0") {
        let args = ["timeline", "--json", "-l", "0", "--by", key, "--steps", &steps, "--time", &window];
        let document = |file: &Path| json(&args, file)["timeline"].take();
        if let Some(at) = difference("", &document(whole), &document(survivors)) {
            panic!("{name}: {args:?}: {at}");
        }
    }
}

/// Events in the file, and events that were folded.
pub fn counts(file: &Path) -> (u64, u64) {
    let bytes = fs::read(file).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    assert!(trace.header().folded && trace.damages().is_empty());
    let folded = trace.folds().iter().map(|(chunk, _)| {
        let chunk = trace.read_fold(chunk).unwrap();
        chunk.cpus().iter().map(|(_, events)| events).sum::<u64>()
    });
    (trace.event_count(), folded.sum())
}

/// A time as `--time` takes it.
pub fn seconds(time: u64) -> String {
    format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000)
}
