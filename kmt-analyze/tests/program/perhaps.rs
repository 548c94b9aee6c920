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
    lossy_with(scratch, None, &[("slabinfo.before", SLABS), ("slabinfo.after", SLABS_LATER)], &[])
}

/// The same with these files and texts; with a cache, what task 9 keeps is of that one.
fn lossy_with(
    scratch: &Scratch,
    cache: Option<&[u8]>,
    files: &[(&str, &str)],
    texts: &[(&str, &[u8])],
) -> PathBuf {
    let mut trace = Crafted::new();
    trace.release("6.1.0");
    files.iter().for_each(|(name, text)| trace.writer.add_file(name, text.as_bytes()).unwrap());
    trace.writer.add_metadata(texts).unwrap();
    for step in 0..400u64 {
        let time = 1_000_000_000 + step * 10_000_000;
        let kept = BASE + (step << 13);
        let used = BASE + (1 << 40);
        let mut event = |pid: i64, after: u64, what: What| {
            trace.event(&Event { time: time + after, cpu: 0, pid, what });
        };
        let kmalloc = cache.is_none();
        event(9, 0, What::Alloc { kmalloc, site: 77, ptr: kept, req: 250, alloc: 256 });
        event(11, 10, What::Alloc { kmalloc: true, site: 78, ptr: used, req: 128, alloc: 128 });
        event(11, 20, What::Free { kfree: true, ptr: used });
        if step % 150 == 40 {
            match cache {
                None => event(9, 30, What::Free { kfree: true, ptr: kept }),
                Some(cache) => trace.freed_from(time + 30, kept, cache),
            }
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
    let slabs = "By /proc/slabinfo, which losses do not change, filp grew most of the caches that cannot be reclaimed: by 1,269 objects (316 KiB of slabs, 79.2 KiB/s).";
    assert_eq!(leads[1], slabs, "the task has less than half of them");
    assert!(
        leads[0].starts_with("Perhaps a leak: no free was seen of 397 of 400 objects (99.2 KiB) by "),
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
        "At least {} bytes and at most {live} bytes of 2 call sites are still allocated (recorded allocations only)",
        live - uncertain
    );
    assert!(screen("live").starts_with(&range), "{range}: {}", screen("live"));
    let most = format!(
        "At most {} objects of 2 call sites are still allocated (recorded allocations only)",
        number("/slab/live")
    );
    assert!(screen("live_objects").starts_with(&most), "{most}: {}", screen("live_objects"));
}

const TIMERS: &str = "slabinfo - version: 2.1\nmnt_cache 1000 1008 256 16 1 : tunables 0 0 0 : slabdata 63 63 0\n\
     filp 1000 1008 256 16 1 : tunables 0 0 0 : slabdata 63 63 0\n";

const TIMERS_LATER: &str = "slabinfo - version: 2.1\nmnt_cache 1500 1504 256 16 1 : tunables 0 0 0 : slabdata 94 94 0\n\
     filp 1450 1456 256 16 1 : tunables 0 0 0 : slabdata 91 91 0\n";

const MERGED: &str = "mnt_cache -> :0000256\nposix_timers_cache -> :0000256\n";

/// Growth of a cache and a call site of its objects are one leak, not two; other names of the cache are beside it.
#[test]
fn a_call_site_of_the_cache_that_grew_is_one_finding_with_it() {
    let scratch = Scratch::new();
    let files = [("slabinfo.before", TIMERS), ("slabinfo.after", TIMERS_LATER), ("slab_sysfs.after", MERGED)];
    let leads = |cache: &[u8]| {
        let file = lossy_with(&scratch, Some(cache), &files, &[]);
        let found = json(&["findings", "--json"], &file);
        let leads = at(&found, "/perhaps").as_array().unwrap().iter();
        leads.map(|lead| lead.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let one = leads(b"mnt_cache");
    assert!(
        one.len() == 1
            && one[0].starts_with("mnt_cache (also posix_timers_cache) grew by 500 objects (124 KiB of slabs, 31.")
            && one[0].contains("/s) by /proc/slabinfo, which losses do not change; filp (+450) with it, 236 KiB together; 397 recorded ones by ")
            && one[0].ends_with(" have no free event: probably this leak."),
        "{one:?}"
    );
    let two = leads(b"other_cache");
    assert!(two.len() == 2 && two[0].starts_with("Perhaps a leak: "), "{two:?}");
    assert!(
        two[1].starts_with(
            "By /proc/slabinfo, which losses do not change, mnt_cache (also posix_timers_cache) grew most "
        ) && two[1].ends_with("-9: not proven)."),
        "{two:?}"
    );
}

/// The recording that would have a verdict is on a line of its own, which a shell reads as it is.
#[test]
fn the_recording_with_larger_buffers_is_a_whole_command() {
    let scratch = Scratch::new();
    let live: [(&str, &[u8]); 2] = [("source", b"live"), ("recorder.buffer_needed", b"9000000")];
    let with = |command: &'static str| {
        let texts: Vec<_> = live.into_iter().chain([("record.command", command.as_bytes())]).collect();
        lossy_with(&scratch, None, &[], &texts)
    };
    for (command, line) in [
        ("", "kmt-capture record -d 4s --buffer-size 9M"),
        ("find / -xdev", "kmt-capture record --buffer-size 9M -- find / -xdev"),
        ("sh -c sleep 4", "kmt-capture record -d 4s --buffer-size 9M"),
    ] {
        let file = with(command);
        for report in [&[][..], &["leaks"]] {
            let screen = stdout(&run(&[report, &["--wide"]].concat(), &file));
            let whole = format!("growth is not judged. Record again with larger buffers:\n    {line}\n");
            assert!(screen.contains(&whole), "{whole}: {screen}");
        }
        assert_eq!(at(&json(&["findings", "--json"], &file), "/record_again"), line);
        assert_eq!(at(&json(&["leaks", "--json"], &file), "/record_again"), line);
    }
}

/// Where call sites have no verdict, `leaks` has the kernel's counts, and proposes what has more.
#[test]
fn leaks_of_a_file_with_many_losses_has_the_kernel_s_counts() {
    let scratch = Scratch::new();
    let file = lossy(&scratch);
    let output = run(&["leaks", "--wide"], &file);
    assert_eq!(output.status.code(), Some(3));
    let screen = stdout(&output);
    let found = json(&["leaks", "--json"], &file);
    assert!(at(&found, "/leaks/refused").as_str().unwrap().contains("of all events were lost"), "{found:#}");
    let leads = at(&found, "/perhaps").as_array().unwrap();
    assert!(leads.len() == 2 && leads.iter().all(|lead| screen.contains(lead.as_str().unwrap())), "{screen}");
    assert_eq!(at(&found, "/perhaps"), at(&json(&["findings", "--json"], &file), "/perhaps"));
    for text in [&screen, &stdout(&run(&[], &file))] {
        assert!(text.contains("kmt-analyze slabinfo "), "{text}");
    }
    // A table of call sites would need their verdicts.
    assert_eq!(run(&["leaks", "--csv"], &file).status.code(), Some(1));
}

/// Objects whose frees may be lost are no fact of `summary`.
#[test]
fn summary_of_a_file_with_losses_has_an_upper_bound() {
    let scratch = Scratch::new();
    let screen = stdout(&run(&["summary", "--wide"], &lossy(&scratch)));
    let slab = screen.lines().next().unwrap();
    assert!(
        slab.contains(", 397 without a free event (at most 99.2 KiB are still allocated, 100 % of it at "),
        "{slab}"
    );
}
