//! Rules that hold for every report and export: what was not recorded is no 0, what is selected is stated, what is
//! empty says so, and what cannot be answered is refused with the reason.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::model::{BASE, Crafted};
use crate::support::files::{Scratch, at, convert, data, json, reports, run, stderr, stdout};
use crate::support::hostile::Made;
use crate::support::model::{Event, What};
use kmt_format::Loss;
use kmt_format::kernel::CpuStats;
use kmt_format::write::StatsTaken;
use serde_json::Value;

/// A capture's text without events of some names.
fn without(scratch: &Scratch, names: &[&str]) -> PathBuf {
    let text = fs::read_to_string(data("x86_64-6.1").join("trace.txt")).unwrap();
    let kept: String = text
        .lines()
        .filter(|line| !names.iter().any(|name| line.contains(&format!(": {name}: "))))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(kept.len() == text.len(), names.is_empty(), "{names:?}");
    let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
    fs::write(&input, kept).unwrap();
    convert(&input, &output, None).unwrap();
    output
}

/// Numbers of a document by path; rows of tables by what they are about.
fn numbers(value: &Value, path: &str, out: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(map) => {
            let keys = ["symbol", "call_site", "cache", "api", "pid", "order", "migratetype", "name", "kind"];
            let name: String = keys.iter().filter_map(|k| map.get(*k)).map(Value::to_string).collect();
            map.iter().for_each(|(key, value)| numbers(value, &format!("{path}{name}/{key}"), out));
        }
        Value::Array(rows) if rows.iter().all(Value::is_object) => {
            rows.iter().for_each(|row| numbers(row, &format!("{path}[]"), out));
        }
        Value::Number(_) | Value::Null => drop(out.insert(path.to_owned(), value.clone())),
        _ => {}
    }
}

/// Reports that have something to say of a file, but these.
fn answering(file: &Path, without: &[&str]) -> Vec<&'static str> {
    let mut all = reports();
    all.retain(|report| !without.contains(report) && ask(report, file).is_some());
    assert!(all.len() >= 15, "{all:?}");
    all
}

/// What a report says, or that it refuses.
fn ask(report: &str, file: &Path) -> Option<Value> {
    let output = run(&[report, "--json"], file);
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{report}: {e}: {}", stderr(&output)));
    if output.status.code() == Some(1) {
        let reason = document["refused"].as_str().unwrap_or_else(|| panic!("{report}: {document}"));
        let line = stderr(&output);
        assert!(line.contains(reason) && line.trim().lines().count() == 1, "{report}: {line}");
        assert_eq!(stdout(&run(&[report], file)), "", "{report} prints nothing as text");
        return None;
    }
    assert!(matches!(output.status.code(), Some(0 | 3)), "{report}: {}", stderr(&output));
    Some(document)
}

#[test]
fn what_was_not_recorded_is_no_0() {
    let whole_scratch = Scratch::new();
    let whole = without(&whole_scratch, &[]);
    for names in [
        &["kmalloc"][..],
        &["kfree"],
        &["kmem_cache_alloc"],
        &["kmem_cache_free"],
        &["mm_page_alloc"],
        &["mm_page_free"],
        &["kmalloc", "kmem_cache_alloc"],
        &["kfree", "kmem_cache_free"],
        &["kmem_cache_alloc", "kmem_cache_free", "kfree"],
        &["mm_page_alloc", "mm_page_free"],
        &["kmalloc", "kmem_cache_alloc", "kfree", "kmem_cache_free"],
    ] {
        let scratch = Scratch::new();
        let file = without(&scratch, names);
        for report in reports() {
            let (Some(full), Some(less)) = (ask(report, &whole), ask(report, &file)) else { continue };
            let (mut all, mut left) = (BTreeMap::new(), BTreeMap::new());
            numbers(&full, "", &mut all);
            numbers(&less, "", &mut left);
            for (path, value) in left.iter().filter(|(_, value)| value.as_f64() == Some(0.0)) {
                let before = all.get(path).and_then(Value::as_f64).unwrap_or(0.0);
                // What needs both a recorded event and another that happened to be missing may be none.
                assert!(
                    before == 0.0 || may_be_none(path, names),
                    "{report} without {names:?}: {path} is 0 for {before}, not {value}"
                );
            }
        }
    }
}

