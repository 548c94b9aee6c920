//! Parts of recordings that `slice` wrote: the kernel's counts of the begin and the end are of the recording before it was sliced.

use std::fs;
use std::path::{Path, PathBuf};

use crate::balance_pages::{Edited, recording_with};
use crate::model::{BASE, Crafted};
use crate::support::files::{Scratch, json, run, stderr, stdout};
use crate::support::model::{Event, What};

fn slice(file: &Path, name: &str, args: &[&str]) -> PathBuf {
    let part = file.with_file_name(name);
    let done = run(&[&["slice", "-o", part.to_str().unwrap()], args].concat(), file);
    assert!(done.status.success(), "{done:?}");
    part
}

fn words(args: &[&str], file: &Path) -> String {
    stdout(&run(args, file)).split_whitespace().collect::<Vec<_>>().join(" ")
}

const SENTENCE: &str = "The kernel's counts are of the whole recording before it was sliced";

/// A recording of 4 s in which a cache grew without events, and free memory fell.
fn recording(scratch: &Scratch) -> PathBuf {
    let mut crafted = Crafted::new();
    let pairs: [(&str, &[u8]); 4] = [
        ("source", b"live"),
        ("recorder.cpu_ns", b"3000000000"),
        ("recorder.events", b"5"),
        ("recorder.length_ns", b"4000000000"),
    ];
    crafted.writer.add_metadata(&pairs).unwrap();
    let slabinfo = |active: u64| {
        let slabs = active.div_ceil(16);
        format!(
            "slabinfo - version: 2.1\ncache_a 20 64 96 32 1 : tunables 0 0 0 : slabdata 2 2 0\nio_kiocb {active} {active} \
             256 16 1 : tunables 0 0 0 : slabdata {slabs} {slabs} 0\n"
        )
    };
    let meminfo = |anonymous: u64| {
        format!(
            "MemTotal: 4000000 kB\nMemFree: {} kB\nBuffers: 1000 kB\nCached: 300000 kB\nSwapCached: 0 kB\nAnonPages: {anonymous} \
             kB\nShmem: 50000 kB\nSlab: 70000 kB\nSReclaimable: 40000 kB\nSUnreclaim: 30000 kB\nKernelStack: 8000 kB\n\
             PageTables: 6000 kB\n",
            2_000_000 - anonymous
        )
    };
    for (when, active, anonymous) in [("before", 64, 250_000), ("after", 29_792, 260_000)] {
        crafted.writer.add_file(&format!("slabinfo.{when}"), slabinfo(active).as_bytes()).unwrap();
        crafted.writer.add_file(&format!("meminfo.{when}"), meminfo(anonymous).as_bytes()).unwrap();
    }
    for number in 0..5 {
        let time = 1_000_000_000 * (number + 1);
        let mut event = |time, what| crafted.event(&Event { time, cpu: 0, pid: 7, what });
        let ptr = BASE + (16 << 12) + number * 96;
        event(time, What::Alloc { kmalloc: false, site: 5, ptr, req: 96, alloc: 96 });
        // The end is the time of the last allocation.
        if number < 3 {
            event(time + 1_000, What::Free { kfree: false, ptr });
        }
    }
    let file = scratch.0.join("whole.kmt");
    fs::write(&file, crafted.writer.finish().unwrap()).unwrap();
    file
}

#[test]
fn counts_of_the_kernel_in_a_part_of_the_time_are_of_the_whole_recording() {
    let scratch = Scratch::new();
    let whole = recording(&scratch);
    let part = slice(&whole, "part.kmt", &["--time", "+1..+2.5"]);
    let known = "of its 4.00 s, this file has 1.00 s to 2.00 s.";
    let again = slice(&part, "again.kmt", &["--time", "+0.5..+2"]);
    for (file, known) in [(&part, known), (&again, "of its 4.00 s, this file has 2.00 s to 2.00 s.")] {
        for args in [&[][..], &["balance"], &["info", "--diff"], &["slabinfo"]] {
            let text = words(args, file);
            assert!(text.contains(&format!("{SENTENCE}: {known}")), "{args:?}: {text}");
        }
    }
    let accounts = json(&["timeline", "--by", "account", "--json"], &part)["accounts"].take();
    let times: std::collections::BTreeSet<u64> =
        accounts["amounts"].as_array().unwrap().iter().map(|row| row["time"].as_u64().unwrap()).collect();
    assert_eq!(times, [1_000_000_000, 5_000_000_000].into(), "the begin and the end of the whole");
    let pairs = json(&["info", "--json"], &part)["meta"].take();
    assert_eq!(pairs["slice.of"], "1000000000 5000000000", "{pairs:#}");
    // A selection of all of the time, or of none.
    for args in [&[][..], &["--time", "+0..+9"], &["--pid", "7"]] {
        let file = slice(&whole, "all.kmt", &[args, &["--force"]].concat());
        for report in [&[][..], &["balance"], &["info", "--diff"], &["slabinfo"]] {
            let text = words(report, &file);
            assert!(!text.contains("sliced"), "{args:?} {report:?}: {text}");
        }
    }
    for args in [&[][..], &["balance"], &["info", "--diff"], &["slabinfo"]] {
        let text = words(args, &whole);
        assert!(!text.contains("sliced"), "{args:?}: {text}");
    }
}

