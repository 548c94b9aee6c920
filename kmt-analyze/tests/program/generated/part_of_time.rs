//! A part of a recording, by `--time` or as a slice: what is judged was allocated in it, and what is older is reported apart.

use std::path::{Path, PathBuf};

use super::load::{DISK_INODE, Load, MS, SOCKET, WORKER_PID};
use crate::support::files::{Scratch, at, json, run, stderr, stdout};
use serde_json::Value;

/// Length of the recordings.
const LENGTH: u64 = 4_000 * MS;
/// The part.
const TIME: &str = "+1.5..+4";

/// A screen in one line.
fn words(args: &[&str], file: &Path) -> String {
    stdout(&run(args, file)).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A socket every 10 ms, in whose cache older ones are freed in the part: they lived for longer than the part.
fn sockets(scratch: &Scratch) -> PathBuf {
    let mut load = Load::new(3);
    load.noise(4_000, LENGTH);
    for number in 0..400 {
        let socket = load.alloc(number * 10 * MS, WORKER_PID, SOCKET);
        if number < 50 {
            load.free(3_000 * MS + number * 15 * MS, WORKER_PID, socket);
        }
    }
    load.page_alloc(100 * MS, WORKER_PID, 7);
    load.page_alloc(100 * MS, WORKER_PID, 8);
    load.page_free(2_000 * MS, WORKER_PID, 8);
    load.write(scratch, "sockets.kmt")
}

fn row_of_sockets(report: &Value) -> &Value {
    let rows = at(report, "/leaks/callers").as_array().unwrap();
    rows.iter().find(|row| row["symbol"].as_str().unwrap().starts_with(SOCKET.0)).unwrap()
}

/// The old program had lifetimes of 3 s in a time of 2.5 s, and the verdict `window_too_short`.
#[test]
fn a_time_and_a_slice_of_it_have_one_verdict_and_one_rate() {
    let scratch = Scratch::new();
    let path = sockets(&scratch);
    let part = scratch.0.join("part.kmt");
    let sliced = run(&["slice", "--time", TIME, "-o", part.to_str().unwrap()], &path);
    assert_eq!(sliced.status.code(), Some(0), "{}", stderr(&sliced));
    let [of_time, of_slice] =
        [json(&["leaks", "--json", "--time", TIME], &path), json(&["leaks", "--json"], &part)];
    let [one, other] = [&of_time, &of_slice].map(row_of_sockets);
    assert_eq!((&one["verdict"], &other["verdict"]), (&"grows".into(), &"grows".into()), "{one:#} {other:#}");
    for key in ["survivors", "freed", "freed_unseen", "lifetime_p99"] {
        assert_eq!(one[key], other[key], "{key}");
    }
    assert_eq!(one["freed"], 0, "those that are freed are older");
    let rates = [one, other].map(|row| row["old_bytes_per_second"].as_f64().unwrap());
    // Steps of a slice begin at its first event.
    assert!((rates[0] / rates[1] - 1.0).abs() < 0.02, "{rates:?}");
    let verdicts = |report: &Value| {
        let rows = at(report, "/leaks/callers").as_array().unwrap().iter();
        let mut all: Vec<(String, String)> =
            rows.map(|row| (row["symbol"].to_string(), row["verdict"].to_string())).collect();
        all.sort();
        all
    };
    assert_eq!(verdicts(&of_time), verdicts(&of_slice));
}

/// The old program had 50 sockets with lifetimes longer than the time.
#[test]
fn lifetimes_of_a_time_are_those_of_its_slice() {
    let scratch = Scratch::new();
    let path = sockets(&scratch);
    let part = scratch.0.join("part.kmt");
    run(&["slice", "--time", TIME, "-o", part.to_str().unwrap()], &path);
    let rows = |report: Value| {
        let of = |row: &Value| {
            let numbers = ["/lifetime", "/censored", "/freed_unseen"].map(|key| at(row, key).clone());
            (row["symbol"].as_str().unwrap().to_owned(), numbers)
        };
        let mut rows: Vec<(String, [Value; 3])> =
            at(&report, "/lifetimes").as_array().unwrap().iter().map(of).collect();
        rows.sort_by(|one, other| one.0.cmp(&other.0));
        rows
    };
    let of_time = rows(json(&["lifetimes", "--json", "--time", TIME], &path));
    assert_eq!(of_time, rows(json(&["lifetimes", "--json"], &part)));
    let sockets = of_time.iter().find(|row| row.0.starts_with(SOCKET.0)).unwrap();
    assert_eq!(sockets.1[1], 250, "{sockets:?}");
}

#[test]
fn what_is_older_than_the_time_has_a_line_of_its_own() {
    let scratch = Scratch::new();
    let path = sockets(&scratch);
    let report = json(&["leaks", "--json", "--time", TIME], &path);
    let older = at(&report, "/selection/older");
    let number = |key: &str| older[key].as_u64().unwrap();
    // 150 sockets, of which 50 are freed, and other objects.
    assert!(number("objects") >= 150 && number("objects") - number("objects_live") >= 50, "{older:#}");
    assert!(number("objects_live") >= 100 && number("bytes_live") >= 100 * SOCKET.2, "{older:#}");
    assert_eq!((number("pages"), number("pages_live")), (2, 1));
    let screen = words(&["leaks", "--time", TIME], &path);
    assert!(screen.contains("Older than the selected time: "), "{screen}");
    assert!(screen.contains("; 2 pages (8.00 KiB), 1 of them freed in it."), "{screen}");
    let whole = json(&["leaks", "--json"], &path);
    assert!(at(&whole, "/selection").is_null());
    assert!(!words(&["leaks"], &path).contains("Older than"));
}

/// The old program said "45.5 MiB to 45.5 MiB may be live", because events were lost in another time.
#[test]
fn live_figures_of_a_time_say_that_older_memory_is_in_them() {
    let scratch = Scratch::new();
    let mut load = Load::new(3);
    load.noise(2_000, LENGTH);
    (0..400).for_each(|number| {
        load.alloc(number * 10 * MS, WORKER_PID, SOCKET);
    });
    load.page_alloc(100 * MS, WORKER_PID, 7);
    load.page_free(3_000 * MS, WORKER_PID, 9);
    load.lost = Some((0, 0..1_000 * MS));
    let path = load.write(&scratch, "lost.kmt");
    let summary = json(&["summary", "--json", "--time", TIME], &path);
    assert!(at(&summary, "/slab/ranges").is_null(), "nothing was lost in this time");
    assert!(!at(&json(&["summary", "--json"], &path), "/slab/ranges").is_null());
    let older = at(&summary, "/selection/older");
    let screen = words(&["summary", "--time", TIME], &path);
    let said = format!(" {} of them (", older["objects_live"]);
    assert!(screen.contains(&said) && screen.contains("older than the selected time"), "{screen}");
    let said = ", 1 without a free event (at most 4.00 KiB are still allocated), 1 of them (4.00 KiB) older than the selected time.";
    assert!(screen.contains(said), "{screen}");
    assert!(screen.contains("Events were lost before this time, maybe frees of older objects: "), "{screen}");
    assert!(!screen.contains("Because events were lost"), "{screen}");
    // The allocation of a page that seems older may be lost.
    let first_screen = words(&["--time", TIME], &path);
    let said = "4.00 KiB of these are older than the selected time; 4.00 KiB without a recorded allocation were freed.";
    assert!(first_screen.contains(said), "{first_screen}");
    assert!(words(&["summary"], &path).contains("allocated before the trace, or lost"));
    // Sums of other tools are compared with those of the recorded events.
    let reconciled = words(&["reconcile"], &path);
    assert!(reconciled.contains("exact, of the recorded events "), "{reconciled}");
    assert!(
        reconciled.contains(" of all) were lost: all figures are of the recorded events."),
        "{reconciled}"
    );
}

/// A flight recorder: what it overwrote is before the recorded time. The old program refused to judge growth.
#[test]
fn events_before_the_first_one_make_nothing_uncertain() {
    let scratch = Scratch::new();
    let mut load = Load::new(3);
    // One CPU alone.
    load.noise_of(WORKER_PID, 4_000, LENGTH);
    (0..400).for_each(|number| {
        load.alloc(number * 10 * MS, WORKER_PID, SOCKET);
    });
    load.lost = Some(((WORKER_PID & 1) as u32, 0..1_000 * MS));
    let path = load.write(&scratch, "flight.kmt");
    let report = json(&["leaks", "--json"], &path);
    let lost = at(&report, "/trace/lost_events").as_u64().unwrap();
    assert!(lost > 1_000, "{lost}");
    assert_eq!(at(&report, "/trace/lost_events_before_first"), lost);
    assert_eq!(row_of_sockets(&report)["verdict"], "grows");
    assert_eq!(at(&json(&["summary", "--json"], &path), "/slab/uncertain"), 0);
    let before = "events before it were lost";
    for args in [&[][..], &["info"], &["leaks"]] {
        assert_eq!(run(args, &path).status.code(), Some(0), "{args:?}");
        let screen = words(args, &path);
        assert!(screen.contains(before), "{args:?}: {screen}");
        assert!(!screen.contains("event counts are minimums") && !screen.contains("% of all"), "{screen}");
    }
}

/// Inodes and the page cache grow, and the kernel can reclaim both. The old program counted the slab caches alone, and
/// only where nothing else grew.
#[test]
fn what_the_kernel_can_reclaim_is_one_sum_with_its_parts() {
    let scratch = Scratch::new();
    for (has_leak, begin) in
        [(false, "Nothing that the kernel must keep grew steadily in "), (true, "Slab memory grew by ")]
    {
        let mut load = Load::new(7);
        load.noise(1_000, LENGTH);
        // Events of 6.1 name a cache where objects are freed.
        let object = load.alloc(0, 800, DISK_INODE);
        load.free(MS, 800, object);
        // Frees of pages are recorded.
        load.page_of_file(0, WORKER_PID, 0xf_0000);
        load.page_free(MS, WORKER_PID, 0xf_0000);
        for number in 0..400 {
            let time = number * 10 * MS;
            load.alloc(time, WORKER_PID, DISK_INODE);
            for page in 0..4 {
                load.page_of_file(time + MS + page, WORKER_PID, 0x10_0000 + number * 4 + page);
            }
            if has_leak {
                load.alloc(time + 2 * MS, WORKER_PID, SOCKET);
            }
        }
        let path = load.write(&scratch, "caches.kmt");
        let screen = words(&[], &path);
        assert!(screen.starts_with(begin), "{screen}");
        let part = screen.split_once("What the kernel can reclaim grew by ").map(|(_, rest)| rest);
        let part = part.unwrap_or_else(|| panic!("{screen}"));
        let said = [": slab caches by ", "in ext4_inode_cache at ext4_alloc_inode), page cache by 1."];
        assert!(said.iter().all(|said| part.contains(said)), "{part}");
        assert!(words(&["leaks"], &path).contains("What the kernel can reclaim grew by "));
    }
}
