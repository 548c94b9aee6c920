//! The reports on fragmentation, leaks, latency and the like, against the totals of others and against the dump.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::support::files::{Scratch, at, data, json, run, stderr, stdout};
use serde_json::Value;

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1")
}

/// Captures of different kernels, and more in `KMT_CAPTURES`.
fn each(check: impl Fn(&Path)) {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.1-reclaim");
    for input in [sample(), data("s390x-6.1"), data("x86_64-6.12"), data("armhf-6.1"), own] {
        let scratch = Scratch::new();
        check(&scratch.convert(&input));
    }
    let more = std::env::var_os("KMT_CAPTURES").map(PathBuf::from);
    for path in more.iter().flat_map(|d| std::fs::read_dir(d).unwrap()).map(|e| e.unwrap().path()) {
        if path.extension().is_some_and(|e| e == "kmt") {
            check(&path);
        }
    }
}

fn number(value: &Value, path: &str) -> u64 {
    let found = at(value, path);
    found.as_u64().unwrap_or_else(|| panic!("{path} is {found}"))
}

fn sum(rows: &Value, key: &str) -> u64 {
    rows.as_array().unwrap().iter().map(|r| r[key].as_u64().unwrap()).sum()
}

#[test]
fn anomalies_are_those_that_the_summary_counts() {
    each(|file| {
        let slab = &json(&["summary", "--json"], file)["slab"];
        let all = json(&["anomalies", "--json"], file);
        let count = |kind: &str| {
            let found = all["anomalies"].as_array().unwrap().iter().find(|a| a["kind"] == kind).unwrap();
            assert_eq!(sum(&found["rows"], "count"), number(found, "/count"), "{kind}");
            number(found, "/count")
        };
        assert_eq!(count("mixed_api"), number(slab, "/mixed_api_frees"));
        assert_eq!(count("late_free"), number(slab, "/late_frees"));
        assert_eq!(count("double_report"), number(slab, "/double_reports"));
        assert_eq!(count("alloc_failures"), number(slab, "/alloc_failures"));
        assert_eq!(count("freed_unseen"), number(slab, "/freed_unseen"));
        assert_eq!(
            count("born_unseen") + count("freed_again_or_born_unseen"),
            number(slab, "/frees_untraced_birth")
        );
        assert_eq!((count("undersized"), count("inverted")), (0, 0), "no kernel does that");
    });
}

#[test]
fn crossings_are_those_that_the_summary_counts() {
    each(|file| {
        let slab = &json(&["summary", "--json"], file)["slab"];
        let crossing = &json(&["crosscpu", "--json"], file)["crosscpu"];
        assert_eq!(number(crossing, "/cross_cpu_frees"), number(slab, "/cross_cpu_frees"));
        assert_eq!(number(crossing, "/frees"), number(slab, "/frees_matched"));
        assert_eq!(sum(&crossing["callers"], "cross_cpu_frees"), number(slab, "/cross_cpu_frees"));
        assert_eq!(sum(&crossing["cpus"], "bytes"), number(slab, "/bytes_freed"));
    });
}

#[test]
fn internal_fragmentation_is_that_of_the_summary() {
    each(|file| {
        let slab = &json(&["summary", "--json"], file)["slab"];
        let internal = &json(&["fragmentation", "--json"], file)["fragmentation"]["internal"];
        let of = |kind: &str, key: &str| number(&internal[kind], key);
        for (ours, theirs) in
            [("/bytes_wasted", "/bytes_wasted"), ("/bytes_wasted_live", "/bytes_wasted_live")]
        {
            let kmalloc = of("kmalloc", ours) + of("kmalloc_large", ours);
            assert_eq!(kmalloc, number(&slab["kmalloc"], theirs));
            assert_eq!(of("caches", ours), number(&slab["cache"], theirs));
        }
    });
}

#[test]
fn the_model_of_what_if_is_exact_for_the_kernels_own_classes() {
    each(|file| {
        let report = &json(&["what-if", "--json"], file)["what_if"];
        assert_eq!(number(report, "/bytes_alloc_of_model"), number(report, "/bytes_alloc"));
        for layout in report["layouts"].as_array().unwrap() {
            assert!(layout["slab_bytes_max"].as_u64() >= layout["bytes_live_max"].as_u64(), "{layout}");
        }
    });
}