/// Numbers that really are 0: of a task that did nothing but what one interface would tell of which nothing at all was
/// recorded, which stands above every report.
fn may_be_none(path: &str, names: &[&str]) -> bool {
    let is_one_interface = names.contains(&"kmem_cache_alloc") && names.contains(&"kmem_cache_free");
    is_one_interface && path.contains("tasks[]") && path.contains("/slab")
}

#[test]
fn reports_that_rest_on_frees_refuse_without() {
    let scratch = Scratch::new();
    let file = without(&scratch, &["kfree", "kmem_cache_free", "mm_page_free"]);
    let on_frees =
        ["peak", "lifetimes", "temporary", "timeline", "leaks", "boot", "crosscpu", "anomalies", "what-if"];
    for report in on_frees {
        assert!(ask(report, &file).is_none(), "{report}");
    }
    let callers = ask("callers", &file).unwrap();
    assert!(callers["callers"].as_array().unwrap().iter().all(|r| {
        at(r, "/live").is_null()
            && at(r, "/bytes_freed").is_null()
            && r["bytes_alloc"].as_u64().is_some_and(|b| b > 0)
    }));
    let summary = ask("summary", &file).unwrap();
    assert!(at(&summary, "/slab/bytes_live").is_null() && at(&summary, "/slab/free_events").is_null());
    assert!(summary["slab"]["bytes_alloc"].as_u64().unwrap() > 0);
    let text = stdout(&run(&["summary"], &file));
    for row in ["frees", "live"] {
        assert!(text.lines().any(|l| l.split_whitespace().eq([row, "?", "?", "?"])), "{text}");
    }
    assert!(text.contains("?: unknown") && text.contains("live objects are unknown"), "{text}");
    // Of all reports those that can answer do, and the others say why not.
    let all = ask("all", &file).unwrap();
    assert!(at(&all, "/peak").is_null() && all["refused"]["peak"].as_str().unwrap().contains("kmem:kfree"));
    assert!(at(&all, "/call_sites/callers").is_array());
}

#[test]
fn a_selection_is_stated_with_what_it_leaves() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let all = json(&["summary", "--json"], &file);
    assert!(at(&all, "/selection").is_null());
    let start = all["trace"]["first"].as_u64().unwrap();
    for report in answering(&file, &[]) {
        let args = [report, "--json", "--time", "+0.002..+0.01", "--cpu", "0", "--cpu", "1"];
        let stated = json(&args, &file)["selection"].clone();
        assert_eq!(stated["options"].as_array().unwrap().len(), 3, "{report}");
        assert_eq!((stated["first"].as_u64(), stated["cpus"].as_u64()), (Some(start + 2_000_000), Some(2)));
        let dumped = stdout(&run(&["dump", "--time", "+0.002..+0.01", "--cpu", "0", "--cpu", "1"], &file));
        assert_eq!(stated["events"].as_u64().unwrap(), dumped.lines().count() as u64, "{report}");
        let text = stdout(&run(&[report, "--wide", "--time", "+0.002..+0.01"], &file));
        assert!(
            text.lines().any(|l| l.starts_with("Selected by --time +0.002..+0.01: ")),
            "{report}: {text}"
        );
    }
}

#[test]
fn what_matches_nothing_says_so_and_what_would() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    for (condition, candidate) in [
        (["--comm", "absent"], "tasks: "),
        (["--pid", "999999"], "tasks: "),
        (["--cpu", "77"], "CPUs: 0, 1"),
        (["--where", "cache=nothing"], "caches: "),
        (["--where", "event=kmalloc_tomorrow"], "events: kmem:kfree"),
        (["--where", "size>10G"], "sizes: "),
        (["--where", "call_site~^nobody_"], "`callers` lists them"),
    ] {
        for report in answering(&file, &["all", "pages", "memory", "events"]) {
            let output = run(&[&[report][..], &condition].concat(), &file);
            let text = stdout(&output);
            assert_eq!(output.status.code(), Some(0), "{report}: {}", stderr(&output));
            assert!(
                text.starts_with("Nothing matches.") && text.contains(candidate),
                "{report} {condition:?}: {text}"
            );
            assert!(!text.contains("grows") && !text.contains("no slab object"), "{report}: {text}");
        }
    }
}

