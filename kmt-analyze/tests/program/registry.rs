//! The registry of reports, walked: whoever adds a report has text, JSON, CSV, help, manual and docs of it, also where a
//! trace is empty or lossy.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use kmt_analyze::reports::{Entry, REPORTS};
use serde_json::Value;

use crate::support::files::{Scratch, stderr, stdout};

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kmt-analyze")).args(args).output().unwrap()
}

/// Captures that hold what some report needs: stacks, reclaim, and all the rest.
fn captures() -> [PathBuf; 3] {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let sample = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1");
    [own.join("x86_64-6.18-stacks"), own.join("x86_64-6.1-reclaim"), sample]
}

/// Arguments that a report cannot do without.
fn needed(entry: &Entry) -> &'static [&'static str] {
    if entry.name == "who" { &["0xffff888000010060"] } else { &[] }
}

fn report(entry: &Entry, more: &[&str], file: &str) -> Output {
    let args = [&[entry.name], needed(entry), more, &[file]].concat();
    run(&args)
}

/// Definitions of docs/json.schema.json.
fn definitions() -> Value {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/json.schema.json");
    let mut schema: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    schema["$defs"].take()
}

/// A report either answers, or says in one line why not, and in its document as well.
fn check(entry: &Entry, file: &str) {
    let text = report(entry, &[], file);
    let json = report(entry, &["--json"], file);
    assert_eq!(text.status.code(), json.status.code(), "{} {file}", entry.name);
    let document: Value = serde_json::from_str(&stdout(&json)).unwrap();
    assert_eq!(document["schema"]["report"], entry.name);
    assert_eq!(document["schema"]["version"], entry.version);
    match text.status.code() {
        Some(0 | 3) => {
            assert!(!stdout(&text).trim().is_empty(), "{} {file}", entry.name);
            assert!(document.as_object().unwrap().len() > 5 && document.get("refused").is_none());
        }
        Some(1) => {
            assert!(stderr(&text).contains(&format!("no {}", entry.title)), "{}", stderr(&text));
            assert!(document["refused"].as_str().is_some_and(|why| why.len() > 20), "{} {file}", entry.name);
            assert_eq!(stdout(&text), "", "{} {file}", entry.name);
        }
        code => panic!("{} {file}: {code:?} {}", entry.name, stderr(&text)),
    }
}

#[test]
fn every_report_answers_or_says_why_not() {
    let scratch = captures().map(|_| Scratch::new());
    let vectors = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../format-spec/vectors");
    let vector = |name: &str| vectors.join(name).display().to_string();
    let mut files = vec![vector("empty-le64.kmt"), vector("losses-le64.kmt")];
    let converted = scratch.iter().zip(captures()).map(|(scratch, capture)| scratch.convert(&capture));
    files.extend(converted.map(|file| file.display().to_string()));
    for entry in REPORTS {
        files.iter().for_each(|file| check(entry, file));
    }
    // Each of them has something to say of one file at least; snapshots of /proc/slabinfo with their times come from live
    // recordings alone (tests/live/frees), and no capture has areas (tests/program/areas).
    let others = ["slabinfo", "vmalloc", "percpu", "baseline"];
    for entry in REPORTS.iter().filter(|entry| !others.contains(&entry.name)) {
        let answers = |file: &&String| matches!(report(entry, &[], file).status.code(), Some(0 | 3));
        assert!(files.iter().any(|file| answers(&file)), "{} never answers", entry.name);
    }
}

#[test]
fn every_report_is_in_help_manual_and_docs() {
    let (help, manual, docs) = (stdout(&run(&["--help"])), stdout(&run(&["man"])), definitions());
    let completions = stdout(&run(&["completions", "bash"]));
    for entry in REPORTS {
        let name = entry.name;
        assert!(help.contains(&format!("  {name} ")), "{name} is not in --help");
        assert!(manual.contains(&name.replace('-', "\\-")), "{name} is not in the manual");
        assert!(completions.contains(name), "{name} has no completion");
        let schema = &docs[name]["properties"]["schema"]["properties"];
        assert_eq!(schema["report"]["const"], name, "{name} is not in docs/json.schema.json");
        assert_eq!(schema["version"]["const"], entry.version, "{name}");
        let own = stdout(&run(&[name, "--help"]));
        assert!(own.starts_with(entry.about), "{name}: {own}");
        assert!(own.contains("--json") && own.contains("--time"), "{name}: {own}");
        assert!(own.contains("--lines") || !entry.has_lines, "{name}: {own}");
    }
}

#[test]
fn outputs_to_compare_have_every_report() {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../.ci/outputs");
    let script = fs::read_to_string(script).unwrap();
    for entry in REPORTS {
        assert!(script.split([' ', '\n', '\'']).any(|word| word == entry.name), "{}", entry.name);
    }
}

#[test]
fn every_report_that_all_has_is_a_table_too() {
    let scratch = Scratch::new();
    let file = scratch.convert(&captures()[0]);
    let file = file.to_str().unwrap();
    let keys = definitions()["all"]["allOf"][1]["properties"].take();
    let all: Value = serde_json::from_str(&stdout(&run(&["all", "--json", file]))).unwrap();
    for entry in REPORTS.iter().filter(|entry| (entry.with_defaults)().is_some()) {
        let usual = (entry.with_defaults)().unwrap();
        assert_eq!(all["versions"][usual.key()], entry.version, "{}", entry.name);
        assert!(all.get(usual.key()).is_some(), "{} is not in all", entry.name);
        assert!(keys[usual.key()].is_object(), "{} is not in docs/json.schema.json, all", usual.key());
        // Rows of events are called events.
        let name = if entry.name == "events" { "event-counts" } else { entry.name };
        let csv = run(&["export", "csv", "--of", name, file]);
        let is_refused = all["refused"].get(usual.key()).is_some();
        match csv.status.code() {
            Some(0 | 3) => assert!(stdout(&csv).lines().next().is_some(), "{name}"),
            Some(1) if is_refused => assert!(stderr(&csv).contains("no "), "{name}: {}", stderr(&csv)),
            // Rows without a table; several tables: the message names them.
            Some(1) => {
                let says = stderr(&csv);
                assert!(says.contains("no leak report") || says.contains("--table"), "{name}: {says}");
            }
            code => panic!("{name}: {code:?}"),
        }
    }
}
