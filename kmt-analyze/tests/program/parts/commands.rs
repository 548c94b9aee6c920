//! Commands on the files of one recording: each reads them as one trace, or refuses them with a command line that works.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use kmt_format::edit::Join;
use kmt_format::kernel::ByteOrder;
use kmt_format::read::Trace;
use kmt_format::write::{Writer, WriterOptions};
use serde_json::Value;

use super::{LOST, program, recording};
use crate::source::objects;
use crate::support::files::{Scratch, at, stderr, stdout};

const FILES: [&str; 4] = ["a-2.kmt", "a-4.kmt", "a-1.kmt", "a-3.kmt"];

/// A recording in four files, one of which has a loss; and in one file, `w.kmt`.
fn folder() -> Scratch {
    let scratch = Scratch::new();
    for (number, part) in recording(&[[3, 5], [3, 12], [9, 12]], 7).iter().enumerate() {
        fs::write(scratch.0.join(format!("a-{}.kmt", number + 1)), part).unwrap();
    }
    fs::write(scratch.0.join("w.kmt"), &recording(&[], 7)[0]).unwrap();
    scratch
}

fn on(scratch: &Scratch, words: &[&str], files: &[&str]) -> Output {
    program(scratch, &[words, files].concat())
}

/// Runs the line that stands between backquotes, and begins with the name of the program, in a message.
fn run_hint(scratch: &Scratch, message: &str) -> Output {
    let mut lines = message.split('`').filter_map(|text| text.strip_prefix("kmt-analyze "));
    let line = lines.next_back().unwrap_or_else(|| panic!("no line: {message}"));
    program(scratch, &line.split(' ').collect::<Vec<_>>())
}

/// Text or a file that a command makes, without the name of its input.
#[test]
fn commands_that_read_a_trace_read_its_files() {
    let scratch = folder();
    for words in [
        &["dump"][..],
        &["dump", "--format", "jsonl", "--pid", "71"],
        &["callers", "--csv"],
        &["export", "csv", "--of", "objects"],
        &["export", "folded"],
        &["export", "perfetto"],
        &["chart", "timeline"],
        &["account", "--json"],
        &["reconcile", "--json"],
        &["summary", "--compat", "perf-kmem"],
    ] {
        let (found, expected) = (on(&scratch, words, &FILES), on(&scratch, words, &["w.kmt"]));
        assert_eq!(found.status.code(), expected.status.code(), "{words:?}: {}", stderr(&found));
        assert!(matches!(found.status.code(), Some(0 | 3)), "{words:?}: {}", stderr(&found));
        assert!(!found.stdout.is_empty(), "{words:?}");
        // A chart has the name of its file.
        let found = stdout(&found).replace("4 parts of a.kmt", "w.kmt");
        assert!(found == stdout(&expected), "{words:?}: {found}");
    }
    // The page has the name of its file.
    let page = |files: &[&str]| stdout(&on(&scratch, &["report"], files));
    assert!(page(&FILES).contains("4 parts of a.kmt") && page(&["w.kmt"]).contains("w.kmt"));
}

/// Makes a file of both, and compares the events and figures.
#[test]
fn files_made_of_the_files_are_those_of_the_whole() {
    let scratch = folder();
    for words in [
        &["slice"][..],
        &["slice", "--cpu", "1"],
        &["anonymize", "--seed", "5"],
        &["symbolize", "--vmlinux", objects().join("vmlinux.x86_64").to_str().unwrap()],
    ] {
        let make = |to: &str, files: &[&str]| {
            let output = on(&scratch, &[words, &["--force", "-o", to]].concat(), files);
            (output.status.code(), stderr(&output).replace(to, ""))
        };
        let (of_parts, of_whole) = (make("p.kmt", &FILES), make("o.kmt", &["w.kmt"]));
        if words[0] == "symbolize" {
            // Both lack names of functions.
            assert!(of_parts.1.contains("the file has no symbols"), "{of_parts:?}");
            assert_eq!(of_parts, of_whole);
            continue;
        }
        assert_eq!(of_parts.0, Some(3), "events were lost: {of_parts:?}");
        assert_eq!(of_parts.0, of_whole.0, "{words:?}");
        for look in [&["dump"][..], &["summary", "--json"], &["lifetimes", "--json"]] {
            let (found, expected) = (on(&scratch, look, &["p.kmt"]), on(&scratch, look, &["o.kmt"]));
            assert!(!found.stdout.is_empty() && found.stdout == expected.stdout, "{words:?} {look:?}");
        }
        let verified = on(&scratch, &["verify", "--json"], &["p.kmt"]);
        let verified: Value = serde_json::from_slice(&verified.stdout).unwrap();
        assert_eq!(at(&verified, "/verify/sound"), true, "{words:?}");
        // It is one file now.
        let again = on(&scratch, &["leaks"], &["p.kmt", "a-1.kmt"]);
        assert_eq!(again.status.code(), Some(1), "{words:?}: {}", stderr(&again));
    }
    let summary = on(&scratch, &["summary", "--json"], &FILES);
    let summary: Value = serde_json::from_slice(&summary.stdout).unwrap();
    assert_eq!(at(&summary, "/trace/lost_events"), LOST.1);
}