/// It follows tasks and CPUs alone, so it does not know what else would match.
#[test]
fn memory_of_nothing_is_a_sentence() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let text = stdout(&run(&["memory", "--comm", "absent"], &file));
    assert!(text.starts_with("No memory was allocated, or the selection leaves none.\n"), "{text}");
    assert!(!text.contains("the largest first"), "{text}");
}

#[test]
fn a_directory_is_a_selection_that_other_tools_do_not_have() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    for args in [&["summary", "--compat", "perf-kmem"][..], &["latency", "--follow"]] {
        let output = run(&[args, &["--start-branch", "fs"]].concat(), &file);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains("cannot be used with '--start-branch"), "{}", stderr(&output));
    }
}

#[test]
fn keys_that_a_report_does_not_have_are_refused() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    for (report, condition) in [
        ("callers", "order>1"),
        ("lifetimes", "migratetype=1"),
        ("pages", "cache=dentry"),
        ("events", "size>1"),
        ("peak", "order>1"),
    ] {
        let output = run(&[report, "--where", condition], &file);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{report}");
        assert!(stderr(&output).contains("its keys are pid, comm, cgroup, cpu"), "{}", stderr(&output));
    }
}

#[test]
fn exports_hold_what_is_live_at_an_instant() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let live = json(&["summary", "--json", "--at", "+0.01"], &file)["slab"]["bytes_live"].as_u64().unwrap();
    assert!(live > 0);
    let folded = stdout(&run(&["export", "folded", "--at", "+0.01"], &file));
    let sum: u64 = folded.lines().map(|l| l.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    assert_eq!(sum, live);
    let output = run(&["export", "dhat", "--at", "+0.01"], &file);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}

#[test]
fn a_name_is_that_of_the_time_of_the_event() {
    let scratch = Scratch::new();
    let names = ["sh", "sh", "cat", "cat", "cat", "sh"];
    let lines: String = names
        .iter()
        .enumerate()
        .map(|(n, name)| {
            format!(
                "{name:>16}-77      [000] .....     1.00000{n}: kmalloc: call_site=f+0x1/0x20 ptr=ffff88810000{n}000 bytes_req=100 bytes_alloc=128 gfp_flags=GFP_KERNEL node=-1 accounted=false\n"
            )
        })
        .collect();
    let (input, file) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
    fs::write(&input, lines).unwrap();
    convert(&input, &file, None).unwrap();
    for (condition, expected) in [
        (["--comm", "sh"], 3),
        (["--comm", "cat"], 3),
        (["--where", "comm=sh"], 3),
        (["--where", "comm!=sh"], 3),
        (["--pid", "77"], 6),
    ] {
        let of = |report: &str| json(&[&[report, "--json"][..], &condition].concat(), &file);
        assert_eq!(of("summary")["slab"]["alloc_events"], expected, "{condition:?}");
        assert_eq!(of("callers")["callers"][0]["alloc_events"], expected, "{condition:?}");
        assert_eq!(of("events")["events_total"], expected, "{condition:?}");
        let folded = stdout(&run(&[&["export", "folded", "--by", "count"][..], &condition].concat(), &file));
        assert_eq!(folded, format!("f;[kmalloc-128] {expected}\n"), "{condition:?}");
    }
    let csv = stdout(&run(&["export", "csv", "--comm", "cat"], &file));
    assert_eq!(csv.lines().filter(|l| l.contains(",cat,")).count(), 3, "{csv}");
    for (cache, expected) in
        [("cache=kmalloc-128", 6), ("cache~^kmalloc", 6), ("cache=kmalloc-256", 0), ("cache!~^kmalloc", 0)]
    {
        let found = json(&["summary", "--json", "--where", cache], &file);
        assert_eq!(found["slab"]["alloc_events"], expected, "{cache}");
    }
}

