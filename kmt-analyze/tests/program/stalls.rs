//! What `latency` says, against a plain reading of the kernel's own text of the same events.
//!
//! `KMT_RAW_CAPTURES=DIR` adds every capture in DIR that has a `trace.txt` of the function graph tracer.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::files::{Scratch, at, convert, json, run, stderr, stdout};
use serde_json::Value;

/// Number, total and longest, in microseconds.
type Sums = (u64, f64, f64);

/// One line of the function graph tracer's text with `funcgraph-abstime` and `funcgraph-proc`.
struct Line<'t> {
    time_us: f64,
    pid: &'t str,
    /// What stands behind the task.
    rest: &'t str,
}

fn line(text: &str) -> Option<Line<'_>> {
    let mut columns = text.splitn(3, '|');
    let time_us = columns.next()?.trim().parse::<f64>().ok()? * 1e6;
    let (_, task) = columns.next()?.split_once(')')?;
    Some(Line { time_us, pid: task.trim().rsplit('-').next()?, rest: columns.next()?.trim() })
}

/// The duration and name of a function that ends here. Only ends whose name the text tells.
fn function(rest: &str) -> Option<(f64, &str)> {
    let (duration, code) = rest.split_once('|')?;
    let number = duration.trim().trim_start_matches(['!', '@', '#', '*', '$', '+', ' ']);
    let duration = number.strip_suffix(" us")?.trim().parse().ok()?;
    let code = code.trim();
    let name = code.strip_prefix("} /* ").and_then(|c| c.split(' ').next());
    Some((duration, name.or_else(|| code.strip_suffix("();"))?))
}

/// The event and its text, from `/* name: text */`.
fn event(rest: &str) -> Option<(&str, &str)> {
    let at = rest.find("/* mm_")?;
    let (name, text) = rest.get(at + 3..)?.split_once(": ")?;
    Some((name, text))
}

/// Reads the kernel's text as a script would.
fn plainly(text: &str) -> BTreeMap<String, Sums> {
    let mut open: BTreeMap<(String, String), f64> = BTreeMap::new();
    let mut out: BTreeMap<String, Sums> = BTreeMap::new();
    let mut add = |kind: String, us: f64| {
        let sums = out.entry(kind).or_default();
        *sums = (sums.0 + 1, sums.1 + us, sums.2.max(us));
    };
    for line in text.lines().filter_map(line) {
        if let Some((duration, name)) = function(line.rest) {
            add(format!("function {name}"), duration);
        }
        let Some((name, text)) = event(line.rest) else { continue };
        let (kind, key) = match name {
            "mm_vmscan_direct_reclaim_begin" | "mm_vmscan_direct_reclaim_end" => {
                ("direct_reclaim".to_owned(), String::new())
            }
            "mm_compaction_begin" | "mm_compaction_end" => ("compaction".to_owned(), String::new()),
            "mm_shrink_slab_start" | "mm_shrink_slab_end" => {
                let function = text.split('+').next().unwrap();
                (format!("shrinker {function}"), text.split(':').next().unwrap().to_owned())
            }
            _ => continue,
        };
        let place = (line.pid.to_owned(), format!("{kind}{key}"));
        if name.ends_with("_begin") || name.ends_with("_start") {
            open.insert(place, line.time_us);
        } else if let Some(begin) = open.remove(&place) {
            add(kind, line.time_us - begin);
        }
    }
    out
}

/// The same from the report.
fn reported(report: &Value) -> BTreeMap<String, Sums> {
    let mut out: BTreeMap<String, Sums> = BTreeMap::new();
    for kind in report["latency"]["kinds"].as_array().unwrap() {
        let name = match kind["kind"].as_str().unwrap() {
            "direct_compaction" => "compaction".to_owned(),
            name @ ("shrinker" | "function") => format!("{name} {}", kind["function"].as_str().unwrap()),
            name => name.to_owned(),
        };
        let us = |key: &str| kind[key].as_u64().unwrap() as f64 / 1e3;
        let sums = out.entry(name).or_default();
        *sums = (sums.0 + kind["count"].as_u64().unwrap(), sums.1 + us("total"), sums.2.max(us("max")));
    }
    out
}

