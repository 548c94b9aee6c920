//! What `leaks` makes of tasks, of things that many tasks make, and of caches: one finding each, or none.

use std::path::Path;

use super::load::{
    CHILD, DENTRY, DISK_INODE, FILE, LINK, Load, MS, NAMESPACE, SIGNALS, SOCKET, Site, TABLE, TASK, WORKER,
    WORKER_PID,
};
use crate::support::files::{Scratch, at, json, run, stdout};
use serde_json::Value;

/// Length of the recordings.
const LENGTH: u64 = 3_000 * MS;
/// Things that are made, one after the other.
const THINGS: u64 = 300;

/// Calls `make` with the number and the time of each thing, beside noise.
fn made(mut make: impl FnMut(&mut Load, i32, u64)) -> Load {
    let mut load = Load::new(7);
    load.noise(1_000, LENGTH);
    // Events of 6.1 name a cache where objects are freed.
    for site in [TASK, SIGNALS, NAMESPACE, TABLE, DISK_INODE, LINK, DENTRY, FILE, SOCKET] {
        let object = load.alloc(0, 800, site);
        load.free(MS, 800, object);
    }
    for number in 0..THINGS {
        make(&mut load, 10_000 + number as i32, number * (LENGTH / THINGS));
    }
    load
}

/// The families, and the first sentences in one line.
fn answer(file: &Path) -> (Vec<Value>, String) {
    let report = json(&["leaks", "--json"], file);
    let families = at(&report, "/leaks/families").as_array().unwrap().clone();
    let text = stdout(&run(&["leaks"], file));
    let answer = text.split("\n\n").next().unwrap_or_default();
    (families, answer.replace('\n', " "))
}

fn alloc_all(load: &mut Load, time: u64, pid: i32, sites: &[Site]) {
    for (at, site) in (0..).zip(sites) {
        load.alloc(time + 1_000 * at, pid, *site);
    }
}

#[test]
fn what_short_lived_children_make_is_one_finding_with_their_parent() {
    let scratch = Scratch::new();
    let load = made(|load, child, time| {
        load.starts(time, WORKER_PID, child);
        alloc_all(load, time + MS, child, &[TABLE, NAMESPACE, TABLE]);
        load.exits(time + 2 * MS, child);
    });
    let (families, said) = answer(&load.write(&scratch, "children.kmt"));
    assert_eq!(families.len(), 1, "{families:#?}");
    let makers = at(&families[0], "/makers");
    assert_eq!(at(&families[0], "/leader").as_str().unwrap().split('+').next(), Some(NAMESPACE.0));
    assert_eq!(at(makers, "/name"), CHILD);
    assert_eq!(at(makers, "/parent"), &format!("{WORKER}-{WORKER_PID}"));
    let all =
        format!("short-lived tasks named {CHILD}, children of {WORKER}-{WORKER_PID}, at {}", NAMESPACE.0);
    assert!(said.contains(&all), "{said}");
}

#[test]
fn tasks_that_stay_or_are_not_reaped_are_one_finding() {
    let scratch = Scratch::new();
    let tasks = |exit: bool, is_reaped: bool| {
        let mut load = made(|load, child, time| {
            let own = [TASK, SIGNALS].map(|site| load.alloc(time, WORKER_PID, site));
            load.starts(time + 1_000, WORKER_PID, child);
            if exit {
                load.exits(time + MS, child);
            }
            if is_reaped {
                own.into_iter().for_each(|object| load.free(time + 2 * MS, WORKER_PID, object));
            }
        });
        // One task of another parent comes and goes.
        load.starts(MS, 800, 9_999);
        load.exits(2 * MS, 9_999);
        load
    };
    for (exit, words) in [(true, "that exited and were not reaped"), (false, "that did not exit")] {
        let (families, said) = answer(&tasks(exit, false).write(&scratch, "tasks.kmt"));
        assert_eq!((families.len(), at(&families[0], "/tasks/live")), (1, &Value::from(THINGS)));
        let not_reaped = if exit { THINGS } else { 0 };
        assert_eq!(at(&families[0], "/tasks/not_reaped"), &Value::from(not_reaped));
        let all = format!("with 300 tasks started by {WORKER}-{WORKER_PID} {words}.");
        assert!(said.contains(&all), "{said}");
    }
    let (families, said) = answer(&tasks(true, true).write(&scratch, "reaped.kmt"));
    assert!(families.is_empty(), "{said}");
}

#[test]
fn link_targets_belong_to_their_inodes_and_files_pin_inodes() {
    let scratch = Scratch::new();
    let read = made(|load, _, time| alloc_all(load, time, WORKER_PID, &[DISK_INODE, LINK, DENTRY]));
    let path = read.write(&scratch, "links.kmt");
    let (families, said) = answer(&path);
    assert!(families.is_empty(), "{said}");
    let report = json(&["leaks", "--json"], &path);
    let callers = at(&report, "/leaks/callers").as_array().unwrap();
    let verdict = |site: Site| {
        let row = callers.iter().find(|row| row["symbol"].as_str().unwrap().starts_with(site.0));
        row.unwrap_or_else(|| panic!("{}", site.0))["verdict"].clone()
    };
    assert_eq!([DISK_INODE, DENTRY].map(verdict), ["reclaimable", "reclaimable"]);
    assert_eq!(verdict(LINK), "with_reclaimable");
    // A file for each: all of it is the leak. A file for every fifth: most can be reclaimed.
    for (every, call_sites) in [(1, 4), (5, 1)] {
        let mut number = 0;
        let opened = made(|load, _, time| {
            alloc_all(load, time, WORKER_PID, &[DISK_INODE, LINK, DENTRY]);
            if number % every == 0 {
                load.alloc(time, WORKER_PID, FILE);
            }
            number += 1;
        });
        let (families, said) = answer(&opened.write(&scratch, "files.kmt"));
        assert_eq!(families.len(), 1, "{said}");
        assert_eq!(at(&families[0], "/call_sites"), &Value::from(call_sites), "{families:#?}");
    }
}

