//! `slabinfo`: change of each cache by the kernel's counts beside that by events.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::model::{BASE, Crafted};
use crate::support::files::{Scratch, json as document, run, stdout};
use crate::support::model::{Event, What};

fn slabinfo(active: u64, slabs: u64) -> String {
    format!(
        "slabinfo - version: 2.1\ncache_a {active} 64 96 32 1 : tunables 0 0 0 : slabdata {slabs} {slabs} 0\n"
    )
}

/// Two objects are allocated, one of them is freed, and three that are older: a change of -2.
fn crafted(scratch: &Scratch, source: &str, before: &str, after: &str) -> PathBuf {
    let mut crafted = Crafted::new();
    crafted.writer.add_metadata(&[("source", source.as_bytes())]).unwrap();
    crafted.writer.add_file("slabinfo.before", before.as_bytes()).unwrap();
    let mut time = 1_000_000;
    let mut event = |what| {
        time += 1_000;
        crafted.event(&Event { time, cpu: 0, pid: 7, what });
    };
    let object = |number: u64| BASE + (16 << 12) + number * 96;
    for number in 0..2 {
        event(What::Alloc { kmalloc: false, site: 5, ptr: object(number), req: 96, alloc: 96 });
    }
    for number in 1..5 {
        event(What::Free { kfree: false, ptr: object(number) });
    }
    crafted.writer.add_file("slabinfo.after", after.as_bytes()).unwrap();
    let file = scratch.0.join("crafted.kmt");
    fs::write(&file, crafted.writer.finish().unwrap()).unwrap();
    file
}

fn change(args: &[&str], file: &std::path::Path) -> Value {
    let rows = document(&[&["slabinfo", "--json"], args].concat(), file);
    let caches = rows["slabinfo"]["caches"].as_array().unwrap().clone();
    caches.into_iter().find(|cache| cache["cache"] == "cache_a").unwrap()["change"].take()
}

#[test]
fn what_no_event_shows_is_the_difference() {
    let scratch = Scratch::new();
    let file = crafted(&scratch, "live", &slabinfo(20, 1), &slabinfo(13, 1));
    assert_eq!(change(&[], &file), json!({"active": -7, "events": -2, "unseen": -5, "is_estimate": false}));
    let screen = stdout(&run(&["slabinfo"], &file));
    let flat = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("no event shows: 5 objects of cache_a."), "{screen}");
    assert!(change(&["--pid", "7"], &file).is_null(), "slabinfo counts the objects of all tasks");
    let file = crafted(&scratch, "live", &slabinfo(20, 10_001), &slabinfo(13, 1));
    assert_eq!(change(&[], &file)["is_estimate"], true);
    let file = crafted(&scratch, "live", "slabinfo - version: 2.1\n", &slabinfo(13, 1));
    assert_eq!(change(&[], &file)["active"], 13, "a cache that was made meanwhile");
}
