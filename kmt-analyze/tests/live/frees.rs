//! Objects that the running kernel frees without an event, against /proc/slabinfo at the same times.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::alone::Alone;
use crate::support::files::{Scratch, json};
use kmt_capture::record::{self, Options, Preset};
use kmt_format::read::Trace;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use serde_json::Value;

/// Objects that slabinfo may call active though they are free: in per-CPU slabs, partial lists and sheaves.
const HIDDEN: u64 = 3_000;

/// Rounds of instances of epoll that watch a pipe, all closed again.
fn churn(rounds: u32) {
    for _ in 0..rounds {
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        let watchers: Vec<_> = (0..400)
            .map(|_| {
                let watcher = epoll::create(CreateFlags::CLOEXEC).unwrap();
                epoll::add(&watcher, &reader, EventData::new_u64(1), EventFlags::IN).unwrap();
                watcher
            })
            .collect();
        drop(watchers);
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|n| n.as_u64().unwrap_or(0)).collect()
}

/// At every time at which slabinfo was read: no more is certain than was active or came while it was read, and what grew
/// can be live.
fn holds(report: &Value) -> usize {
    let mut bounded = 0;
    for cache in report["caches"].as_array().unwrap() {
        let name = cache["cache"].as_str().unwrap();
        let (active, live) = (&cache["active"], numbers(&cache["live"]));
        let (waiting, born) = (numbers(&cache["waiting"]), numbers(&cache["born_while_read"]));
        let ended = numbers(&cache["ended_while_read"]);
        if active.as_array().unwrap().iter().any(Value::is_null) {
            continue;
        }
        let (active, active_max) = (numbers(active), numbers(&cache["active_max"]));
        let ranges: Vec<Vec<u64>> = cache["live_range"].as_array().unwrap().iter().map(numbers).collect();
        for (at, range) in ranges.iter().enumerate() {
            let most_active = active_max[at] + born[at];
            assert!(range[0] <= most_active, "{name}: at least {} of {most_active}", range[0]);
            // Objects that wait for a grace period, long on a busy machine, can be live too.
            let most = live[at] + waiting[at];
            assert!(range[0] <= range[1] && range[1] <= most, "{name}: {range:?} of {most}");
            // An estimate by the kernel (more than 10,000 slabs) may move by tens of thousands between two readings.
            if active != active_max {
                continue;
            }
            let grown = active[at].saturating_sub(*active[..=at].iter().min().unwrap());
            // The range is of the end of the reading; some that slabinfo counts may have ended before it.
            let most_then = range[1] + ended[at];
            assert!(
                most_then + HIDDEN >= grown,
                "{name}: at most {most_then} live, but slabinfo grew by {grown}"
            );
            bounded += usize::from(range[1] < live[at]);
        }
    }
    bounded
}

/// Where events were lost, slabinfo alone bounds what is live.
fn holds_by_slabinfo(report: &Value) {
    for cache in report["caches"].as_array().unwrap() {
        let ranges = cache["live_range"].as_array().unwrap();
        for (range, active) in ranges.iter().zip(cache["active_max"].as_array().unwrap()) {
            let is_bounded = range[0] == 0 && (active.is_null() || range[1] == *active);
            assert!(is_bounded, "{}: {range} of {active}", cache["cache"]);
        }
    }
}

