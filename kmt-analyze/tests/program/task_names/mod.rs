//! Names of tasks in all outputs against an oracle: the naming events of the recording, sorted by time.

mod made;

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::files::{Scratch, at, convert, json, run, stderr, stdout};
use crate::support::foreign::{Capture, Packing, Perf};
use kmt_format::kernel::ByteOrder;
use kmt_format::read::Trace;
use made::{Kind, LEAK, PARENT, Recording};
use serde_json::Value;

/// The oracle.
struct Oracle(Vec<(u64, i32, &'static str)>);

impl Oracle {
    fn of(recording: &Recording) -> Self {
        let mut names: Vec<_> =
            recording.naming().into_iter().map(|(pid, time, name)| (time, pid, name)).collect();
        names.sort();
        Self(names)
    }

    fn name(&self, pid: i32, time: u64) -> &'static str {
        let mut of_task = self.0.iter().filter(|row| row.1 == pid && row.0 <= time);
        of_task.next_back().map_or(PARENT.1, |row| row.2)
    }

    fn task(&self, pid: i32, time: u64) -> String {
        format!("{}-{pid}", self.name(pid, time))
    }
}

fn lines(args: &[&str], file: &Path) -> Vec<Value> {
    let output = run(args, file);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Compares each row of a list with the oracle; the list may not be empty.
fn same(what: &str, rows: &[(i32, u64, String)], expected: impl Fn(i32, u64) -> String) {
    let wrong: Vec<String> = rows
        .iter()
        .filter(|(pid, time, name)| *name != expected(*pid, *time))
        .map(|(pid, time, name)| format!("{pid} at {time}: {name}, not {}", expected(*pid, *time)))
        .collect();
    assert!(!rows.is_empty(), "{what}: no rows");
    assert!(
        wrong.is_empty(),
        "{what}: {} of {} differ: {:?}",
        wrong.len(),
        rows.len(),
        &wrong[..wrong.len().min(5)]
    );
}

fn row(value: &Value, pid: &str, time: &str, name: &str) -> (i32, u64, String) {
    let pid = value[pid].as_i64().unwrap() as i32;
    (pid, value[time].as_u64().unwrap(), value[name].as_str().unwrap().to_owned())
}

/// All names of all outputs.
fn check(what: &str, recording: &Recording, file: &Path) {
    let oracle = Oracle::of(recording);
    let name = |pid, time| oracle.name(pid, time).to_owned();
    let events = lines(&["dump", "--json"], file);
    let rows: Vec<_> = events.iter().map(|line| row(line, "pid", "ts", "comm")).collect();
    same(&format!("{what}: dump --json"), &rows, name);
    for (line, event) in stdout(&run(&["dump"], file)).lines().zip(&rows) {
        let start = format!("{:>16}-{:<7} [", oracle.name(event.0, event.1), event.0);
        assert!(line.starts_with(&start), "{what}: {line}");
    }
    let rows = lines(&["export", "ndjson", "--of", "events"], file);
    same(
        &format!("{what}: events"),
        &rows.iter().map(|r| row(r, "pid", "ts", "comm")).collect::<Vec<_>>(),
        name,
    );
    let rows = lines(&["export", "ndjson", "--of", "objects"], file);
    let rows: Vec<_> = rows.iter().map(|r| row(r, "born_pid", "born", "born_comm")).collect();
    same(&format!("{what}: objects"), &rows, name);
    if !what.starts_with("text of trace,") {
        check_library(what, recording, file, &oracle);
    }
    check_sums(what, recording, file, &oracle);
    check_lives(what, recording, file, &oracle);
}

/// The table of tasks alone, as readers of the format look names up.
fn check_library(what: &str, recording: &Recording, file: &Path, oracle: &Oracle) {
    let bytes = fs::read(file).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    let name =
        |pid, time| String::from_utf8_lossy(trace.metadata().comm(pid, time).unwrap_or(b"?")).into_owned();
    let rows: Vec<_> =
        recording.events.iter().map(|event| (event.pid, event.time, name(event.pid, event.time))).collect();
    same(&format!("{what}: table"), &rows, |pid, time| oracle.name(pid, time).to_owned());
}

/// Reports with a row for each task or name.
fn check_sums(what: &str, recording: &Recording, file: &Path, oracle: &Oracle) {
    let first = recording.events.first().unwrap().time;
    let last = recording.events.last().unwrap().time;
    let middle = (first + last) / 2;
    let window = format!("{}..{}", seconds(first), seconds(middle));
    for (end, time) in [(last, &[][..]), (middle, &["--time", &window])] {
        let tasks = json(&[&["tasks", "--json"], time].concat(), file);
        let tasks = at(&tasks, "/tasks").as_array().unwrap();
        let row =
            |t: &Value| (t["pid"].as_i64().unwrap() as i32, end, t["comm"].as_str().unwrap().to_owned());
        let rows: Vec<_> = tasks.iter().map(row).collect();
        same(&format!("{what}: tasks {time:?}"), &rows, |pid, time| oracle.name(pid, time).to_owned());
        let leaks = json(&[&["leaks", "--json"], time].concat(), file);
        let holders = at(&leaks, "/leaks/callers")
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|c| c["holders"].as_array().unwrap());
        let row =
            |h: &Value| (h["pid"].as_i64().unwrap() as i32, end, h["task"].as_str().unwrap().to_owned());
        let rows: Vec<_> = holders.map(row).collect();
        same(&format!("{what}: leaks {time:?}"), &rows, |pid, time| oracle.task(pid, time));
    }
    for name in ["ip", "sh", "cc1", "kworker/u8:1", "python3"] {
        let is_it =
            |e: &&made::Made| matches!(e.kind, Kind::Alloc { .. }) && oracle.name(e.pid, e.time) == name;
        let expected = recording.events.iter().filter(is_it).count();
        let condition = format!("comm={name}");
        for filter in [["--comm", name], ["--where", &condition]] {
            let summary = json(&[&["summary", "--json"], &filter[..]].concat(), file);
            assert_eq!(*at(&summary, "/slab/alloc_events"), Value::from(expected), "{what}: {filter:?}");
        }
    }
}

/// A microsecond as `--time` accepts it.
fn seconds(time: u64) -> String {
    format!("{}.{:06}", time / 1_000_000_000, time / 1_000 % 1_000_000)
}

/// `who` of some objects: names at the allocation and at the free.
fn check_lives(what: &str, recording: &Recording, file: &Path, oracle: &Oracle) {
    let freed = |ptr: u64| {
        recording.events.iter().find(|e| matches!(e.kind, Kind::Free { ptr: other } if other == ptr))
    };
    for event in recording.events.iter().step_by(37) {
        let Kind::Alloc { site, ptr } = event.kind else { continue };
        let text = stdout(&run(&["who", &format!("{ptr:#x}"), "--wide"], file));
        let born = oracle.task(event.pid, event.time);
        assert!(text.contains(&born), "{what}: who {ptr:#x}: no {born} in {text}");
        if site != LEAK {
            let free = freed(ptr).unwrap();
            let freer = oracle.task(free.pid, free.time);
            assert!(text.contains(&freer), "{what}: who {ptr:#x}: no {freer} in {text}");
        }
    }
}

/// Files of all kinds of a recording.
fn files(scratch: &Scratch, recording: &Recording) -> Vec<(&'static str, PathBuf)> {
    let oracle = Oracle::of(recording);
    let end = recording.events.last().unwrap().time;
    let root = scratch.0.join("target");
    recording.folder(&root, |pid| oracle.name(pid, end).to_owned());
    let capture = Capture::new(&root, ByteOrder::Little);
    let made = |name: &'static str, input: &Path| {
        let output = scratch.0.join(format!("{name}.kmt"));
        convert(input, &output, None).unwrap();
        (name, output)
    };
    let mut out = vec![made("raw", &root)];
    let kmt = fs::read(&out[0].1).unwrap();
    let inputs: Vec<(&'static str, Vec<u8>)> = vec![
        ("trace.dat 6", capture.v6(None)),
        ("trace.dat 7", capture.v7(Packing::Zlib, 4096)),
        ("perf.data", capture.perf(&kmt, Perf::default())),
        ("perf.data with names alone", capture.perf(&recording.with_table_alone(), Perf::default())),
        ("text of trace_pipe", recording.text(|pid, time| oracle.name(pid, time).to_owned()).into_bytes()),
        // The kernel's `trace` file has the last name of each task in all of its lines.
        ("text of trace", recording.text(|pid, _| oracle.name(pid, end).to_owned()).into_bytes()),
    ];
    for (name, bytes) in inputs {
        let folder = scratch.0.join("inputs");
        fs::create_dir_all(&folder).unwrap();
        let input = folder.join(name.replace(' ', "-"));
        fs::write(&input, bytes).unwrap();
        out.push(made(name, &input));
    }
    out
}

#[test]
fn all_outputs_have_the_names_of_their_time() {
    for (seed, has_pid) in [(1, false), (7, true)] {
        let recording = Recording::new(seed, has_pid);
        let oracle = Oracle::of(&recording);
        let (naming, end) = (recording.naming(), recording.events.last().unwrap().time);
        let is_misleading = |pid: i32| {
            let last = naming.iter().rfind(|row| row.0 == pid).map(|row| row.2);
            last.is_some_and(|last| last != oracle.name(pid, end))
        };
        let misleading = (100..160).filter(|pid| is_misleading(*pid)).count();
        assert!(misleading >= 10, "reading CPU after CPU gives {misleading} wrong names");
        let scratch = Scratch::new();
        for (what, file) in files(&scratch, &recording) {
            check(&format!("{what}, seed {seed}"), &recording, &file);
        }
    }
}
