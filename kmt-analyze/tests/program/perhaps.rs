//! Leads where growth is not judged because events were lost: the kernel's counts, and a call site almost without frees.

use std::fs;
use std::path::PathBuf;

use kmt_format::write::Loss;

use crate::model::{BASE, Crafted};
use crate::support::files::{Scratch, at, json, run, stdout};
use crate::support::model::{Event, What};

const SLABS: &str = "slabinfo - version: 2.1\nfilp 1000 1008 256 16 1 : tunables 0 0 0 : slabdata 63 63 0\n\
     dentry 100 105 192 21 1 : tunables 0 0 0 : slabdata 5 5 0\n";

const SLABS_LATER: &str = "slabinfo - version: 2.1\nfilp 2269 2272 256 16 1 : tunables 0 0 0 : slabdata 142 142 0\n\
     dentry 9100 9450 192 21 1 : tunables 0 0 0 : slabdata 450 450 0\n";

/// A file of 4 s: task 9 keeps what it allocates every 10 ms, all but three objects, task 11 frees; 20 % of the events are lost.
fn lossy(scratch: &Scratch) -> PathBuf {
    let mut trace = Crafted::new();
    trace.release("6.1.0");
    trace.writer.add_file("slabinfo.before", SLABS.as_bytes()).unwrap();
    trace.writer.add_file("slabinfo.after", SLABS_LATER.as_bytes()).unwrap();
    for step in 0..400u64 {
        let time = 1_000_000_000 + step * 10_000_000;
        let mut event = |pid: i64, after: u64, what: What| {
            trace.event(&Event { time: time + after, cpu: 0, pid, what });
        };
        let kept = BASE + (step << 13);
        let used = BASE + (1 << 40);
        event(9, 0, What::Alloc { kmalloc: true, site: 77, ptr: kept, req: 250, alloc: 256 });
        event(11, 10, What::Alloc { kmalloc: true, site: 78, ptr: used, req: 128, alloc: 128 });
        event(11, 20, What::Free { kfree: true, ptr: used });
        if step % 150 == 40 {
            event(9, 30, What::Free { kfree: true, ptr: kept });
        }
        trace.writer.add_loss(0, Loss::counted(1)).unwrap();
    }
    let file = scratch.0.join("lossy.kmt");
    fs::write(&file, trace.writer.finish().unwrap()).unwrap();
    file
}

#[test]
fn the_kernel_s_counts_and_a_call_site_without_frees_are_leads() {
    let scratch = Scratch::new();
    let file = lossy(&scratch);
    let found = json(&["findings", "--json"], &file);
    assert_eq!(at(&found, "/growth"), "not_judged");
    let leads: Vec<&str> =
        at(&found, "/perhaps").as_array().unwrap().iter().map(|lead| lead.as_str().unwrap()).collect();
    let slabs = "By /proc/slabinfo, which losses do not change, filp grew most of the caches that cannot be reclaimed: by 1,269 objects (316 KiB).";
    assert_eq!(leads[0], slabs, "{leads:?}");
    assert!(
        leads[1].starts_with("Perhaps a leak: no free was seen of 397 of 400 objects (99.2 KiB) by "),
        "{leads:?}"
    );
    let screen = stdout(&run(&[], &file)).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(leads.iter().all(|lead| screen.contains(lead)), "{screen}");
    // Of a part of the time, the counts of all of it are no lead.
    let part = json(&["findings", "--json", "--time", ".."], &file);
    assert!(!at(&part, "/perhaps").to_string().contains("slabinfo"), "{part:#}");
}

/// What losses do to figures is one line of a screen.
#[test]
fn the_effect_of_losses_is_one_line() {
    let scratch = Scratch::new();
    let screen = stdout(&run(&["--wide"], &lossy(&scratch)));
    let about = |line: &&str| {
        ["minimums", "not known whether", "may be lost.", "Because events were lost"]
            .iter()
            .any(|words| line.contains(words))
    };
    let lines: Vec<&str> = screen.lines().filter(about).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("Perhaps a leak: "), "{lines:?}");
    assert!(lines[1].starts_with("Event counts are minimums; live figures are uncertain. For "), "{lines:?}");
}

/// Live memory is a range there.
#[test]
fn live_memory_is_a_range_where_events_were_lost() {
    let scratch = Scratch::new();
    let file = lossy(&scratch);
    let all = json(&["summary", "--json"], &file);
    let number = |key: &str| at(&all, key).as_u64().unwrap();
    let (live, uncertain) = (number("/slab/bytes_live"), number("/slab/bytes_live_uncertain"));
    let screen =
        |sort: &str| stdout(&run(&["callers", "--sort", sort, "--wide", "--bytes"], &file)).replace(',', "");
    let range = format!(
        "At least {} bytes and at most {live} bytes of the recorded allocations of 2 call sites are still allocated",
        live - uncertain
    );
    assert!(screen("live").starts_with(&range), "{range}: {}", screen("live"));
    let most = format!(
        "At most {} objects of the recorded allocations of 2 call sites are still allocated",
        number("/slab/live")
    );
    assert!(screen("live_objects").starts_with(&most), "{most}: {}", screen("live_objects"));
}
