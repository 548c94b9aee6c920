//! Words on screens that a reader has to understand without the source: causes, bounds and headings.

use std::path::PathBuf;

use kmt_format::Loss;

use crate::model::{BASE, Crafted};
use crate::support::files::{Scratch, data, json, run, stderr, stdout};
use crate::support::model::{Event, What};

/// A recording that lost as many events by the counters of the kernel.
fn lossy(scratch: &Scratch) -> PathBuf {
    scratch.changed("x86_64-6.1", |folder| {
        let stats = folder.join("tracefs/per_cpu/cpu0/stats");
        let text = std::fs::read_to_string(&stats).unwrap();
        std::fs::write(stats, text.replace("overrun: 0\ncommit", "overrun: 9999\ncommit")).unwrap();
    })
}

/// Objects of one size class, most of whose events were lost; /proc/slabinfo of the end has 500 of them.
fn with_slabinfo(scratch: &Scratch, has_slabinfo: bool) -> PathBuf {
    let mut crafted = Crafted::new();
    for number in 0..40 {
        let (kmalloc, ptr) = (true, BASE + (number << 12));
        let what = What::Alloc { kmalloc, site: 5, ptr, req: 64, alloc: 64 };
        crafted.event(&Event { time: 1_000_000 + number * 1_000, cpu: 0, pid: 7, what });
        let what = What::Free { kfree: true, ptr };
        let is_freed = number % 4 == 0;
        is_freed.then(|| crafted.event(&Event { time: 1_000_500 + number * 1_000, cpu: 0, pid: 7, what }));
        if number == 20 {
            crafted.writer.flush(0).unwrap();
            crafted.writer.add_loss(0, Loss::counted(5_000)).unwrap();
        }
    }
    let slabinfo = b"slabinfo - version: 2.1\nkmalloc-64 500 512 64 64 1 : tunables 0 0 0 : slabdata 8 8 0\n";
    if has_slabinfo {
        crafted.writer.add_file_at("slabinfo", slabinfo, (1_100_000, 1_100_001)).unwrap();
    }
    let file = scratch.0.join("crafted.kmt");
    std::fs::write(&file, crafted.writer.finish().unwrap()).unwrap();
    file
}

/// The text of a screen without its line breaks.
fn screen(args: &[&str], file: &std::path::Path) -> String {
    let words: Vec<String> = stdout(&run(args, file)).split_whitespace().map(str::to_owned).collect();
    words.join(" ")
}

#[test]
fn terms_of_reconcile_have_no_codes() {
    let scratch = Scratch::new();
    let text = screen(&["reconcile"], &scratch.convert(&data("x86_64-6.1")));
    assert!(text.contains("implied frees: address allocated again"), "{text}");
    assert!(!text.contains("(R"), "{text}");
}

#[test]
fn live_objects_without_a_bound_name_the_cause() {
    let scratch = Scratch::new();
    let file = lossy(&scratch);
    for report in ["callers", "caches"] {
        let text = screen(&[report, "--wide"], &file);
        assert!(text.contains(" no bound "), "{report}: {text}");
        assert!(text.contains("No bound: events were lost, and the file has no /proc/slabinfo"), "{text}");
        assert!(!text.contains("has no events or stacks"), "{report}: {text}");
    }
}

#[test]
fn a_bound_says_of_what_it_is() {
    for (has_slabinfo, sentence) in [
        (
            true,
            " and at most 31.2 KiB: all objects of their caches in /proc/slabinfo, also those allocated before the trace.",
        ),
        (false, " of slab objects are live; the upper bound is unknown."),
    ] {
        let scratch = Scratch::new();
        let text = screen(&["summary"], &with_slabinfo(&scratch, has_slabinfo));
        assert!(text.contains(sentence), "{text}");
        assert!(!text.contains("nothing bounds the rest"), "{text}");
        assert_eq!(text.contains("Live at most: all objects of these caches"), has_slabinfo, "{text}");
    }
}

#[test]
fn the_explanation_of_live_memory_follows_its_heading() {
    let scratch = Scratch::new();
    let file = lossy(&scratch);
    let text = screen(&["findings"], &file);
    assert!(text.contains("Without a free event: of what was allocated"), "{text}");
    assert!(!text.contains("Still allocated:"), "{text}");
}

