//! Times on the command line where the clock counts ticks: with a unit they need the length of a tick.

use std::fs;
use std::path::{Path, PathBuf};

use kmt_format::write::Writer;
use kmt_format::{Compression, Limits};
use serde_json::Value;

use crate::support::files::{Scratch, data, json, run, stderr, stdout};

/// The capture as it would be with the time stamp counter as its clock.
fn counted_in_ticks(scratch: &Scratch) -> PathBuf {
    let file = scratch.changed("x86_64-6.1", |capture| {
        let clock = ["trace_clock", "tracefs/trace_clock"].map(|name| capture.join(name));
        let clock = clock.iter().find(|path| path.exists()).unwrap();
        let text = fs::read_to_string(clock).unwrap().replace(['[', ']'], "");
        fs::write(clock, text.replace("x86-tsc", "[x86-tsc]")).unwrap();
    });
    let ticks = file.with_file_name("ticks.kmt");
    fs::rename(file, &ticks).unwrap();
    ticks
}

/// Adds pairs of ticks and times of day: 2.5 ticks a nanosecond.
fn add_pairs(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let mut writer = Writer::append_to(&bytes, Limits::default(), Compression::None).unwrap();
    let second = 1_000_000_000_u64;
    for number in 0..3 {
        let pair = format!("{} {} 1000", number * second * 5 / 2, number * second);
        writer.add_metadata(&[("clock.pair", pair.as_bytes())]).unwrap();
    }
    bytes.extend(writer.finish().unwrap());
    fs::write(file, bytes).unwrap();
}

fn refused(args: &[&str], file: &Path) {
    let output = run(args, file);
    let (code, text) = (output.status.code(), stderr(&output));
    assert_eq!(code, Some(1), "{args:?}: {text}{}", stdout(&output));
    assert_eq!(stdout(&output), "", "{args:?}");
    assert!(text.contains("the clock x86-tsc counts ticks") && text.contains("hint: "), "{args:?}: {text}");
}

fn allocations(condition: &str, file: &Path) -> u64 {
    json(&["summary", "--json", "--where", condition], file)["slab"]["alloc_events"].as_u64().unwrap()
}

#[test]
fn a_time_with_a_unit_is_refused_where_a_tick_has_no_length() {
    let scratch = Scratch::new();
    let file = counted_in_ticks(&scratch);
    let out = scratch.0.join("out").display().to_string();
    for args in [
        &["lifetimes", "--where", "lifetime>1ms"][..],
        &["all", "--time", "+0.5.."],
        &["callers", "--csv", "--where", "lifetime<1us"],
        &["export", "csv", "--of", "objects", "--where", "lifetime>1ms", "-o", &out],
        &["export", "csv", "--of", "events", "--time", "+0.5..", "-o", &out],
        &["temporary"],
        &["temporary", "--within", "1ms"],
        &["latency", "--threshold", "1ms"],
        &["summary", "--time", "+0.5..+1"],
        &["summary", "--time", "+1ms.."],
        &["dump", "--time", "+1ms.."],
        &["slice", "--time", "+1ms..", "-o", &out],
        &["callers", "--at", "+1.5"],
    ] {
        refused(args, &file);
    }
    assert!(!scratch.0.join("out").exists());
    // A plain number is ticks.
    let other = Scratch::new();
    let nanoseconds = other.convert(&data("x86_64-6.1"));
    assert!(allocations("lifetime>1000000", &file) > 0);
    assert_eq!(allocations("lifetime>1000000", &file), allocations("lifetime>1ms", &nanoseconds));
    // 1 ms and 1 s have no number of ticks.
    let without_bounds = |row: &Value| {
        let mut row = row.clone();
        ["outlive_1ms", "outlive_1s"].iter().for_each(|key| drop(row["survival"][*key].take()));
        row
    };
    let within = |file: &Path, bound| -> Vec<Value> {
        let report = json(&["temporary", "--json", "--within", bound], file);
        report["temporary"].as_array().unwrap().iter().map(without_bounds).collect()
    };
    assert_eq!(within(&file, "100000"), within(&nanoseconds, "100us"));
    let window = run(&["summary", "--time", "+0..+1000000000"], &file);
    assert_eq!(window.status.code(), Some(0), "{}", stderr(&window));
}

#[test]
fn a_time_with_a_unit_is_converted_where_ticks_were_measured() {
    let scratch = Scratch::new();
    let file = counted_in_ticks(&scratch);
    let expected = allocations("lifetime>2500000", &file);
    add_pairs(&file);
    assert!(expected > 0);
    assert_eq!(allocations("lifetime>1ms", &file), expected);
    assert_eq!(allocations("lifetime>1min", &file), 0);
}

#[test]
fn each_side_of_a_comparison_has_its_own_unit() {
    let (scratch, other) = (Scratch::new(), Scratch::new());
    let ticks = counted_in_ticks(&scratch).display().to_string();
    let nanoseconds = other.convert(&data("x86_64-6.1"));
    for (args, file, (a, b)) in [
        (["diff", &ticks], nanoseconds.as_path(), ("ticks", "s")),
        (["diff", nanoseconds.to_str().unwrap()], Path::new(&ticks), ("s", "ticks")),
    ] {
        let text = stdout(&run(&args, file));
        let side =
            |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
        assert!(side("A: ").ends_with(&format!(" {a}")) && side("B: ").ends_with(&format!(" {b}")), "{text}");
        assert!(text.contains("clocks have different units"), "{text}");
    }
    let rates = run(&["diff", "--per-second", &ticks], &nanoseconds);
    assert_eq!(rates.status.code(), Some(1));
    assert!(stderr(&rates).contains("ticks of unknown length"), "{}", stderr(&rates));
}