#[test]
fn losses_stand_beside_the_numbers_that_they_touch() {
    // One where no CPU lost its last sub-buffer: such a loss marks no place.
    let lossy = |first: u64| {
        let scratch = Scratch::new();
        let file = scratch.changed("x86_64-6.1", |dir| {
            let slabinfo = "kmalloc-64 3 42 64 21 1 : tunables 0 0 0 : slabdata 2 2 0\n";
            fs::write(dir.join("slabinfo.at.0-1"), slabinfo).unwrap();
            for trial in first..first + 5 {
                crate::support::drop::sub_buffers(&dir.join("tracefs"), trial);
            }
        });
        let timeline = json(&["timeline", "--json"], &file);
        let trace = &timeline["trace"];
        let is_much = trace["lost_events"].as_u64() > trace["events"].as_u64().map(|events| events / 5);
        (is_much && timeline["timeline"]["lost_percent"][0].is_number()).then_some((scratch, file))
    };
    let (_scratch, file) = (1..100).find_map(|n| lossy(5 * n)).expect("a loss that marks its place");
    let peak = run(&["peak"], &file);
    assert_eq!((peak.status.code(), stdout(&peak).as_str()), (Some(1), ""));
    assert!(stderr(&peak).contains("% of all events were lost"), "{}", stderr(&peak));
    // What the kernel counted grew or not.
    let leaks = run(&["leaks"], &file);
    let answer = stdout(&leaks);
    assert_eq!(leaks.status.code(), Some(3), "{answer}");
    assert!(answer.contains("% of all events were lost; growth is not judged"), "{answer}");
    // Neither is suggested where it refuses; where it answers, `leaks` is.
    let whole = Scratch::new();
    let whole_file = whole.convert(&data("x86_64-6.1"));
    for report in ["summary", "lifetimes", "pages", "callers", "timeline", "all"] {
        let screen = stdout(&run(&[report], &file));
        // `leaks` of the time without losses answers.
        let is_refused = |line: &&str| {
            line.contains("kmt-analyze peak ")
                || line.contains("kmt-analyze leaks ") && !line.contains(" --time ")
        };
        assert_eq!(screen.lines().find(is_refused), None, "{screen}");
    }
    for report in ["summary", "lifetimes", "pages"] {
        assert!(stdout(&run(&[report], &whole_file)).contains("kmt-analyze leaks "), "{report}");
    }
    let timeline = json(&["timeline", "--json"], &file)["timeline"].clone();
    assert!(at(&timeline, "/lines/0/bytes_live_least").is_null(), "{}", timeline["lines"][0]);
    // Before the first event none is live by events; what was lost may be, up to what the kernel counted.
    let slabinfo = &json(&["slabinfo", "--json"], &file)["slabinfo"];
    let rows = slabinfo["caches"].as_array().unwrap();
    let (named, others): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row["cache"] == "kmalloc-64");
    assert!(named.len() == 1 && !others.is_empty(), "{slabinfo:#}");
    for (rows, range) in [(named, "[0,3]"), (others, "[0,null]")] {
        for row in rows {
            assert_eq!(
                (row["live"][0].as_u64(), row["live_range"][0].to_string().as_str()),
                (Some(0), range)
            );
        }
    }
    let shares: Vec<f64> =
        timeline["lost_percent"].as_array().unwrap().iter().map(|s| s.as_f64().unwrap()).collect();
    assert_eq!(shares.len() as u64, timeline["steps"].as_u64().unwrap());
    assert!(
        shares.iter().any(|s| *s > 10.0) && shares.iter().all(|s| (0.0..=100.0).contains(s)),
        "{shares:?}"
    );
    for report in ["callers", "caches", "sizes", "tasks", "lifetimes", "timeline"] {
        let text = stdout(&run(&[report], &file));
        let mark = if report == "timeline" { "time lost" } else { "uncertain" };
        assert!(text.lines().any(|l| l.contains(mark) && l.contains("  ")), "{report}: {text}");
    }
    let whole_scratch = Scratch::new();
    let whole = whole_scratch.convert(&data("x86_64-6.1"));
    let shares = json(&["timeline", "--json"], &whole)["timeline"]["lost_percent"].clone();
    assert!(shares.as_array().unwrap().iter().all(|s| s == 0.0), "{shares}");
}