fn compare(name: &str, text: &str, report: &Value, is_threshold: bool) -> usize {
    let (plain, ours) = (plainly(text), reported(report));
    for (kind, &(number, total, longest)) in &plain {
        let &(our_number, our_total, our_longest) = ours.get(kind).unwrap_or(&(0, 0.0, 0.0));
        // Without a threshold most ends are printed as a bare `}`, which a script cannot name.
        if !is_threshold && kind.starts_with("function") {
            assert!(our_number >= number && our_longest + 1.0 >= longest, "{name}: {kind}");
            continue;
        }
        assert_eq!(our_number, number, "{name}: {kind}");
        // The text is rounded to microseconds, both ends of an interval.
        let rounding = number as f64 + 1.0;
        assert!((our_total - total).abs() <= rounding, "{name}: {kind}: {our_total} for {total}");
        assert!((our_longest - longest).abs() <= 1.1, "{name}: {kind}: {our_longest} for {longest}");
    }
    plain.len()
}

#[test]
fn times_are_those_of_the_kernels_text() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.1-reclaim");
    let scratch = Scratch::new();
    let text = fs::read_to_string(data.join("stalls.txt")).unwrap();
    let kinds = compare("slice", &text, &json(&["latency", "--json"], &scratch.convert(&data)), true);
    assert!(kinds >= 6, "{kinds} kinds");
    let more = std::env::var_os("KMT_RAW_CAPTURES").map(PathBuf::from);
    for capture in more.iter().flat_map(|d| fs::read_dir(d).unwrap()).map(|e| e.unwrap().path()) {
        let Ok(text) = fs::read_to_string(capture.join("trace.txt")) else { continue };
        if text.starts_with("# tracer: function_graph") {
            let threshold = fs::read_to_string(capture.join("tracefs/tracing_thresh")).unwrap_or_default();
            let is_threshold = threshold.trim().parse::<u64>().is_ok_and(|t| t > 0);
            let name = capture.display().to_string();
            compare(&name, &text, &json(&["latency", "--json"], &scratch.convert(&capture)), is_threshold);
        }
    }
}

#[test]
fn long_intervals_are_printed_with_their_events() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.1-reclaim");
    let file = Scratch::new();
    let path = file.convert(&data);
    let report = json(&["latency", "--json", "--threshold", "10ms"], &path);
    let intervals = report["latency"]["intervals"].as_array().unwrap();
    assert!(!intervals.is_empty());
    assert!(intervals.iter().all(|i| i["length"].as_u64().unwrap() >= 10_000_000), "{intervals:?}");
    let text = stdout(&run(&["latency", "--threshold", "10ms", "--wide", "-l", "0"], &path));
    // Outer stalls are headings, nested ones are indented; with their events they are all intervals.
    let stalls: Vec<&str> =
        text.lines().filter(|l| l.contains(" at ") && !l.contains(": ") && !l.ends_with('.')).collect();
    let outer = stalls.iter().filter(|l| !l.starts_with(' ')).count();
    assert!(outer > 0 && stalls.len() == intervals.len(), "{stalls:#?} of {}", intervals.len());
    let nested =
        if outer == stalls.len() { String::new() } else { format!(" ({outer} not nested in another)") };
    let noun = if stalls.len() == 1 { "stall" } else { "stalls" };
    assert!(text.starts_with(&format!("{} {noun} over 10 ms{nested}.", stalls.len())), "{text}");
    // A direct reclaim stands within the function that does it, with its events, but without those of short shrinkers.
    assert!(text.contains("mm_vmscan_direct_reclaim_begin"), "{text}");
    assert!(!text.contains("mm_shrink_slab_start"), "{text}");
    let none = stdout(&run(&["latency", "--threshold", "100s"], &path));
    assert!(none.contains("No stall over 100 s; the longest took"), "{none}");
}

#[test]
fn delayed_allocations_are_named() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.1-reclaim");
    let scratch = Scratch::new();
    let report = json(&["latency", "--json"], &scratch.convert(&data));
    let delayed = report["latency"]["delayed_allocations"].as_array().unwrap();
    let waits: u64 = delayed.iter().map(|d| d["count"].as_u64().unwrap()).sum();
    let unanswered = report["latency"]["stalls_without_allocation"].as_u64().unwrap();
    let direct = report["latency"]["kinds"]
        .as_array()
        .unwrap()
        .iter()
        .find(|k| k["kind"] == "direct_reclaim")
        .unwrap();
    assert_eq!(waits + unanswered, direct["count"].as_u64().unwrap());
    assert!(delayed.iter().any(|d| d["gfp_flags_text"].as_str().unwrap().contains("GFP_HIGHUSER_MOVABLE")));
    // What was not recorded is no zero.
    let task = &report["latency"]["tasks"][0];
    assert!(at(task, "/pages_scanned").is_null() && task["direct_reclaims"].as_u64().is_some(), "{task}");
}

