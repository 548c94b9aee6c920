//! Objects that the running kernel frees without an event, against /proc/slabinfo at the same times.

use std::ffi::OsString;
use std::fs;
use std::time::Duration;

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

/// At every time at which slabinfo was read: no more is certain than was active, and what grew can be live.
fn holds(report: &Value) -> usize {
    let mut bounded = 0;
    for cache in report["caches"].as_array().unwrap() {
        let name = cache["cache"].as_str().unwrap();
        let (active, live) = (&cache["active"], numbers(&cache["live"]));
        if active.as_array().unwrap().iter().any(Value::is_null) {
            continue;
        }
        let active = numbers(active);
        let ranges: Vec<Vec<u64>> = cache["live_range"].as_array().unwrap().iter().map(numbers).collect();
        for (at, range) in ranges.iter().enumerate() {
            assert!(range[0] <= active[at], "{name}: at least {} of {}", range[0], active[at]);
            assert!(range[0] <= range[1] && range[1] <= live[at], "{name}: {range:?} of {}", live[at]);
            let grown = active[at].saturating_sub(*active[..=at].iter().min().unwrap());
            assert!(
                range[1] + HIDDEN >= grown,
                "{name}: at most {} live, but slabinfo grew by {grown}",
                range[1]
            );
            bounded += usize::from(range[1] < live[at]);
        }
    }
    bounded
}

#[test]
fn what_lives_lies_within_its_bounds() {
    let Some(_alone) = Alone::or_skip() else { return };
    let scratch = Scratch::new();
    for preset in [Some(Preset::Slab), None] {
        let path = scratch.0.join("frees.kmt");
        let flag = scratch.0.join("working");
        fs::write(&flag, "").unwrap();
        let script = format!("while [ -e {} ]; do sleep 0.1; done", flag.display());
        let options = Options {
            output: Some(path.clone()),
            preset,
            buffer_size: Some(32 << 20),
            snapshot_every: Some(Duration::from_millis(400)),
            quiet: true,
            force: true,
            command: ["sh", "-c", &script].map(OsString::from).to_vec(),
            ..Options::default()
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                churn(200);
                std::thread::sleep(Duration::from_millis(500));
                fs::remove_file(&flag).unwrap();
            });
            record::record(&options).unwrap();
        });
        let report = json(&["slabinfo", "--json"], &path);
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
        if release.starts_with("6.18") {
            let watchers = class("eventpoll_epi");
            assert!(matches!(watchers.as_deref(), Some("none" | "partly")), "{watchers:?}");
            assert_eq!(class("filp").as_deref(), Some("all"));
        }
    }
}
