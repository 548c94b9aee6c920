//! `--sort` of the reports whose keys are their columns.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::support::files::{Scratch, json, reports, run, stderr, stdout};

/// A capture with pages and reclaim.
fn capture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.1-reclaim")
}

/// A capture with many tasks, two states of slabinfo, and objects freed on other CPUs.
fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1")
}

/// The first table of a document that has a key with several numbers: its path, the key.
fn sortable(value: &Value, path: &str) -> Option<(String, String)> {
    let Value::Object(object) = value else { return None };
    object.iter().find_map(|(key, value)| {
        let path = format!("{path}/{key}");
        let Some(rows) = value.as_array() else { return sortable(value, &path) };
        let first = rows.first()?.as_object()?;
        let differs = |key: &&String| {
            // As a name, it is of bytes.
            if *key == "live" {
                return false;
            }
            let numbers: Vec<u64> = rows.iter().filter_map(|row| row[key.as_str()].as_u64()).collect();
            numbers.len() == rows.len() && numbers.iter().any(|number| *number != numbers[0])
        };
        first.keys().rfind(differs).map(|key| (path, key.clone()))
    })
}

/// The report's own keys of a document, without the trace's.
fn own(document: &Value) -> Value {
    let frame = ["schema", "trace", "clock", "selection", "trust", "versions"];
    let object = document.as_object().unwrap().clone();
    let own: Map<String, Value> =
        object.into_iter().filter(|(key, _)| !frame.contains(&key.as_str())).collect();
    own.into()
}

/// Reports with --sort and keys of their own.
const OWN_KEYS: [&str; 9] =
    ["callers", "caches", "sizes", "tasks", "pages", "vmalloc", "percpu", "lifetimes", "waste"];

#[test]
fn every_report_sorts_by_a_key_of_its_tables() {
    let mut sorted = sorted_of(&capture());
    sorted.extend(sorted_of(&sample()));
    for report in ["latency", "peak", "events", "crosscpu", "fragmentation"] {
        assert!(sorted.contains(&report), "{report} is not among {sorted:?}");
    }
}

/// Checks the order of each report that has a table to sort; returns these reports.
fn sorted_of(input: &Path) -> Vec<&'static str> {
    let scratch = Scratch::new();
    let file = scratch.convert(input);
    let mut sorted = Vec::new();
    for report in reports().into_iter().filter(|report| !OWN_KEYS.contains(report) && *report != "all") {
        let output = run(&[report, "--json"], &file);
        let Ok(document) = serde_json::from_slice::<Value>(&output.stdout) else { continue };
        let Some((path, key)) = sortable(&own(&document), "") else { continue };
        if !stdout(&run(&[report, "--help"], &file)).contains("--sort <COLUMN>") {
            continue;
        }
        let whole = json(&[report, "--json", "--sort", &key], &file);
        let rows = |document: &Value| document.pointer(&path).unwrap().as_array().unwrap().clone();
        let numbers = |rows: &[Value]| rows.iter().map(|row| row[&key].as_u64().unwrap()).collect::<Vec<_>>();
        let (all, in_order) = (rows(&document), rows(&whole));
        let mut expected = numbers(&all);
        expected.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(numbers(&in_order), expected, "{report} {path} by {key}");
        // With fewer rows, the first of all of them.
        let part = rows(&json(&[report, "--json", "--sort", &key, "-l", "2"], &file));
        assert_eq!(numbers(&part), expected[..part.len()], "{report} {path} by {key}");
        let wrong = run(&[report, "--json", "--sort", "no_key_of_a_report"], &file);
        assert_eq!(wrong.status.code(), Some(1), "{report}");
        assert!(stderr(&wrong).contains(&key), "{report}: {}", stderr(&wrong));
        sorted.push(report);
    }
    sorted
}