#[test]
fn the_model_of_what_if_counts_what_is_in_the_window() {
    each(|file| {
        let whole = json(&["summary", "--json"], file);
        let (first, last) = (number(&whole, "/trace/first"), number(&whole, "/trace/last"));
        let middle = format!("+{:.9}..", (last - first) as f64 / 2e9);
        let report = &json(&["what-if", "--json", "--time", &middle], file)["what_if"];
        assert_eq!(number(report, "/bytes_alloc_of_model"), number(report, "/bytes_alloc"));
        let kmalloc = &json(&["summary", "--json", "--time", &middle], file)["slab"]["kmalloc"];
        assert!(number(report, "/bytes_alloc") <= number(kmalloc, "/bytes_alloc"));
    });
}

#[test]
fn columns_of_the_page_allocator_are_counts_of_events() {
    each(|file| {
        let counted = json(&["events", "--json"], file)["events"].clone();
        let events: BTreeMap<&str, u64> =
            counted.as_object().unwrap().iter().map(|(e, c)| (e.as_str(), number(c, "/events"))).collect();
        let report = json(&["tasks", "--json"], file);
        // What was not recorded is null in every row.
        let column = |key: &str| -> Option<u64> {
            let rows = report["tasks"].as_array().unwrap().iter();
            rows.map(|t| t["page_allocator"].pointer(key).unwrap().as_u64()).sum()
        };
        for (key, event) in [
            ("/alloc_events", "kmem:mm_page_alloc"),
            ("/zone_locked_events", "kmem:mm_page_alloc_zone_locked"),
            ("/free_events", "kmem:mm_page_free"),
            ("/free_batched_events", "kmem:mm_page_free_batched"),
            ("/pcpu_pages_drained", "kmem:mm_page_pcpu_drain"),
            ("/fallbacks", "kmem:mm_page_alloc_extfrag"),
        ] {
            assert_eq!(column(key), events.get(event).copied(), "{event}");
        }
        let parts = column("/fallbacks_severe").zip(column("/fallbacks_moderate")).map(|(s, m)| s + m);
        assert_eq!(column("/fallbacks_causing"), parts);
    });
}

#[test]
fn all_reports_of_one_pass_say_what_each_says_alone() {
    each(|file| {
        let together = json(&["all", "--json", "-l", "1000000"], file);
        for (title, alone, key) in [
            ("summary", "summary", "slab"),
            ("call_sites", "callers", "callers"),
            ("caches", "caches", "caches"),
            ("tasks", "tasks", "tasks"),
            ("lifetimes", "lifetimes", "lifetimes"),
            ("peak", "peak", "peak"),
            ("timeline", "timeline", "timeline"),
            ("not_seen_freed", "leaks", "leaks"),
            ("fragmentation", "fragmentation", "fragmentation"),
            ("latency", "latency", "latency"),
            ("crosscpu", "crosscpu", "crosscpu"),
            ("anomalies", "anomalies", "anomalies"),
            ("pages", "pages", "pages"),
        ] {
            let own = json(&[alone, "--json"], file);
            let refused = at(&together, "/refused").get(title);
            if refused.is_some() {
                assert_eq!(
                    (refused, at(&together, &format!("/{title}"))),
                    (own.get("refused"), &Value::Null)
                );
                continue;
            }
            let both = [at(&together, &format!("/{title}/{key}")), at(&own, &format!("/{key}"))];
            assert_eq!(both[0], both[1], "{title}");
        }
        let one = stdout(&run(&["all", "--threads", "1"], file));
        assert_eq!(one, stdout(&run(&["all", "--threads", "3"], file)), "the same on any number of cores");
        assert!(one.contains("== size class simulation ==") && one.contains("== leak report =="));
    });
}