#[test]
fn live_slab_bytes_of_a_timeline_are_not_added_to_pages() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let live = json(&["summary", "--json"], &file)["slab"]["bytes_live"].as_u64().unwrap();
    let live = live.to_string();
    for by in ["kind", "call-site", "cache", "task", "cpu", "node"] {
        let text = stdout(&run(&["timeline", "--bytes", "--wide", "--by", by], &file));
        let last = text.lines().rfind(|l| l.trim_start().starts_with('+')).unwrap();
        let cell = last.split_ascii_whitespace().nth(1).unwrap().replace(',', "");
        assert_eq!(cell, live, "{by}: {text}");
    }
}

#[test]
fn exports_refuse_what_was_not_recorded() {
    let scratch = Scratch::new();
    let file = without(&scratch, &["kfree", "kmem_cache_free"]);
    for args in [&["folded", "--by", "live"][..], &["folded", "--at", "+0.01"], &["dhat"]] {
        let output = run(&[&["export"], args].concat(), &file);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{args:?}");
        assert!(stderr(&output).contains("kmem:kfree"), "{args:?}: {}", stderr(&output));
    }
    for args in [&["folded"][..], &["csv", "--of", "objects"]] {
        let output = run(&[&["export"], args].concat(), &file);
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(stderr(&output).contains("the file has no kmem:kfree"), "{args:?}: {}", stderr(&output));
    }
    let output = run(&["export", "folded", "--comm", "absent"], &file);
    assert!(stderr(&output).contains("Nothing matches") && stderr(&output).contains("tasks: "));
}

#[test]
fn each_side_of_a_diff_has_its_own_events() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let args = ["diff", "--json", "--time", "+0..+0.005", "--against", "+0.005..+0.018"];
    let diff = json(&args, &file);
    let events = |window: &str| stdout(&run(&["dump", "--time", window], &file)).lines().count() as u64;
    let found = diff.to_string();
    for window in ["+0..+0.005", "+0.005..+0.018"] {
        assert!(found.contains(&format!("\"events\":{}", events(window))), "{window}: {found}");
    }
    let output = run(&["diff", "--time", "+0..+0.005", "--against", "1..2"], &file);
    assert!(stderr(&output).contains("lies outside the trace"), "{}", stderr(&output));
}