#[test]
fn a_command_that_ended_is_judged_before_it_exited() {
    let scratch = Scratch::new();
    let leaky = |exit: Option<u64>| {
        let mut kept = Vec::new();
        let mut load = made(|load, _, time| kept.push(load.alloc(time, WORKER_PID, SOCKET)));
        // The end of a process frees what it had.
        kept.into_iter().for_each(|object| load.free(LENGTH + MS, WORKER_PID, object));
        load.facts.extend(exit.map(|exit| ("record.command_exit", Load::clock(exit))));
        load.write(&scratch, "command.kmt")
    };
    let (families, _) = answer(&leaky(None));
    assert!(families.is_empty(), "{families:#?}");
    let path = leaky(Some(LENGTH));
    let (families, said) = answer(&path);
    assert_eq!(families.len(), 1, "{said}");
    let text = stdout(&run(&["leaks"], &path));
    assert!(text.contains("before the recorded command began to exit"), "{text}");
    // A selected window is judged at its own end.
    let part = json(&["leaks", "--json", "--time", "+0.5..+2.5"], &path);
    assert_eq!(at(&part, "/leaks/command_exit"), &Value::Null);
}

/// What is older than the selected time did not grow in it.
#[test]
fn growth_in_a_part_of_the_time_is_of_that_part() {
    let scratch = Scratch::new();
    let path = made(|load, _, time| {
        alloc_all(load, time, WORKER_PID, &[SOCKET]);
        if time < LENGTH / 4 {
            alloc_all(load, time, WORKER_PID, &[TABLE, SOCKET]);
        }
    })
    .write(&scratch, "part.kmt");
    let report = json(&["leaks", "--json", "--time", "+0.75.."], &path);
    let live = |site: Site| {
        let callers = at(&report, "/leaks/callers").as_array().unwrap();
        let row = callers.iter().find(|row| row["symbol"].as_str().unwrap().starts_with(site.0));
        row.map(|row| row["survivors"].clone())
    };
    assert_eq!((live(SOCKET), live(TABLE)), (Some((THINGS - THINGS / 4).into()), None), "{report:#}");
}

#[test]
fn the_recorder_is_no_finding() {
    let scratch = Scratch::new();
    let leaky = |recorder: i32| {
        let mut load = made(|load, _, time| alloc_all(load, time, WORKER_PID, &[SOCKET]));
        load.facts.push(("recorder.pid", recorder.to_string()));
        let path = load.write(&scratch, "recorder.kmt");
        let says = |more: &[&str]| {
            let text = stdout(&run(&[&["leaks", "--wide"][..], more].concat(), &path));
            text.contains("Memory that the recorder itself allocated is not counted.")
        };
        // With the option the selection says so.
        assert_eq!((says(&[]), says(&["--without-recorder"])), (true, false));
        answer(&path).0.len()
    };
    assert_eq!((leaky(1), leaky(WORKER_PID)), (1, 0));
}

/// A kernel worker fetches pages for the percpu allocator: they are of the leak at whose pace they come.
#[test]
fn pages_of_the_percpu_allocator_belong_to_the_leak() {
    const KERNEL: u64 = 0xcc0;
    let scratch = Scratch::new();
    // With __GFP_HIGHMEM, __GFP_NOWARN and __GFP_NORETRY; as the memory of the worker itself.
    for (gfp_flags, is_of_leak) in [(KERNEL | 0x2 | 0x2000 | 0x1_0000, true), (KERNEL, false)] {
        let mut pfn = 0x20_0000;
        let load = made(|load, child, time| {
            alloc_all(load, time, WORKER_PID, &[NAMESPACE, TABLE]);
            if child % 10 == 0 {
                for _ in 0..8 {
                    pfn += 1;
                    load.page_alloc_with(time + 20_000, 55, pfn, gfp_flags);
                }
            }
        });
        let file = load.write(&scratch, "percpu.kmt");
        let found = json(&["findings", "--json"], &file);
        let found: Vec<&str> = at(&found, "/findings")
            .as_array()
            .unwrap()
            .iter()
            .map(|found| at(found, "/finding").as_str().unwrap())
            .collect();
        let (_, said) = answer(&file);
        assert!(found.contains(&"slab_growth"), "{found:?}");
        assert_eq!(found.contains(&"page_growth"), !is_of_leak, "{found:?}: {said}");
        assert_eq!(said.contains("Pages grew with it by"), is_of_leak, "{said}");
    }
}
