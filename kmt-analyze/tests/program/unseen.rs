//! Changes of caches by the kernel's counts beside those by events: `slabinfo`, and growth that no event shows.

use std::fs;
use std::path::PathBuf;

use kmt_format::Loss;
use kmt_format::kernel::CpuStats;
use kmt_format::write::StatsTaken;
use serde_json::{Value, json};

use crate::model::{BASE, Crafted};
use crate::support::files::{Scratch, json as document, run, stdout};
use crate::support::findings::check;
use crate::support::model::{Event, What};

fn slabinfo(active: u64, slabs: u64) -> String {
    format!(
        "slabinfo - version: 2.1\ncache_a {active} 64 96 32 1 : tunables 0 0 0 : slabdata {slabs} {slabs} 0\n"
    )
}

/// Two objects are allocated, one of them is freed, and three that are older: a change of -2.
fn crafted(scratch: &Scratch, source: &str, before: &str, after: &str) -> PathBuf {
    crafted_ring(scratch, source, before, after, 0)
}

/// The same, in a ring buffer in which that number of older events was overwritten by design.
fn crafted_ring(scratch: &Scratch, source: &str, before: &str, after: &str, overwritten: u64) -> PathBuf {
    let mut crafted = Crafted::new();
    if overwritten > 0 {
        let mut by_design = Loss::counted(overwritten);
        by_design.overwritten = true;
        crafted.writer.add_loss(0, by_design).unwrap();
        let text = format!(
            "entries: 0\noverrun: {overwritten}\ncommit overrun: 0\ndropped events: 0\nread events: 6\n"
        );
        crafted.writer.add_stats(StatsTaken::After, &[(0, CpuStats::parse(&text).unwrap())]).unwrap();
    }
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

/// slabinfo with `cache_a`, and with objects of 256 bytes in a cache without events and in one of kmalloc.
fn with_bulk(active: u64) -> String {
    let slabs = active.div_ceil(16);
    let objects = slabs * 16;
    let line = |cache: &str| {
        format!("{cache} {active} {objects} 256 16 1 : tunables 0 0 0 : slabdata {slabs} {slabs} 0\n")
    };
    slabinfo(20, 2) + &line("io_kiocb") + &line("kmalloc-256")
}

/// Findings of growth without events.
fn unseen(file: &std::path::Path, args: &[&str]) -> Vec<Value> {
    let document = document(&[&["findings", "--json"], args].concat(), file);
    let found = document["findings"].as_array().unwrap().iter();
    found.filter(|found| found["finding"] == "unseen_growth").cloned().collect()
}

/// A cache that grows without any event, and what looks like it.
#[test]
fn growth_without_events_is_a_finding() {
    let scratch = Scratch::new();
    for (before, after, is_found) in [(64, 29_792, true), (64, 192, false), (29_792, 64, false)] {
        let file = crafted(&scratch, "live", &with_bulk(before), &with_bulk(after));
        check(&file);
        let found = unseen(&file, &[]);
        assert_eq!(found.len(), usize::from(is_found), "{before} {after}: {found:#?}");
        let [found] = &found[..] else { continue };
        assert_eq!((&found["bytes"], &found["command"]), (&json!(29_728 * 256), &json!("slabinfo")));
        let sentence = found["sentence"].as_str().unwrap();
        let start = "io_kiocb grew by 7.26 MiB (29,728 objects) without allocation events (bulk): the caller is unknown. ";
        assert!(sentence.starts_with(start), "{sentence}");
        assert!(sentence.contains("kmem_cache_alloc_bulk"), "{sentence}");
        let row = document(&["slabinfo", "--json"], &file);
        let expected = json!([{"cache": "io_kiocb", "objects": 29_728, "bytes": 29_728 * 256}]);
        assert_eq!(row["slabinfo"]["unseen_growth"], expected, "{row:#}");
        let screen = stdout(&run(&["slabinfo", "--wide"], &file));
        assert!(screen.contains("io_kiocb grew by 7.26 MiB (29,728 objects)"), "{screen}");
        assert!(screen.contains("no event shows: 29,728 objects of io_kiocb."), "{screen}");
        assert!(unseen(&file, &["--pid", "7"]).is_empty());
    }
    // The kernel can take it back: a program that looks at the open files of others leaves inodes of /proc.
    let reclaimable = |active| with_bulk(active).replace("io_kiocb", "proc_inode_cache");
    let file = crafted(&scratch, "live", &reclaimable(64), &reclaimable(29_792));
    assert!(unseen(&file, &[]).is_empty());
    // The kernel counted it over a time of which the ring buffer kept the end.
    let file = crafted_ring(&scratch, "live", &with_bulk(64), &with_bulk(29_792), 700);
    assert!(unseen(&file, &[]).is_empty());
    let row = document(&["slabinfo", "--json"], &file);
    assert!(
        row["slabinfo"]["caches"].as_array().unwrap().iter().all(|cache| cache["change"].is_null()),
        "{row:#}"
    );
    // Its time is unknown.
    let file = crafted(&scratch, "tracefs directory", &with_bulk(64), &with_bulk(29_792));
    assert!(unseen(&file, &[]).is_empty());
}

/// A task with a call site of io_uring is named; allocations in the trace explain the growth of a cache that no event
/// names.
#[test]
fn growth_without_events_has_tasks_of_its_kind() {
    let scratch = Scratch::new();
    for (size, is_found) in [(96, true), (256, false)] {
        let mut crafted = Crafted::new();
        let symbols = kmt_format::kernel::parse_kallsyms(
            b"ffffffff81000000 T _text\nffffffff81010000 T io_ring_ctx_alloc\nffffffff81020000 T _etext\n",
            &[],
            4096,
        );
        crafted.writer.add_symbols(&symbols, &[]).unwrap();
        crafted.writer.add_metadata(&[("source", b"live")]).unwrap();
        crafted.writer.add_file("slabinfo.before", with_bulk(64).as_bytes()).unwrap();
        let ptr = BASE + (16 << 12);
        for (time, what) in [
            (1, What::Alloc { kmalloc: false, site: 0xffff_ffff_8101_0010, ptr, req: size, alloc: size }),
            (3_000_000_000, What::Free { kfree: false, ptr: ptr + 4096 }),
        ] {
            crafted.event(&Event { time, cpu: 0, pid: 77, what });
        }
        crafted.writer.add_file("slabinfo.after", with_bulk(29_792).as_bytes()).unwrap();
        let file = scratch.0.join("ring.kmt");
        fs::write(&file, crafted.writer.finish().unwrap()).unwrap();
        check(&file);
        let found = unseen(&file, &[]);
        assert_eq!(found.len(), usize::from(is_found), "{size}: {found:#?}");
        for found in &found {
            let sentence = found["sentence"].as_str().unwrap();
            assert!(sentence.contains("Tasks with io_uring in the trace: "), "{sentence}");
            assert!(sentence.contains("-77."), "{sentence}");
            let screen = stdout(&run(&["leaks", "--wide"], &file));
            assert!(screen.contains(sentence), "{screen}");
            let leaks = document(&["leaks", "--json"], &file)["leaks"]["unseen_growth"].take();
            assert_eq!((&leaks[0]["cache"], &leaks[0]["objects"]), (&json!("io_kiocb"), &json!(29_728)));
            assert!(leaks[0]["tasks"][0].as_str().unwrap().ends_with("-77"), "{leaks:#}");
        }
    }
}