#[test]
fn commands_that_read_one_file_name_a_line_that_works() {
    let scratch = folder();
    for words in
        [&["verify"][..], &["recover", "-o", "x.kmt"], &["dump", "--follow"], &["latency", "--follow"]]
    {
        let refused = on(&scratch, words, &FILES);
        let message = stderr(&refused);
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {message}");
        assert!(message.contains("reads one file, and 4 are given"), "{message}");
        if words.contains(&"--follow") {
            assert!(message.contains(&format!("kmt-analyze {} --follow a-4.kmt`", words[0])), "{message}");
        }
        let hinted = run_hint(&scratch, &message);
        assert!(matches!(hinted.status.code(), Some(0 | 3)), "{words:?}: {}", stderr(&hinted));
        let _ = fs::remove_file(scratch.0.join("whole.kmt"));
    }
    assert!(!scratch.0.join("x.kmt").exists());
}

/// A file that is damaged is recovered alone, and read with the others again: only its damage is missing.
#[test]
fn a_damaged_file_is_recovered_and_read_with_the_others() {
    let scratch = folder();
    let damaged = scratch.0.join("a-3.kmt");
    let mut bytes = fs::read(&damaged).unwrap();
    let events = {
        let trace = Trace::open(&bytes).unwrap();
        trace.streams()[&0].chunks[0].0.offset as usize
    };
    // In the body of the first chunk of events of CPU 0.
    bytes[events + 100] ^= 0xff;
    fs::write(&damaged, bytes).unwrap();
    let refused = on(&scratch, &["summary", "--json"], &FILES);
    let message = stderr(&refused);
    assert_eq!(refused.status.code(), Some(1), "{message}");
    assert!(message.contains("a-3.kmt: a damaged file cannot be joined to others"), "{message}");
    let recovered = run_hint(&scratch, &message);
    assert_eq!(recovered.status.code(), Some(3), "{}", stderr(&recovered));
    let lost = stderr(&recovered);
    assert!(lost.contains("warning: "), "{lost}");
    let files = ["a-1.kmt", "a-2.kmt", "a-3.whole.kmt", "a-4.kmt"];
    let read = on(&scratch, &["summary", "--json"], &files);
    assert_eq!(read.status.code(), Some(3), "{}", stderr(&read));
    let number = |output: &Output, key: &str| {
        at(&serde_json::from_slice::<Value>(&output.stdout).unwrap(), key).as_u64().unwrap()
    };
    let whole = on(&scratch, &["summary", "--json"], &["w.kmt"]);
    let missing = number(&whole, "/trace/events") - number(&read, "/trace/events");
    // Events 3 to 8 of CPU 0 are in the damaged chunk.
    assert_eq!(missing, 6);
    let number_of_recovered = on(&scratch, &["summary", "--json"], &["a-3.whole.kmt"]);
    let said = stderr(&number_of_recovered);
    assert!(said.contains("6 events of it are missing"), "{said}");
    assert_eq!(number_of_recovered.status.code(), Some(3), "{said}");
}

/// Memory at the begin of the first file and at the end of the last one.
#[test]
fn a_balance_is_from_the_first_file_to_the_last() {
    let scratch = Scratch::new();
    let mut writer = Writer::new(WriterOptions::new(ByteOrder::Little, 8).trace_uuid([3; 16])).unwrap();
    let names: Vec<PathBuf> = (1..=3).map(|number| scratch.0.join(format!("b-{number}.kmt"))).collect();
    for (path, free) in names.iter().zip([900_u64, 800, 600]) {
        let number = path.file_stem().unwrap().to_str().unwrap().rsplit('-').next().unwrap().to_owned();
        writer.add_metadata(&[("source", b"live"), (Join::PART_KEY, number.as_bytes())]).unwrap();
        for (name, free) in [("meminfo.before", free), ("meminfo.after", free - 50)] {
            let text = format!("MemTotal: 1000 kB\nMemFree: {free} kB\n");
            writer.add_file(name, text.as_bytes()).unwrap();
        }
        fs::write(path, writer.next_file().unwrap()).unwrap();
    }
    let names = ["b-3.kmt", "b-1.kmt", "b-2.kmt"];
    let output = on(&scratch, &["balance", "--json"], &names);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = at(&report, "/accounts").as_array().unwrap();
    let free = rows.iter().find(|row| row["account"] == "free").unwrap_or_else(|| panic!("{report}"));
    assert_eq!(at(free, "/bytes_before"), 900 * 1024);
    assert_eq!(at(free, "/bytes"), 550 * 1024);
    let screen = stdout(&on(&scratch, &["balance"], &names));
    assert!(!screen.contains("3 parts of"), "commands name files: {screen}");
    // Folders, and files of different recordings.
    let refused = on(&scratch, &["balance"], &["b-1.kmt", "."]);
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("is a recording, not saved texts"), "{}", stderr(&refused));
    let refused = on(&scratch, &["balance"], &[".", ".", "."]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("compares two times, and 3 are given"), "{}", stderr(&refused));
}