/// Sheaves, bulk frees and kfree_rcu free objects without an event: what seems live is an upper bound, and slabinfo has a
/// better one.
#[test]
fn frees_without_events_are_told() {
    let scratch = Scratch::new();
    let (mut text, mut time) = (String::new(), 1.0);
    let mut line = |event: String| {
        time += 0.000_1;
        text += &format!("      sh-77      [001] .....   {time:.6}: {event}\n");
    };
    let alloc = |name: &str, ptr: u64| {
        format!(
            "kmem_cache_alloc: call_site=f+0x1/0x20 name={name} ptr=0x{ptr:x} bytes_req=128 bytes_alloc=128 \
             gfp_flags=GFP_KERNEL node=-1 accounted=true"
        )
    };
    for number in 0..40u64 {
        // Ten addresses, again and again, and never a free.
        line(alloc("eventpoll_epi", 0xffff_8881_0000_0000 + number % 10 * 128));
        line(alloc("dentry", 0xffff_8881_0001_0000));
        line("kmem_cache_free: call_site=f+0x1/0x20 ptr=0xffff888100010000 name=dentry".to_owned());
    }
    let folder = scratch.0.join("sheaves");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("trace.txt"), text).unwrap();
    let row = |file: &Path, name: &str| {
        let caches = json(&["caches", "--json"], file);
        let row = caches["caches"].as_array().unwrap().iter().find(|row| row["cache"] == name);
        row.unwrap_or_else(|| panic!("{caches:#}")).clone()
    };
    let file = scratch.convert(&folder);
    let (epi, dentry) = (row(&file, "eventpoll_epi"), row(&file, "dentry"));
    assert_eq!((epi["live"].as_u64(), epi["frees_seen"].as_str()), (Some(10), Some("none")), "{epi:#}");
    assert_eq!(epi["live_range"].to_string(), "[0,10]");
    assert_eq!(
        (dentry["frees_seen"].as_str(), dentry["live_range"].to_string().as_str()),
        (Some("all"), "[0,0]")
    );
    for report in reports().into_iter().filter(|r| !["pages", "latency"].contains(r)) {
        let output = run(&[report, "--wide"], &file);
        let said = stdout(&output) + &stderr(&output);
        let is_told = said.contains("42.9 % of freed objects had no free event (eventpoll_epi)");
        assert!(is_told || output.status.code() == Some(1), "{report}: {said}");
    }
    let refused = run(&["slabinfo"], &file);
    assert!(stderr(&refused).contains("the file has no /proc/slabinfo"), "{}", stderr(&refused));
    let head = "slabinfo - version: 2.1\n";
    let slabinfo = format!("{head}eventpoll_epi 3 32 128 32 1 : tunables 0 0 0 : slabdata 1 1 0\n");
    // Nobody knows when that was.
    fs::write(folder.join("slabinfo.after"), &slabinfo).unwrap();
    assert_eq!(row(&scratch.convert(&folder), "eventpoll_epi")["live_range"].to_string(), "[0,10]");
    fs::write(folder.join("slabinfo.at.1100000000-1200000000"), slabinfo).unwrap();
    let bounded = scratch.convert(&folder);
    assert_eq!(row(&bounded, "eventpoll_epi")["live_range"].to_string(), "[0,3]");
    let slab = &json(&["summary", "--json"], &bounded)["slab"];
    assert_eq!((slab["live"].as_u64(), slab["live_range"].to_string().as_str()), (Some(10), "[0,3]"));
    assert_eq!(slab["cache"]["bytes_live_range"].to_string(), "[0,384]");
    let text = stdout(&run(&["summary"], &bounded));
    assert!(text.lines().any(|l| l.split_whitespace().eq(["live", "at", "most", "3", "?", "3"])), "{text}");
    let beside = &json(&["slabinfo", "--json"], &bounded)["slabinfo"];
    assert_eq!(
        (&beside["caches_contradicted"], &beside["caches"][0]["cache"]),
        (&1.into(), &"eventpoll_epi".into())
    );
    let first = &beside["caches"][0];
    assert_eq!(
        [&first["live"], &first["live_range"], &first["active"]].map(Value::to_string),
        ["[10]", "[[0,3]]", "[3]"]
    );
    let callers = json(&["callers", "--json"], &bounded);
    assert_eq!(callers["callers"][0]["live_range"].to_string(), "[0,3]", "{callers:#}");
    let peak = &json(&["peak", "--json"], &bounded)["peak"];
    assert_eq!(peak["live_range"].to_string(), "[1,11]", "ten watchers, and a dentry: {peak:#}");
    let timeline = &json(&["timeline", "--json", "--steps", "2"], &bounded)["timeline"];
    assert_eq!(timeline["lines"][0]["bytes_live_least"].to_string(), "[0,0]", "{timeline:#}");
    let text = stdout(&run(&["caches", "--wide"], &bounded));
    assert!(
        text.contains("live at most") && text.contains("what slabinfo counted after the trace"),
        "{text}"
    );
}

/// A later kernel may drop a field: no other number takes its place.
#[test]
fn events_without_an_address_are_left_out() {
    let mut made = Made::default();
    let fields =
        [("unsigned long", "call_site", 8), ("size_t", "bytes_req", 8), ("size_t", "bytes_alloc", 8)];
    made.class("kmem", "kmem_cache_alloc", 21, &fields, "\"bytes_req=%zu\", REC->bytes_req");
    made.kmalloc(0, 7, 0x10, BASE);
    made.event(0, 21, 7, &[0x10u64, 8, 8].map(u64::to_le_bytes).concat());
    let scratch = Scratch::new();
    let file = scratch.0.join("no-address.kmt");
    fs::write(&file, made.finish()).unwrap();
    let report = run(&["summary", "--json"], &file);
    let document: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(document["slab"]["alloc_events"], 1);
    assert_eq!(document["slab"]["bytes_alloc"], 64);
    let warning = stderr(&report);
    assert!(warning.contains("kmem:kmem_cache_alloc has no address: its events are left out"), "{warning}");
}