#[test]
fn what_lives_lies_within_its_bounds() {
    let Some(_alone) = Alone::or_skip() else { return };
    let scratch = Scratch::new();
    for preset in [Some(Preset::Slab), None] {
        let path = scratch.0.join("frees.kmt");
        let flag = scratch.0.join("working");
        fs::write(&flag, "").unwrap();
        let begun = scratch.0.join("begun");
        let _ = fs::remove_file(&begun);
        let script =
            format!("touch {}; while [ -e {} ]; do sleep 0.1; done", begun.display(), flag.display());
        let options = Options {
            output: Some(path.clone()),
            preset,
            buffer_size: Some(64 << 20),
            snapshot_every: Some(Duration::from_millis(400)),
            quiet: true,
            force: true,
            command: ["sh", "-c", &script].map(OsString::from).to_vec(),
            ..Options::default()
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // On a busy machine the recorder needs seconds to begin, and longer between its readings.
                let since = Instant::now();
                while !begun.exists() && since.elapsed() < Duration::from_secs(60) {
                    std::thread::sleep(Duration::from_millis(20));
                }
                churn(200);
                std::thread::sleep(Duration::from_millis(1_500));
                fs::remove_file(&flag).unwrap();
            });
            record::record(&options).unwrap();
        });
        let report = json(&["slabinfo", "--json"], &path);
        if report["trace"]["lost_events"] != 0 {
            println!("{preset:?}: events were lost on a busy machine: classes and bounds say little");
            holds_by_slabinfo(&report["slabinfo"]);
            continue;
        }
        assert!(numbers(&report["slabinfo"]["times"]).len() >= 2, "{:#}", report["slabinfo"]["times"]);
        let bounded = holds(&report["slabinfo"]);
        let bytes = fs::read(&path).unwrap();
        let trace = Trace::open(&bytes).unwrap();
        let release = trace.metadata().text("kernel.release").unwrap().to_owned();
        println!("{release}, {preset:?}: slabinfo bounds {bounded} live figures");
        // Since 6.18 the watchers are freed by kfree_rcu, of which no event tells.
        let caches = json(&["caches", "--json"], &path);
        let class = |name: &str| {
            let row = caches["caches"].as_array().unwrap().iter().find(|row| row["cache"] == name);
            row.map(|row| row["frees_seen"].as_str().unwrap().to_owned())
        };
        // All that ended had an event: no more can seem live than were. Of caches with few ends, what else the machine does
        // decides.
        let slabinfo = report["slabinfo"]["caches"].as_array().unwrap();
        let has_many_ends = |name: &str| {
            let row = caches["caches"].as_array().unwrap().iter().find(|row| row["cache"] == name);
            row.is_some_and(|row| row["frees_matched"].as_u64().unwrap() >= 1_000)
        };
        let is_seen = |row: &&Value| {
            let name = row["cache"].as_str().unwrap();
            class(name).as_deref() == Some("all") && has_many_ends(name)
        };
        let false_claims = slabinfo.iter().filter(is_seen).filter(|row| row["is_contradicted"] == true);
        assert_eq!(false_claims.map(|row| row["cache"].to_string()).collect::<Vec<_>>(), [""; 0]);
        if release.starts_with("6.18") {
            let watchers = class("eventpoll_epi");
            assert!(matches!(watchers.as_deref(), Some("none" | "partly")), "{watchers:?}");
            assert_eq!(class("filp").as_deref(), Some("all"));
        }
    }
}

/// Files that are made and kept are new objects by the kernel's counts and by events alike, but for free objects in per-CPU
/// slabs and what else runs.
#[test]
fn changes_of_caches_are_those_of_slabinfo() {
    const FILES: i64 = 10_000;
    let Some(_alone) = Alone::or_skip() else { return };
    let folder = Path::new("/dev/shm").join(format!("kmt-changes-{}", std::process::id()));
    if fs::create_dir(&folder).is_err() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.0.join("files.kmt");
    let script = format!("cd {} && seq {FILES} | xargs touch && sleep 0.3", folder.display());
    let options = Options {
        output: Some(path.clone()),
        preset: Some(Preset::Slab),
        buffer_size: Some(32 << 20),
        quiet: true,
        force: true,
        command: ["sh", "-c", &script].map(OsString::from).to_vec(),
        ..Options::default()
    };
    let recorded = record::record(&options);
    fs::remove_dir_all(&folder).unwrap();
    recorded.unwrap();
    let report = json(&["slabinfo", "--json"], &path);
    let caches = report["slabinfo"]["caches"].as_array().unwrap();
    let of_touch = json(&["caches", "--comm", "touch", "--json"], &path);
    let live_of_touch = |name: &str| {
        let rows = of_touch["caches"].as_array().unwrap();
        rows.iter().find(|row| row["cache"] == name).unwrap()["live"].as_i64().unwrap()
    };
    for name in ["dentry", "shmem_inode_cache"] {
        let row = caches.iter().find(|row| row["cache"] == name).unwrap();
        let change = |key: &str| row["change"][key].as_i64().unwrap_or_else(|| panic!("{row}"));
        println!("{name}: {}", row["change"]);
        // What others free meanwhile is in the change, a thousand dentries and more where they remove folders: of these only
        // those that the command made are counted.
        let made = if name == "dentry" { live_of_touch(name) } else { change("events") };
        assert!((made - FILES).abs() < FILES / 10, "{name}: {made}, {}", row["change"]);
        assert!(change("unseen").abs() < FILES * 15 / 100, "{name}: {}", row["change"]);
    }
}
