//! `-l N` has one meaning in all commands and forms of output: at most N rows, and 0 is all.

use std::fs;
use std::path::{Path, PathBuf};

use kmt_analyze::reports::REPORTS;
use serde_json::Value;

use super::model::{BASE, Crafted};
use crate::support::files::{Scratch, at, json, run, stderr, stdout};
use crate::support::model::{Event, What};

/// Captures that hold what some report needs: stacks, reclaim, and all the rest.
fn captures() -> [PathBuf; 3] {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1");
    [own.join("x86_64-6.18-stacks"), own.join("x86_64-6.1-reclaim"), sample]
}

/// Lists of rows that are not in rows of others, by their paths.
fn lists(value: &Value, path: &str, out: &mut Vec<(String, usize)>) {
    match value {
        Value::Object(object) => {
            object.iter().for_each(|(key, value)| lists(value, &format!("{path}/{key}"), out))
        }
        Value::Array(rows) if rows.iter().any(Value::is_object) => out.push((path.to_owned(), rows.len())),
        _ => {}
    }
}

/// The lists of a document, except those of `trace`, which all documents have.
fn lists_of(args: &[&str], file: &Path) -> Option<Vec<(String, usize)>> {
    let mut document: Value = serde_json::from_slice(&run(args, file).stdout).ok()?;
    document.as_object_mut()?.remove("trace");
    let mut out = Vec::new();
    lists(&document, "", &mut out);
    Some(out)
}

#[test]
fn json_and_csv_have_at_most_that_many_rows() {
    let mut lengths = 0;
    for capture in captures() {
        let scratch = Scratch::new();
        let file = scratch.convert(&capture);
        let named = REPORTS.iter().filter(|entry| entry.has_lines && entry.name != "who");
        for report in named.map(|entry| entry.name).chain(["all", "info", "account"]) {
            let Some(whole) = lists_of(&[report, "--json", "-l", "0"], &file) else { continue };
            for limit in ["1", "2"] {
                let most = limit.parse::<usize>().unwrap();
                let found = lists_of(&[report, "--json", "-l", limit], &file).unwrap();
                let long: Vec<_> = found.iter().filter(|(_, rows)| *rows > most).collect();
                assert!(long.is_empty(), "{report} -l {limit}: {long:?}");
                // Nothing but rows leaves.
                let shorter = whole.iter().filter(|(_, rows)| *rows > most).count();
                assert!(found.len() == whole.len() || report == "all", "{report}: {found:?}, {whole:?}");
                lengths += shorter;
            }
            if report != "all" {
                assert_eq!(lists_of(&[report, "--json"], &file).unwrap(), whole, "{report}");
            }
        }
        let csv = |args: &[&str]| stdout(&run(args, &file)).lines().count();
        for table in ["pages.by_gfp_flags", "pages.by_order_and_migratetype"] {
            assert_eq!(csv(&["pages", "--csv", "--table", table, "-l", "1"]), 2, "{table}");
            assert!(csv(&["pages", "--csv", "--table", table, "-l", "0"]) > 2, "{table}");
        }
        assert_eq!(csv(&["events", "--csv", "--table", "cells", "-l", "1"]), 2);
    }
    assert!(lengths > 100, "{lengths} lists were cut");
}

#[test]
fn zero_is_all() {
    let scratch = Scratch::new();
    let file = scratch.convert(&captures()[0]);
    let same: [(&[&str], &[&str]); 6] = [
        (&["dump", "-l", "0"], &["dump"]),
        (&["dump", "--follow", "-l", "0"], &["dump"]),
        (&["dump", "--json", "-l", "0", "--where", "size>256"], &["dump", "--json", "--where", "size>256"]),
        (&["account", "-l", "0"], &["account"]),
        (&["summary", "--compat", "trace-cmd-mem", "-l", "0"], &["summary", "--compat", "trace-cmd-mem"]),
        (
            &["summary", "--compat", "perf-kmem", "--caller", "-l", "0"],
            &["summary", "--compat", "perf-kmem", "--caller"],
        ),
    ];
    for (zero, all) in same {
        let (zero, all) = (stdout(&run(zero, &file)), stdout(&run(all, &file)));
        assert!(zero == all && all.lines().count() > 8, "{zero}\n{all}");
    }
    let lines = |n| {
        let timeline = json(&["timeline", "--json", "--by", "call-site", "-l", n], &file);
        at(&timeline, "/timeline/lines").as_array().unwrap().len()
    };
    assert!(lines("0") == lines("100000") && lines("0") > 10, "{}", lines("0"));
    let out = scratch.0.join("out").display().to_string();
    for (args, more) in
        [(&["export", "perfetto"][..], "100000"), (&["chart", "timeline", "--by", "call-site"][..], "300")]
    {
        let made = |n| {
            let output = run(&[args, &["--force", "-o", &out, "-l", n]].concat(), &file);
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            fs::read(&out).unwrap().len()
        };
        assert!(made("0") > made("1") && made("0").abs_diff(made(more)) < 8, "{args:?}");
    }
}

/// A list has at most 20,000 rows where no number is given, and as many as there are with 0.
#[test]
fn zero_is_all_beyond_the_usual_number_of_rows() {
    const TASKS: u64 = 20_500;
    let mut crafted = Crafted::new();
    for n in 0..TASKS {
        let what = What::Alloc { kmalloc: true, site: 1 + n, ptr: BASE + n * 64, req: 8, alloc: 8 };
        crafted.event(&Event { time: 1_000 + n, cpu: 0, pid: 7 + n as i64, what });
    }
    let scratch = Scratch::new();
    let file = scratch.0.join("many.kmt");
    fs::write(&file, crafted.writer.finish().unwrap()).unwrap();
    for (report, table) in [("events", "/cells"), ("tasks", "/tasks"), ("callers", "/callers")] {
        let rows = |args: &[&str]| {
            let document = json(&[&[report, "--json"], args].concat(), &file);
            at(&document, table).as_array().unwrap().len() as u64
        };
        assert_eq!(
            (rows(&[]), rows(&["-l", "0"]), rows(&["-l", "20400"])),
            (20_000, TASKS, 20_400),
            "{report}"
        );
        assert_eq!(rows(&["-l", "0", "--sort", "pid"][..if report == "events" { 4 } else { 2 }]), TASKS);
        let csv = run(&[report, "--csv", "--table", &table[1..], "-l", "0"], &file);
        assert_eq!(csv.status.code(), Some(0), "{report}: {}", stderr(&csv));
        assert_eq!(stdout(&csv).lines().count() as u64, TASKS + 1, "{report}");
    }
}