/// A printed event without its address, where others have it, is damaged: counted as lost, not as anything else. Where no
/// event of a text has it, it is left out.
#[test]
fn printed_events_without_an_address_are_lost_or_left_out() {
    let scratch = Scratch::new();
    let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
    let line = |name, fields| {
        format!(
            "a-1 [000] ..... 1.000001: {name}: {fields} bytes_req=8 bytes_alloc=8 gfp_flags=GFP_KERNEL node=-1 accounted=false\n"
        )
    };
    let kept = line("kmem_cache_alloc", "call_site=f+0x10 ptr=0000000000000040 name=a");
    let without = line("kmalloc", "call_site=f+0x10");
    let with = line("kmalloc", "call_site=f+0x10 ptr=0000000000000080");
    for (text, code, lost, allocs) in [(without.clone() + &kept, 0, 0, 1), (without + &kept + &with, 3, 1, 2)]
    {
        fs::write(&input, text).unwrap();
        convert(&input, &output, None).unwrap();
        let report = run(&["summary", "--json"], &output);
        assert_eq!(report.status.code(), Some(code), "{}", stderr(&report));
        let document: Value = serde_json::from_slice(&report.stdout).unwrap();
        assert_eq!(document["slab"]["alloc_events"], allocs);
        assert_eq!(document["slab"]["bytes_alloc"], allocs * 8);
        assert_eq!(document["trace"]["lost_events"], lost);
        assert_eq!(stderr(&report).contains("kmem:kmalloc has no address"), code == 0, "{}", stderr(&report));
    }
}

/// A recorder that ends at `--max-size` counts what it left in the buffers; the kernel's counters do not.
#[test]
fn losses_beyond_the_kernels_counters_are_counted() {
    let mut crafted = Crafted::new();
    let mut none = CpuStats::default();
    (none.overrun, none.dropped, none.commit_overrun) = (Some(2), Some(0), Some(0));
    crafted.writer.add_stats(StatsTaken::After, &[(0, none)]).unwrap();
    for n in 0..4 {
        let what = What::Alloc { kmalloc: true, site: 1, ptr: BASE + n * 64, req: 8, alloc: 8 };
        crafted.event(&Event { time: 1_000 + n, cpu: 0, pid: 7, what });
    }
    crafted.writer.add_loss(0, Loss::counted(12)).unwrap();
    let scratch = Scratch::new();
    let file = scratch.0.join("max.kmt");
    fs::write(&file, crafted.writer.finish().unwrap()).unwrap();
    let told = stdout(&run(&["summary", "--wide"], &file));
    assert!(told.contains("12 events (75.0 % of all) were lost"), "{told}");
    assert_eq!(json(&["summary", "--json"], &file)["trace"]["lost_events"], 12);
}

/// The same words, wherever a selection leaves nothing: on the screen, or beside data on standard error.
#[test]
fn a_selection_that_leaves_nothing_says_what_would_match() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let slice = scratch.0.join("slice.kmt").display().to_string();
    for (args, has) in [
        (&["callers", "--call-site", "[ext4]"][..], "call sites: "),
        (&["caches", "--cache", "nonsense"], "caches: "),
        (&["callers", "--where", "cache=nonsense"], "caches: "),
        (&["dump", "-e", "kmem:rss_stat", "--pid", "4194304"], "events: "),
        (&["dump", "--pid", "4194304"], "tasks: "),
        (&["dump", "--format", "jsonl", "--where", "size>1G"], "events: "),
        (&["dump", "--cpu", "77"], "CPUs: 0, 1"),
        (&["slice", "--pid", "4194304", "-o", &slice], "tasks: "),
        (&["export", "csv", "--of", "events", "--pid", "4194304"], "tasks: "),
        (&["export", "csv", "--of", "objects", "--comm", "absent"], "tasks: "),
    ] {
        let output = run(args, &file);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
        let text = stdout(&output) + &stderr(&output);
        assert!(text.contains("Nothing matches.") && text.contains("The trace has:"), "{args:?}: {text}");
        assert!(text.contains(has), "{args:?}: {text}");
    }
    // Something matches, or nothing was asked of it.
    for args in
        [&["dump", "-l", "0"][..], &["dump", "-l", "1", "--cpu", "0"], &["callers", "--call-site", "alloc"]]
    {
        let output = run(args, &file);
        assert!(!(stdout(&output) + &stderr(&output)).contains("Nothing matches"), "{args:?}");
    }
}