/// Events of a part do not explain the growth of a cache.
#[test]
fn growth_without_events_is_no_finding_of_a_part() {
    let scratch = Scratch::new();
    let whole = recording(&scratch);
    let grows = |file: &Path| {
        let found = json(&["findings", "--json"], file);
        let is_found = found["findings"].as_array().unwrap().iter().any(|f| f["finding"] == "unseen_growth");
        let rows = json(&["slabinfo", "--json"], file);
        let caches = rows["slabinfo"]["caches"].as_array().unwrap().clone();
        assert_eq!(caches.iter().any(|cache| !cache["change"].is_null()), is_found, "{rows:#}");
        assert_eq!(rows["slabinfo"]["unseen_growth"].as_array().unwrap().is_empty(), !is_found, "{rows:#}");
        is_found
    };
    assert!(grows(&whole));
    assert!(grows(&slice(&whole, "all.kmt", &[])));
    for (name, args) in [("time.kmt", ["--time", "+1..+2.5"]), ("pid.kmt", ["--pid", "7"])] {
        let part = slice(&whole, name, &args);
        assert!(!grows(&part), "{args:?}");
        assert!(!words(&["leaks"], &part).contains("without allocation events"), "{args:?}");
    }
}

/// slabinfo of the end is from 2 s after the part: it bounds nothing.
#[test]
fn counts_of_a_later_end_bound_nothing() {
    let scratch = Scratch::new();
    let whole = recording(&scratch);
    let is_timed = |file: &Path| json(&["slabinfo", "--json"], file)["slabinfo"]["times_known"].take();
    assert_eq!(is_timed(&whole), true);
    assert_eq!(is_timed(&slice(&whole, "early.kmt", &["--time", "..+2.5"])), false);
    assert_eq!(is_timed(&slice(&whole, "late.kmt", &["--time", "+1.."])), true);
}

/// Pages of the events of a part are no parts of changes of the whole recording.
#[test]
fn events_of_a_part_are_no_parts_of_changes() {
    let more: Edited = |name, text| match name {
        "meminfo" => text
            .replace("Cached: 300000 kB", "Cached: 300300 kB")
            .replace("MemFree: 2000000", "MemFree: 1999700"),
        _ => text.to_owned(),
    };
    let scratch = Scratch::new();
    let readings = [("padding", (1, 2), "x".repeat(200_000))];
    let file = recording_with(&scratch, true, &readings, (more, Some("803")));
    let own = "this recording's own file";
    assert!(words(&[], &file).contains(own));
    let part = slice(&file, "part.kmt", &["--time", "+0.0001.."]);
    let text = words(&[], &part);
    assert!(text.contains("page cache of files took 300 KiB.") && text.contains(SENTENCE), "{text}");
    assert!(!text.contains(own), "{text}");
    assert!(json(&["balance", "--json"], &part)["largest_holder"].is_null());
}

#[test]
fn what_a_part_has_is_of_the_part() {
    let scratch = Scratch::new();
    let whole = recording(&scratch);
    let live = "of what was allocated during the recording.";
    assert!(words(&["--wide"], &whole).contains(live), "{}", words(&["--wide"], &whole));
    let part = slice(&whole, "part.kmt", &["--time", "+1..+3"]);
    let said = words(&["--wide"], &part);
    assert!(said.contains("of what was allocated in this part of the recording."), "{said}");
    // What the recorder took is of the whole.
    let cost = "3.00 s of CPU for the recorder: 600000000 ns per event, 75.0 % of one CPU";
    let said = words(&["info", "--wide"], &whole);
    assert!(said.contains(cost) && !said.contains("before it was sliced)"), "{said}");
    let said = words(&["info", "--wide"], &part);
    assert!(said.contains(&format!("{cost} (of the recording before it was sliced)")), "{said}");
}

#[test]
fn a_part_outside_of_the_recording_is_refused() {
    let scratch = Scratch::new();
    let whole = recording(&scratch);
    let part = scratch.0.join("part.kmt");
    for time in ["+5..+9", "0.1..0.2"] {
        let refused = run(&["slice", "--time", time, "-o", part.to_str().unwrap()], &whole);
        assert_eq!(refused.status.code(), Some(1), "{time}: {refused:?}");
        let said = stderr(&refused);
        assert!(
            said.contains("has no event in that time") && said.contains("from 1.000000 to 5.000000"),
            "{said}"
        );
        assert!(!part.exists(), "{time}");
    }
}