/// Rows by what they are about, without what a text rounds: times.
fn rows(report: &Value, table: &str) -> BTreeMap<String, Value> {
    let key = |row: &Value| match table {
        "tasks" => row["pid"].to_string(),
        _ => [&row["kind"], &row["function"], &row["node"], &row["shrinker"]].map(Value::to_string).join(" "),
    };
    let mut out = BTreeMap::new();
    for row in report["latency"][table].as_array().unwrap() {
        let mut row = row.clone();
        let name = key(&row);
        let fields = row.as_object_mut().unwrap();
        if let Some(tasks) = fields.get_mut("tasks").and_then(Value::as_array_mut) {
            tasks.sort_by_key(|t| t["pid"].as_i64());
            for task in tasks {
                task.as_object_mut().unwrap().retain(|k, _| k == "pid" || k == "count");
            }
        }
        fields.retain(|k, _| {
            // The tracer cuts names of tasks to seven letters.
            let is_time =
                k.ends_with("time") || ["total", "mean", "p50", "p90", "p99", "max"].contains(&k.as_str());
            !is_time && k != "histogram" && k != "task" && k != "name"
        });
        assert!(out.insert(name, row).is_none());
    }
    out
}

/// A capture's text holds what its buffers hold, numbers of pages and shrinkers too.
fn same_in_text(name: &str, raw: &Value, text: &Value) {
    for table in ["kinds", "tasks"] {
        let (raw, text) = (rows(raw, table), rows(text, table));
        assert_eq!(raw.keys().collect::<Vec<_>>(), text.keys().collect::<Vec<_>>(), "{name} {table}");
        for (key, row) in &raw {
            assert_eq!(row, &text[key], "{name} {table} {key}");
        }
    }
    let (raw_times, text_times) = (reported(raw), reported(text));
    for (kind, &(number, total, longest)) in &raw_times {
        let &(_, text_total, text_longest) = &text_times[kind];
        assert!((text_total - total).abs() <= number as f64 + 1.0, "{name} {kind}: {text_total} for {total}");
        assert!((text_longest - longest).abs() <= 1.1, "{name} {kind}: {text_longest} for {longest}");
    }
}