#[test]
fn a_file_differs_from_itself_in_nothing() {
    each(|file| {
        let path = file.to_str().unwrap();
        let compare = |by: &str| {
            let report = json(&["diff", "--json", "--by", by, path], file);
            assert_eq!(number(&report, "/diff/rows_beyond_noise"), 0, "{by}");
            for row in report["diff"]["rows"].as_array().unwrap() {
                assert_eq!(row["bytes_alloc"]["change"].as_f64(), Some(0.0));
            }
            report
        };
        compare("cache");
        compare("task");
        compare("module");
        let report = compare("call-site");
        let totals = json(&["summary", "--json"], file);
        let rows = report["diff"]["rows"].as_array().unwrap().iter().filter(|r| r["kind"] != "pages");
        let sums = rows.fold((0.0, 0.0), |sum, r| {
            let of = |figure: &str| r[figure]["before"].as_f64().unwrap();
            (sum.0 + of("bytes_alloc"), sum.1 + of("bytes_live"))
        });
        assert_eq!(sums.0 as u64, number(&totals, "/slab/bytes_alloc"));
        assert_eq!(sums.1 as u64, number(&totals, "/slab/bytes_live"));
    });
}

/// A number as text has it.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let group = |(place, digit): (usize, char)| {
        let comma = place > 0 && (digits.len() - place) % 3 == 0;
        if comma { format!(",{digit}") } else { digit.to_string() }
    };
    digits.chars().enumerate().map(group).collect()
}

/// The text of a report with exact numbers and all rows, its words separated by one blank.
fn exact(report: &str, file: &Path) -> String {
    let text = stdout(&run(&[report, "--bytes", "--wide", "-l", "0"], file));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn screens_have_the_numbers_of_their_documents() {
    each(|file| {
        let crossing = &json(&["crosscpu", "--json"], file)["crosscpu"];
        let sizes = ["/cross_cpu_frees", "/frees", "/cross_cpu_bytes"].map(|key| number(crossing, key));
        let text = exact("crosscpu", file);
        let [crossed, frees, bytes] = sizes.map(grouped);
        let answer = match crossed.as_str() {
            "0" => format!("No object was freed on another CPU than it was allocated on ({frees} frees)."),
            _ => format!("{crossed} of {frees} frees ("),
        };
        assert!(text.starts_with(&answer) && (crossed == "0" || text.contains(&bytes)), "{text}");
        for pair in crossing["cpus"].as_array().unwrap() {
            let of = ["/allocated_on", "/freed_on", "/frees", "/bytes"].map(|key| grouped(number(pair, key)));
            assert!(text.contains(&of.join(" ")), "{of:?}: {text}");
        }
        let pages = &json(&["pages", "--json"], file)["pages"];
        let text = exact("pages", file);
        let of = |key: &str| grouped(number(pages, key));
        let (allocated, live) = (of("/pages_alloc"), of("/pages_live"));
        assert!(text.starts_with(&format!("The kernel allocated {allocated} pages")), "{text}");
        assert!(
            text.contains(&format!("; {live} pages ({} bytes) are still allocated", of("/bytes_live"))),
            "{text}"
        );
        for row in pages["by_order_and_migratetype"].as_array().unwrap() {
            let kind = row["migratetype_text"].as_str().unwrap();
            let [order, allocs] = ["/order", "/alloc_events"].map(|key| grouped(number(row, key)));
            assert!(text.contains(&format!("{order} {kind} {allocs} ")), "{row}: {text}");
        }
        let simulated = &json(&["what-if", "--json"], file)["what_if"];
        let text = exact("what-if", file);
        for layout in simulated["layouts"].as_array().unwrap() {
            let average = grouped(number(layout, "/slab_bytes_on_average"));
            let row = format!("{} {average} ", layout["name"].as_str().unwrap());
            assert!(text.contains(&row), "{row}: {text}");
        }
    });
}

#[test]
fn the_largest_loss_is_that_of_the_document() {
    each(|file| {
        let rows = &json(&["fragmentation", "--json"], file)["fragmentation"];
        let inside = ["kmalloc", "kmalloc_large", "caches"];
        let inside = inside.map(|kind| number(&rows["internal"][kind], "/bytes_wasted_live"));
        let slabs = rows["occupancy"].get("caches");
        let unused = slabs.map(|slabs| sum(slabs, "bytes_held") - sum(slabs, "bytes_live"));
        let pages = &json(&["pages", "--json"], file)["pages"]["by_order_and_migratetype"];
        let order = pages.as_array().unwrap().iter().map(|row| number(row, "/order")).max().unwrap();
        let zones = rows["pages"]["zones"].as_array();
        let unusable = |zone: &Value| -> u64 {
            let blocks = zone["free_blocks"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap());
            blocks.take(order as usize).enumerate().map(|(order, blocks)| blocks << order).sum()
        };
        let after =
            zones.map(|zones| zones.iter().filter(|zone| zone["when"] == "after").map(unusable).sum());
        let losses = [
            ("inside objects", Some(inside.iter().sum::<u64>())),
            ("inside slabs", at(rows, "/slabs").get("tail_bytes").map(|bytes| bytes.as_u64().unwrap())),
            ("between objects", unused),
            // Pages of these machines have 4 KiB.
            ("between pages", after.map(|pages: u64| pages * 4096)),
        ];
        let text = exact("fragmentation", file);
        for (place, bytes) in losses {
            let row =
                bytes.map_or(format!("{place}: unknown"), |bytes| format!("{place} {} ", grouped(bytes)));
            assert!(text.contains(&row), "{row}: {text}");
        }
        let (place, bytes) = losses.into_iter().max_by_key(|(_, bytes)| *bytes).unwrap();
        let largest = format!("Largest loss: {} bytes {place}", grouped(bytes.unwrap()));
        assert!(text.starts_with(&largest), "{largest}: {text}");
        for zone in zones.into_iter().flatten() {
            for index in zone["extfrag_index"].as_array().unwrap() {
                let index = format!("{:.3}", index.as_f64().unwrap() / 1000.0);
                assert!(text.contains(&index), "{index}: {text}");
            }
        }
    });
}

#[test]
fn questions_that_make_no_sense_are_refused() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    for (args, remedy) in [
        (vec!["diff"], "<AFTER>"),
        (vec!["latency", "--threshold", "soon"], "expected a number with ns, us, ms, s, min or h"),
        (vec!["what-if", "--split", "("], "regex"),
        (vec!["all", "--where", "lifetime>1ms"], "lifetimes, callers"),
    ] {
        let output = run(&args, &file);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{args:?}: {output:?}");
        assert!(stderr(&output).contains(remedy), "{args:?}: {}", stderr(&output));
    }
    // Nothing is made up where it cannot be known.
    for (report, remedy) in [("callgraph", "--stack"), ("latency", "vmscan:")] {
        let output = run(&[report], &file);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
        assert!(stderr(&output).contains(remedy), "{}", stderr(&output));
    }
}

