//! The reports agree with each other, whatever is asked of the same events.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::support::drop::{Pattern, sub_buffers_in};
use crate::support::files::{Scratch, at, data, json, run, stderr, stdout};
use kmt_format::kernel::ByteOrder;
use serde_json::Value;

fn sample(scratch: &Scratch) -> PathBuf {
    scratch.convert(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn sum(rows: &Value, of: impl Fn(&Value) -> u64) -> u64 {
    rows.as_array().unwrap().iter().map(of).sum()
}

#[test]
fn all_reports_come_to_the_same_totals() {
    let scratch = Scratch::new();
    for file in [sample(&scratch), scratch.convert(&data("s390x-6.1"))] {
        let summary = json(&["summary", "--json"], &file);
        let (slab, pages) = (&summary["slab"], &summary["pages"]);
        for key in ["alloc_events", "bytes_req", "bytes_alloc", "bytes_freed", "live", "bytes_live"] {
            let total = number(&slab[key]);
            for report in ["callers", "caches"] {
                let rows = &json(&[report, "--json"], &file)[report];
                assert_eq!(sum(rows, |r| number(&r[key])), total, "{report} {key}");
            }
            let tasks = &json(&["tasks", "--json"], &file)["tasks"];
            assert_eq!(sum(tasks, |r| number(&r["slab"][key])), total, "tasks {key}");
            let sizes = &json(&["sizes", "--json"], &file)["sizes"];
            assert_eq!(sum(sizes, |r| number(&r[key])), number(&slab["kmalloc"][key]), "sizes {key}");
            assert_eq!(
                sum(sizes, |r| sum(&r["requests"], |q| number(&q[key]))),
                number(&slab["kmalloc"][key])
            );
        }
        let tasks = &json(&["tasks", "--json"], &file)["tasks"];
        for key in ["pages_alloc", "pages_live", "pages_freed"] {
            assert_eq!(sum(tasks, |r| number(&r["pages"][key])), number(&pages[key]), "tasks {key}");
        }
        assert_eq!(sum(tasks, |r| number(&r["slab_frees"])), number(&slab["free_events"]));
        let lifetimes = &json(&["lifetimes", "--json"], &file)["lifetimes"];
        assert_eq!(sum(lifetimes, |r| number(&r["lifetime"]["n"])), number(&slab["frees_matched"]));
        assert_eq!(sum(lifetimes, |r| number(&r["censored"])), number(&slab["live"]));
        assert_eq!(sum(lifetimes, |r| number(&r["freed_unseen"])), number(&slab["freed_unseen"]));
        let by_place = |r: &Value| sum(&r["freed_by"], |f| number(&f["frees"]));
        assert_eq!(sum(lifetimes, by_place), number(&slab["frees_matched"]), "each is freed somewhere");
        let matrix = &json(&["pages", "--json"], &file)["pages"]["by_order_and_migratetype"];
        for key in ["alloc_events", "pages_alloc", "pages_live", "pages_freed"] {
            assert_eq!(sum(matrix, |r| number(&r[key])), number(&pages[key]), "pages {key}");
        }
        let events = json(&["events", "--json"], &file);
        assert_eq!(number(&events["events_total"]), number(&events["trace"]["events"]));
        assert_eq!(sum(&events["cells"], |c| number(&c["events"])), number(&events["trace"]["events"]));
    }
}

#[test]
fn time_is_followed() {
    let scratch = Scratch::new();
    let file = sample(&scratch);
    let summary = json(&["summary", "--json"], &file);
    for by in ["kind", "call-site", "cache", "task", "cpu", "node"] {
        let timeline =
            &json(&["timeline", "--json", "--by", by, "--steps", "7", "-l", "3"], &file)["timeline"];
        let lines: Vec<&Value> =
            timeline["lines"].as_array().unwrap().iter().filter(|l| l["name"] != "pages").collect();
        let last: u64 = lines.iter().map(|l| number(&l["bytes_live"][6])).sum();
        assert_eq!(last, number(&summary["slab"]["bytes_live"]), "{by}");
        let allocs: u64 = lines.iter().map(|l| sum(&l["alloc_events"], number)).sum();
        assert_eq!(allocs, number(&summary["slab"]["alloc_events"]), "{by}");
    }
    let peak = &json(&["peak", "--json"], &file)["peak"];
    assert!(number(&peak["bytes_live"]) >= number(&summary["slab"]["bytes_live"]));
    assert_eq!(sum(&peak["callers"], |r| number(&r["bytes_live"])), number(&peak["bytes_live"]));
    // What is live at that instant is the peak.
    let time = number(&peak["time"]);
    let at = format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
    let then = json(&["callers", "--json", "--at", &at], &file);
    assert_eq!(sum(&then["callers"], |r| number(&r["bytes_live"])), number(&peak["bytes_live"]));
    let highest = then["callers"].as_array().unwrap()[0]["bytes_live"].clone();
    assert_eq!(highest, peak["callers"][0]["bytes_live"], "--at sorts by what is live");
}

#[test]
fn conditions_part_the_events() {
    let scratch = Scratch::new();
    let file = sample(&scratch);
    let allocs = |condition: &[&str]| {
        let args: Vec<&str> = ["summary", "--json"].iter().chain(condition).copied().collect();
        number(&json(&args, &file)["slab"]["alloc_events"])
    };
    let all = allocs(&[]);
    for (one, other) in [
        ("size>256", "size<=256"),
        ("bytes_req=64,128", "bytes_req!=64,128"),
        ("call_site~alloc", "call_site!~alloc"),
        ("cache~^d", "cache!~^d"),
        ("gfp~ACCOUNT", "gfp!~ACCOUNT"),
        ("event=kmalloc", "event!=kmem:kmalloc"),
        ("node=-1", "node!=-1"),
        ("cpu=0,1", "cpu>1"),
        ("comm~^sh$", "comm!~^sh$"),
    ] {
        let (a, b) = (allocs(&["--where", one]), allocs(&["--where", other]));
        // Nobody asks for a node here.
        assert!(a > 0 && (b > 0 || one == "node=-1"), "{one}: {a}, {other}: {b}");
        let sum = a + b;
        // Objects of caches that no event names are in neither.
        assert!(sum == all || one.starts_with("cache") && sum <= all, "{one}: {a} + {b}, not {all}");
        assert_eq!(allocs(&["--where", one, "--where", other]), 0, "both");
    }
    // Lives that go on meet no condition on lifetimes.
    let (short, long) = (allocs(&["--where", "lifetime<1ms"]), allocs(&["--where", "lifetime>=1ms"]));
    let live = number(&json(&["summary", "--json"], &file)["slab"]["live"]);
    assert_eq!(short + long + live, all);
    let pages = json(&["pages", "--json", "--where", "order>=1", "--where", "migratetype=Unmovable"], &file);
    for row in pages["pages"]["by_order_and_migratetype"].as_array().unwrap() {
        assert!(
            number(&row["alloc_events"]) == 0 || number(&row["order"]) >= 1 && row["migratetype"] == 0,
            "{row}"
        );
    }
    let wrong = run(&["summary", "--where", "sise>1"], &file);
    assert_eq!(wrong.status.code(), Some(2), "{}", stderr(&wrong));
    assert!(stderr(&wrong).contains("no such key `sise`"));
    let peak = run(&["peak", "--where", "lifetime>1ms"], &file);
    assert_eq!(peak.status.code(), Some(1));
    assert!(stderr(&peak).contains("hint: timeline"), "{}", stderr(&peak));
}

#[test]
fn the_number_of_cores_changes_nothing() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.12"));
    for report in ["summary", "callers", "caches", "lifetimes", "tasks", "pages", "peak", "timeline", "sizes"]
    {
        let one = stdout(&run(&[report, "--json", "--threads", "1"], &file));
        for threads in ["2", "3", "8"] {
            assert_eq!(
                one,
                stdout(&run(&[report, "--json", "--threads", threads], &file)),
                "{report} {threads}"
            );
        }
    }
}

#[test]
fn an_address_has_its_lives_and_neighbours() {
    let scratch = Scratch::new();
    let file = sample(&scratch);
    // An address that was allocated and freed in the trace, by the dump.
    let dump = stdout(&run(&["dump", "--format", "jsonl"], &file));
    let events: Vec<Value> = dump.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let is = |e: &Value, name: &str| e["event"] == name;
    let freed: Vec<&Value> = events.iter().filter(|e| is(e, "kmem:kmem_cache_free")).collect();
    let ptr = events
        .iter()
        .filter(|e| is(e, "kmem:kmem_cache_alloc"))
        .map(|e| e["fields"]["ptr"].as_str().unwrap())
        .find(|ptr| freed.iter().filter(|f| f["fields"]["ptr"] == *ptr).count() > 1)
        .unwrap();
    let births = events
        .iter()
        .filter(|e| is(e, "kmem:kmem_cache_alloc") || is(e, "kmem:kmalloc"))
        .filter(|e| e["fields"]["ptr"] == ptr)
        .count();
    let who = json(&["who", ptr, "--json"], &file);
    let lives = who["lives"].as_array().unwrap();
    assert_eq!(lives.len(), births);
    assert!(lives.iter().all(|l| l["address"] == ptr));
    let times: Vec<u64> = lives.iter().map(|l| number(&l["born"])).collect();
    assert!(times.windows(2).all(|w| w[0] < w[1]), "in their order");
    assert!(
        lives.iter().any(|l| l["end"] == "freed" && l["freed"]["symbol"].as_str().unwrap().contains('+'))
    );
    // The middle of an object belongs to it.
    let inside = u64::from_str_radix(&ptr[2..], 16).unwrap() + 8;
    let of_inside = json(&["who", &format!("{inside:x}"), "--json"], &file);
    assert_eq!(at(&of_inside, "/lives"), at(&who, "/lives"));
    let text = stdout(&run(&["who", ptr, "--wide"], &file));
    assert!(text.starts_with(&format!("{births} object")), "{text}");
    assert!(text.contains(&format!(" held {ptr}; ")) && text.contains(" was allocated at +"), "{text}");
    assert!(stdout(&run(&["who", "1234"], &file)).starts_with("No object that was allocated in the trace"));
}

#[test]
fn other_tools_are_reconciled_to_the_byte() {
    let scratch = Scratch::new();
    for name in ["x86_64-6.1", "x86_64-6.12", "s390x-6.1", "armhf-6.1"] {
        let file = scratch.convert(&data(name));
        let report = json(&["reconcile", "--json"], &file);
        for bridge in report["reconcile"].as_array().unwrap() {
            assert_eq!(bridge["unexplained"], 0, "{name}: {bridge}");
        }
        let compat = json(&["summary", "--compat", "trace-cmd-mem", "--json"], &file);
        let raw = &json(&["summary", "--json"], &file)["slab"]["raw"];
        assert_eq!(sum(&compat["functions"], |f| number(&f["total_alloc"])), number(&raw["bytes_alloc"]));
        assert_eq!(sum(&compat["functions"], |f| number(&f["total_req"])), number(&raw["bytes_req"]));
        let text = stdout(&run(&["summary", "--compat", "trace-cmd-mem"], &file));
        assert!(text.starts_with("                Function            \tWaste\tAlloc\treq\t\tTotAlloc"));
        let refused = run(&["summary", "--compat", "trace-cmd-mem", "--pid", "1"], &file);
        assert_eq!(refused.status.code(), Some(2), "that tool selects nothing");
        assert_eq!(text.lines().count(), 2 + compat["functions"].as_array().unwrap().len());
    }
}

#[test]
fn temporary_objects_are_those_within_the_bound() {
    let scratch = Scratch::new();
    let file = sample(&scratch);
    let within = |time: &str| {
        let report = json(&["temporary", "--json", "--within", time], &file);
        sum(&report["temporary"], |r| number(&r["temporary"]))
    };
    let (few, more, all) = (within("5us"), within("1ms"), within("1000s"));
    assert!(few < more && more < all, "{few} {more} {all}");
    assert_eq!(all, number(&json(&["summary", "--json"], &file)["slab"]["frees_matched"]));
    assert_eq!(run(&["temporary", "--within", "soon"], &file).status.code(), Some(2));
}

/// Sub-buffers are taken out of a whole recording; its totals have to lie in the ranges of what is left.
#[test]
fn ranges_hold_the_truth() {
    let scratch = Scratch::new();
    let whole = json(&["summary", "--json"], &sample(&scratch));
    assert!(at(&whole, "/slab/ranges").is_null(), "nothing was lost");
    let (mut inside, mut bounded, mut outside) = (0, 0usize, Vec::new());
    for trial in 0..6u64 {
        let input = scratch.0.join(format!("trial{trial}"));
        crate::support::files::copy(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1"),
            &input,
        );
        // A pattern after the other.
        let pattern = [Pattern::Random, Pattern::Bursts(5), Pattern::SlowReader(4)][trial as usize % 3];
        sub_buffers_in(&input.join("tracefs"), trial, pattern, 0.1, ByteOrder::Little);
        let summary = json(&["summary", "--json"], &scratch.convert(&input));
        assert!(number(&summary["trace"]["lost_events"]) > 0);
        for section in ["slab", "slab.kmalloc", "slab.cache", "slab.raw", "pages"] {
            let (mut part, mut truth) = (&summary, &whole);
            section.split('.').for_each(|key| (part, truth) = (&part[key], &truth[key]));
            for (name, range) in part["ranges"].as_object().unwrap() {
                let value = truth[name].as_f64().unwrap();
                if name == "alloc_failures" {
                    assert!(range.is_null(), "they come in clumps: {range}");
                    continue;
                }
                let (low, high) = (range[0].as_f64().unwrap(), at(range, "/1").as_f64());
                bounded += usize::from(high.is_some());
                assert!(high.is_none_or(|high| low <= high), "{section}.{name}: {range}");
                if low <= value && high.is_none_or(|high| value <= high) {
                    inside += 1;
                } else {
                    outside.push(format!("trial {trial}: {section}.{name} {value} not in {range}"));
                }
            }
        }
        let text = stdout(&run(&["summary"], &scratch.0.join("trace.kmt")));
        assert!(text.contains("range with lost events"), "{text}");
    }
    // The thinnings are the same in every run, so this is too.
    assert!(outside.len() * 20 <= inside, "{inside} inside; outside: {outside:#?}");
    assert!(bounded * 10 >= inside * 7, "{bounded} of {inside} have a highest value");
}

#[test]
fn size_classes_are_called_as_in_slabinfo() {
    let scratch = Scratch::new();
    let file = sample(&scratch);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1");
    let slabinfo = std::fs::read_to_string(folder.join("slabinfo.after")).unwrap();
    let caches: BTreeSet<&str> = slabinfo.lines().filter_map(|l| l.split_whitespace().next()).collect();
    let report = json(&["caches", "--json"], &file);
    let names = report["caches"].as_array().unwrap_or_else(|| panic!("{report:#}"));
    let names = names.iter().map(|row| row["cache"].as_str().unwrap());
    let classes: Vec<&str> = names.filter(|n| n.starts_with("kmalloc-")).collect();
    assert!(classes.contains(&"kmalloc-1k") && classes.contains(&"kmalloc-96"), "{classes:?}");
    for class in classes {
        assert!(caches.contains(class), "{class} is not in slabinfo");
    }
    // As other tools and older kernels write it, it is found, too.
    let by = |name: &str| {
        json(&["callers", "--json", "--where", &format!("cache={name}")], &file)["callers"].clone()
    };
    assert_eq!(by("kmalloc-1024"), by("kmalloc-1k"));
}

#[test]
fn slabinfo_of_an_unknown_time_is_compared_and_bounds_nothing() {
    let scratch = Scratch::new();
    let file = sample(&scratch);
    let report = &json(&["slabinfo", "--json", "-l", "0"], &file)["slabinfo"];
    assert_eq!(report["times_known"], false, "{report:#}");
    let caches = report["caches"].as_array().unwrap();
    assert!(caches.len() > 20);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let (before, after) = (read("slabinfo.before"), read("slabinfo.after"));
    let active = |text: &str, name: &str| -> Option<i64> {
        let mut lines = text.lines().map(|line| line.split_whitespace());
        lines.find_map(|mut words| (words.next() == Some(name)).then(|| words.next()?.parse().ok())?)
    };
    let mut compared = 0;
    for row in caches {
        assert_eq!(row["live_range"][0][1], serde_json::Value::Null, "bounded: {row:#}");
        let name = row["cache"].as_str().unwrap();
        // Of kmalloc several caches are one row.
        if let Some(end) = active(&after, name).filter(|_| !name.starts_with("kmalloc-")) {
            assert_eq!(row["active"][0], end, "{row:#}");
            assert_eq!(row["change"]["active"], end - active(&before, name).unwrap_or(0), "{row:#}");
            compared += 1;
        }
    }
    assert!(compared > 10, "{compared}");
    // The same file with the time: bounded, as before.
    let timed = Scratch::new();
    let file = timed.changed("x86_64-6.1", |capture| {
        std::fs::write(capture.join("slabinfo.at.0-1"), &after).unwrap();
    });
    assert_eq!(json(&["slabinfo", "--json"], &file)["slabinfo"]["times_known"], true);
    let text = stdout(&run(&["slabinfo"], &scratch.0.join("trace.kmt")));
    assert!(text.contains("bounds no live figure") && text.contains("slabinfo.at.T0-T1"), "{text}");
}

#[test]
fn info_has_the_cost_of_the_recording() {
    let scratch = Scratch::new();
    let file = sample(&scratch);
    assert!(!stdout(&run(&["info"], &file)).contains("CPU for the recorder"));
    let mut bytes = std::fs::read(&file).unwrap();
    let (limits, plain) = (kmt_format::Limits::default(), kmt_format::Compression::None);
    let mut writer = kmt_format::write::Writer::append_to(&bytes, limits, plain).unwrap();
    let facts = [
        ("recorder.cpu_ns", "50000000"),
        ("recorder.events", "1000000"),
        ("recorder.length_ns", "10000000000"),
    ];
    writer.add_metadata(&facts.map(|(key, value)| (key, value.as_bytes()))).unwrap();
    bytes.extend(writer.finish().unwrap());
    std::fs::write(&file, bytes).unwrap();
    let text = stdout(&run(&["info", "--wide"], &file));
    assert!(text.contains("50.0 ms of CPU for the recorder: 50 ns per event, 0.5 % of one CPU"), "{text}");
}

/// The numbers of pages of all tasks are those of `summary`.
#[test]
fn page_allocations_of_tasks_add_up() {
    let scratch = Scratch::new();
    for capture in ["docs/sample/x86_64-6.1", "kmt-analyze/tests/data/x86_64-6.1-reclaim"] {
        let file = scratch.convert(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(capture));
        let tasks = json(&["tasks", "--json", "-l", "0"], &file);
        let pages = json(&["summary", "--json"], &file)["pages"].clone();
        for key in ["alloc_events", "alloc_failures", "pages_alloc", "pages_live"] {
            let rows = tasks["tasks"].as_array().unwrap().iter();
            let sum: u64 = rows.map(|row| row["pages"][key].as_u64().unwrap()).sum();
            assert_eq!(Some(sum), pages[key].as_u64(), "{capture}: {key}");
        }
    }
}