#[test]
fn a_text_has_the_stalls_of_its_raw_buffers() {
    let more = std::env::var_os("KMT_RAW_CAPTURES").map(PathBuf::from);
    let more = more.iter().flat_map(|d| fs::read_dir(d).unwrap()).map(|e| e.unwrap().path());
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.1-reclaim");
    for capture in std::iter::once(data).chain(more) {
        let texts = [capture.join("stalls.txt"), capture.join("trace.txt")];
        let Some(path) = texts.into_iter().find(|t| t.exists()) else { continue };
        let bytes = fs::read(&path).unwrap();
        if !bytes.starts_with(b"# tracer: function_graph") && !path.ends_with("stalls.txt") {
            continue;
        }
        let scratch = Scratch::new();
        let (alone, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
        fs::write(&alone, bytes).unwrap();
        convert(&alone, &output, None).unwrap();
        let raw = json(&["latency", "--json"], &scratch.convert(&capture));
        same_in_text(&capture.display().to_string(), &raw, &json(&["latency", "--json"], &output));
    }
}

#[test]
fn followed_stalls_are_those_of_the_report() {
    let scratch = Scratch::new();
    let file = scratch.convert(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.1-reclaim"));
    let report = json(&["latency", "--threshold", "2ms", "--json"], &file);
    let key = |row: &Value| ["kind", "pid", "cpu", "begin", "end", "length"].map(|key| row[key].to_string());
    let mut expected: Vec<_> = report["latency"]["intervals"].as_array().unwrap().iter().map(key).collect();
    let lines = stdout(&run(&["latency", "--follow", "--threshold", "2ms", "--json"], &file));
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() > 10, "{}", lines.len());
    assert!(lines.is_sorted_by_key(|row| row["end"].as_u64()), "each is printed when it ends");
    let mut found: Vec<_> = lines.iter().map(key).collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    // The sums at the end are those of all stalls.
    let text = stdout(&run(&["latency", "--follow", "--threshold", "1s"], &file));
    let kinds = report["latency"]["kinds"].as_array().unwrap();
    let direct = kinds.iter().find(|kind| kind["kind"] == "direct_reclaim").unwrap();
    assert!(text.contains(&format!("\ndirect reclaim: {} stalls, ", direct["count"])), "{text}");
    assert!(!text.contains('+'), "none takes a second: {text}");
    let of_one = stdout(&run(&["latency", "--follow", "--pid", "560", "--json"], &file));
    assert!(of_one.lines().count() > 10 && of_one.lines().all(|line| line.contains("\"pid\":560,")));
    let refused = run(&["latency", "--follow", "--where", "size>1"], &file);
    assert_eq!(refused.status.code(), Some(2));
}

/// Ctrl-C ends the watching of a file, and of a stream whose writer still runs, with the sums.
#[test]
fn ctrl_c_ends_with_the_sums() {
    use rustix::process::{Pid, Signal, kill_process};
    let scratch = Scratch::new();
    let file = scratch.convert(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.1-reclaim"));
    let whole = fs::read(&file).unwrap();
    let growing = scratch.0.join("growing.kmt");
    fs::write(&growing, &whole[..whole.len() - 200]).unwrap();
    for path in [growing.to_str().unwrap(), "-"] {
        // A shell lets its background jobs ignore SIGINT, and the program respects that.
        let mut child = Command::new("env")
            .args(["--default-signal=INT", env!("CARGO_BIN_EXE_kmt-analyze")])
            .args(["latency", "--follow", "--threshold", "1s", path])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Kept open until the program has ended.
        let mut input = child.stdin.take().unwrap();
        if path == "-" {
            input.write_all(&fs::read(&growing).unwrap()).unwrap();
        }
        let catches_int = || {
            let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
            let mask =
                status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim().to_owned();
            u64::from_str_radix(&mask, 16).unwrap() >> 1 & 1 == 1
        };
        // Before that the default action of the signal is right.
        let begin = Instant::now();
        while !catches_int() {
            assert!(begin.elapsed() < Duration::from_secs(60), "it does not watch for SIGINT");
            std::thread::sleep(Duration::from_millis(10));
        }
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.code().is_some_and(|code| code != 1), "{path}: {:?}", ended.status);
        assert!(stdout(&ended).contains("\ndirect reclaim: "), "{path}: {}", stdout(&ended));
        assert!(!stderr(&ended).contains("has no end"), "{}", stderr(&ended));
        drop(input);
    }
}

#[test]
fn shrinkers_of_one_function_are_one_sum_of_followed_stalls() {
    let scratch = Scratch::new();
    let (input, file) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
    let shrink = |begin: u64, end: u64, function: &str, shrinker: &str| {
        let head = |time: u64| format!("            sh-10      [000] ..... {:>5}.{:06}: ", 1, time);
        format!(
            "{}mm_shrink_slab_start: {function}+0x0/0x10 {shrinker}: nid: 0 objects to shrink 1 gfp_flags GFP_KERNEL \
             cache items 1 delta 0 total_scan 1 priority 12\n\
             {}mm_shrink_slab_end: {function}+0x0/0x10 {shrinker}: nid: 0 unused scan count 0 new scan count 0 \
             total_scan 1 last shrinker return val 0\n",
            head(begin),
            head(end)
        )
    };
    let text = [
        shrink(100, 300, "several", "ffff888100009000"),
        shrink(400, 500, "several", "ffff888100001000"),
        shrink(600, 650, "several", "ffff888100009000"),
        shrink(700, 720, "alone", "ffff888100005000"),
    ];
    fs::write(&input, format!("# tracer: nop\n#\n{}", text.concat())).unwrap();
    convert(&input, &file, None).unwrap();
    let live = stdout(&run(&["latency", "--follow"], &file));
    let (lines, sums) = live.split_once("\n\n").unwrap();
    let numbered = |number: usize| lines.matches(&format!("shrinker several #{number} of ")).count();
    assert_eq!((numbered(1), numbered(2)), (2, 1), "{live}");
    assert_eq!(
        sums,
        "shrinker several, 2 shrinkers: 3 stalls, 350 us in total, the longest 200 us\n\
         shrinker alone: 1 stall, 20 us in total, the longest 20 us\n"
    );
}