#[test]
fn a_moment_is_reported_as_a_moment() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let text = stdout(&run(&["caches", "--at", "+0.009"], &file));
    assert!(text.contains("slab objects and") && text.contains("that were allocated then"), "{text}");
    assert!(!text.contains("0 of 1") && !text.contains("in 0.000 s"), "{text}");
    // Frees of the whole trace name the caches, also of objects that were not allocated then.
    let nameless = |args: &[&str]| -> BTreeSet<u64> {
        let report = json(args, &file);
        let rows = report["caches"].as_array().unwrap().iter().filter(|row| row["kind"] == "nameless");
        rows.map(|row| row["object_size_min"].as_u64().unwrap()).collect()
    };
    let (then, whole) = (nameless(&["caches", "--json", "--at", "+0.009"]), nameless(&["caches", "--json"]));
    assert!(then.is_subset(&whole), "{then:?}, whole: {whole:?}");
    assert!(!text.contains("before 5.12"), "{text}");
    let pages = stdout(&run(&["pages", "--at", "+0.009", "-l", "3"], &file));
    assert!(pages.lines().next().unwrap().ends_with("are allocated."), "{pages}");
    let pages = json(&["pages", "--json", "--at", "+0.009", "-l", "3"], &file);
    for table in ["by_order_and_migratetype", "by_gfp_flags"] {
        let live: Vec<u64> = pages["pages"][table]
            .as_array()
            .unwrap_or_else(|| panic!("{table}: {pages:#}"))
            .iter()
            .map(|row| row["pages_live"].as_u64().unwrap())
            .collect();
        assert!(live.len() > 1 && live.is_sorted_by(|a, b| a >= b), "{table}: {live:?}");
    }
    let stacks = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.18-stacks");
    let graph = json(&["callgraph", "--json", "--at", "+0.0008"], &scratch.convert(&stacks));
    assert!(graph["callgraph"]["root"]["bytes_live"].as_u64().unwrap() > 0);
    assert!(!graph["callgraph"]["root"]["children"].as_array().unwrap().is_empty());
}