/// Output that has no place for it: one line on standard error. JSON has it inside.
#[test]
fn losses_are_reported_beside_data() {
    let scratch = Scratch::new();
    let file = lossy(&scratch);
    let line = "9,999 events (90.8 % of all) were lost: event counts are minimums; live figures are uncertain; `summary` has ranges.";
    for args in [
        &["dump"][..],
        &["callers", "--csv"],
        &["export", "csv"],
        &["export", "csv", "--of", "callers"],
        &["export", "folded"],
        &["verify"],
    ] {
        let said = stderr(&run(args, &file));
        assert_eq!(said.matches(line).count(), 1, "{args:?}: {said}");
    }
    for args in [&["callers"][..], &["callers", "--json"], &["verify", "--json"]] {
        assert!(!stderr(&run(args, &file)).contains("were lost"), "{args:?}");
    }
    // All that reduces trust: each sentence of the JSON document, but those about what is normal.
    let document = json(&["callers", "--json"], &file);
    let notes = document["trust"]["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap());
    const NORMAL: [&str; 3] = ["Direct map base", "The direct map base", "The clock is"];
    let is_normal = |note: &&str| NORMAL.iter().any(|begin| note.starts_with(begin));
    let notes: Vec<&str> = notes.filter(|note| !is_normal(note)).collect();
    assert!(notes.len() > 1, "{document}");
    for args in [
        &["callers", "--csv"][..],
        &["export", "csv", "--of", "callers"],
        &["export", "ndjson", "--of", "callers"],
        &["export", "csv", "--of", "objects"],
        &["export", "folded"],
    ] {
        let output = run(args, &file);
        let said = stderr(&output);
        for note in &notes {
            assert!(
                said.contains(&format!("warning: {}: {note}\n", file.display())),
                "{args:?}: {note}: {said}"
            );
        }
        assert!(!stdout(&output).contains("were lost"), "{args:?}");
    }
}

/// A report without an answer: as CSV its columns, and the reason on standard error with exit code 1.
#[test]
fn a_refused_report_has_its_columns_as_csv() {
    let scratch = Scratch::new();
    let file = lossy(&scratch);
    let whole = Scratch::new();
    let short = whole.convert(&data("x86_64-6.1"));
    for (table, columns) in [
        (&[][..], "verdict,api,call_site,symbol,cache,use,survivors,bytes,"),
        (&["--table", "pages"], "verdict,api,call_site,symbol,cache,use,survivors,bytes,"),
        (&["--table", "leaks.families"], "makers.name,"),
    ] {
        for (file, why) in [(&file, "90.8 % of all events were lost"), (&short, "18.1 ms is too short")] {
            let args = [&["leaks", "--csv"][..], table].concat();
            let output = run(&args, file);
            let (text, said) = (stdout(&output), stderr(&output));
            assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
            assert!(said.contains(": no leak report: ") && said.contains(why), "{args:?}: {said}");
            assert!(text.starts_with(columns) && text.lines().count() == 1, "{args:?}: {text}");
        }
    }
    let output = run(&["export", "ndjson", "--of", "leaks"], &file);
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), String::new()));
}

#[test]
fn an_empty_table_says_what_the_trace_has() {
    let scratch = Scratch::new();
    let output = run(&["callers", "--csv", "--where", "size=77777"], &scratch.convert(&data("x86_64-6.1")));
    assert!(stderr(&output).contains("sizes: 16 to 8,448 bytes"), "{}", stderr(&output));
}

/// Without the counters of the kernel 0 lost events are those that left a mark.
#[test]
fn no_lost_events_without_counters_are_a_minimum() {
    for has_counters in [true, false] {
        let scratch = Scratch::new();
        let file = scratch.changed("x86_64-6.1", |folder| {
            for cpu in std::fs::read_dir(folder.join("tracefs/per_cpu")).unwrap() {
                let _ = (!has_counters).then(|| std::fs::remove_file(cpu.unwrap().path().join("stats")));
            }
        });
        let trace = &json(&["summary", "--json"], &file)["trace"];
        assert_eq!(trace["lost_events"], 0, "{trace:#}");
        assert_eq!(trace["lost_events_is_minimum"], !has_counters, "{trace:#}");
        assert_eq!(trace["per_cpu"][0]["lost_events_is_minimum"], !has_counters, "{trace:#}");
    }
}

/// The table of CSV without `--table` does not depend on the data where one has the report's name.
#[test]
fn the_table_of_a_report_has_its_name() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    for (report, first) in [("findings", "finding,sentence,"), ("callers", "call_site,symbol,")] {
        let args = [report, "--csv"];
        let output = run(&args, &file);
        let heading = stdout(&output).lines().next().unwrap_or_default().to_owned();
        assert!(heading.starts_with(first), "{args:?}: {heading}: {}", stderr(&output));
    }
}