/// Reports whose figures are parts of a row, and `diff`, which compares two traces.
#[test]
fn parts_of_rows_and_differences_are_sorted() {
    let scratch = Scratch::new();
    let file = scratch.convert(&sample());
    let numbers = |document: &Value, rows: &str, number: &str| -> Vec<f64> {
        let rows = document.pointer(rows).unwrap().as_array().unwrap();
        rows.iter().map(|row| row.pointer(number).and_then(Value::as_f64).unwrap_or(f64::MIN)).collect()
    };
    let memory = json(&["memory", "--by", "task", "--json", "--sort", "pages.alloc_events"], &file);
    let pages = numbers(&memory, "/groups", "/pages/alloc_events");
    assert!(pages.len() > 3 && pages[0] > pages[3] && pages.is_sorted_by(|a, b| a >= b), "{pages:?}");
    let slabinfo = json(&["slabinfo", "--json", "--sort", "change.active"], &file);
    let active = numbers(&slabinfo, "/slabinfo/caches", "/change/active");
    assert!(active.len() > 3 && active[0] > active[3] && active.is_sorted_by(|a, b| a >= b), "{active:?}");
    let windows = ["--time", "+0..+0.2", "--against", "+0.2..+0.4", "--all", "--json"];
    let diff = json(&[&["diff", "--sort", "bytes_live.change"][..], &windows].concat(), &file);
    let changes = numbers(&diff, "/diff/rows", "/bytes_live/change");
    assert!(
        changes.len() > 3 && changes[0] > changes[3] && changes.is_sorted_by(|a, b| a >= b),
        "{changes:?}"
    );
}

#[test]
fn screens_and_csv_are_sorted_too() {
    let scratch = Scratch::new();
    let file = scratch.convert(&capture());
    let table = ["peak", "--csv", "--table", "peak.callers", "-l", "3", "--sort"];
    let csv = stdout(&run(&[&table[..], &["live_objects"]].concat(), &file));
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let column = |name: &str| head.iter().position(|column| *column == name).unwrap();
    let rows: Vec<_> = lines.collect();
    let largest: Vec<u64> = rows.iter().map(|row| row[column("live")].parse().unwrap()).collect();
    assert!(largest.len() == 3 && largest.is_sorted_by(|a, b| a >= b) && largest[0] > 5, "{csv}");
    let by_bytes = stdout(&run(&[&table[..], &["live"]].concat(), &file));
    assert!(by_bytes != csv && by_bytes == stdout(&run(&[&table[..], &["bytes_live"]].concat(), &file)));
    let text = stdout(&run(&["peak", "--sort", "live_objects", "--wide", "-l", "3"], &file));
    let shown: Vec<&str> =
        text.lines().skip_while(|line| !line.starts_with("call site")).skip(1).take(3).collect();
    for (line, row) in shown.iter().zip(&rows) {
        assert!(line.starts_with(row[column("symbol")]), "{text}");
    }
    let wrong = run(&["peak", "--sort", "callers"], &file);
    assert!(wrong.status.code() == Some(1) && stderr(&wrong).contains("live_objects"), "{}", stderr(&wrong));
}

#[test]
fn tasks_are_sorted_by_pages() {
    let scratch = Scratch::new();
    let file = scratch.convert(&capture());
    for (key, number) in [("pages", "pages_alloc"), ("live_pages", "pages_live")] {
        let tasks = json(&["tasks", "--json", "--sort", key], &file);
        let pages: Vec<u64> = tasks["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["pages"][number].as_u64().unwrap_or(0))
            .collect();
        assert!(pages[0] > 0 && pages.is_sorted_by(|a, b| a >= b), "{key}: {pages:?}");
    }
    for args in [&["callers", "--sort", "pages"][..], &["tasks", "--by", "cpu", "--sort", "live_pages"]] {
        let output = run(args, &file);
        assert!(output.status.code() == Some(1) && stderr(&output).contains("pages --by"), "{args:?}");
    }
}

/// One list of names: `live` is of bytes in every report that has them, on screens, in JSON and as CSV.
#[test]
fn a_name_is_of_the_same_column_in_every_report() {
    let scratch = Scratch::new();
    let file = scratch.convert(&capture());
    for report in ["callers", "caches", "sizes", "tasks", "pages", "peak"] {
        let of = |name: &str, form: &[&str]| {
            let output = run(&[&[report, "--sort", name][..], form].concat(), &file);
            assert_eq!(output.status.code(), Some(0), "{report} {name}: {}", stderr(&output));
            stdout(&output)
        };
        for form in [&[][..], &["--json"], &["--csv"]] {
            assert_eq!(of("live", form), of("bytes_live", form), "{report} {form:?}");
        }
    }
    for (report, former) in [
        ("callers", "count"),
        ("lifetimes", "bytes"),
        ("lifetimes", "still_allocated"),
        ("waste", "churn"),
        ("waste", "live"),
        ("pages", "hits"),
        ("vmalloc", "bytes"),
    ] {
        let output = run(&[report, "--sort", former], &file);
        assert_eq!(output.status.code(), Some(2), "{report} {former}");
    }
}
