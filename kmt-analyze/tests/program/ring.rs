//! Ring buffers that kept the newest events: what was overwritten by design is not lost, and reports select the time of which
//! the file has the events of all CPUs.

use std::fs;
use std::path::{Path, PathBuf};

use kmt_format::Loss;
use kmt_format::kernel::{ByteOrder, CpuStats, TraceClock};
use kmt_format::write::{StatsTaken, Writer, WriterOptions};

use crate::slab_records;
use crate::support::files::{Scratch, at, convert, data, dump, json, run, stderr, stdout};

/// Time of a hundredth of a second.
const STEP: u64 = 10_000_000;
const SITE: u64 = 0xffff_ffff_8100_1010;

/// An allocation or a free of an object, by CPU and time.
struct Made(u32, u64, bool, u64);

/// The record of an event.
fn record(made: &Made) -> Vec<u8> {
    let Made(_, _, is_alloc, object) = *made;
    let of = if is_alloc { slab_records::alloc } else { slab_records::free };
    of(77, 0xffff_8880_1000_0000 + 256 * object, SITE)
}

/// A ring of two CPUs. That of CPU 0 goes back further; an object of then was freed on CPU 1, whose event was overwritten.
/// `later`: a loss of CPU 1 in its middle.
fn ring(scratch: &Scratch, later: Loss) -> PathBuf {
    let mut writer = Writer::new(WriterOptions::new(ByteOrder::Little, 8)).unwrap();
    writer.add_clock(&TraceClock::named("mono")).unwrap();
    for event in ["kmem_cache_alloc", "kmem_cache_free"] {
        let path = format!("tracefs/events/kmem/{event}/format");
        writer.add_format("kmem", &fs::read_to_string(data("x86_64-6.1").join(path)).unwrap()).unwrap();
    }
    let log =
        "[ 52.1] Memory cgroup out of memory: Killed process 93 (python3) total-vm:116020kB, anon-rss:1kB\n";
    writer.add_file("kmsg", log.as_bytes()).unwrap();
    let pairs =
        [("source", &b"live"[..]), ("record.stopped_by", b"oom"), ("record.stop_seen", b"2400000000")];
    writer.add_metadata(&pairs).unwrap();
    let events = [
        Made(0, 100, true, 1),
        Made(0, 110, true, 2),
        Made(0, 210, false, 2),
        Made(0, 220, false, 3),
        Made(1, 200, true, 3),
        Made(1, 230, true, 4),
    ];
    let mut by_design = Loss::counted(700);
    by_design.overwritten = true;
    writer.add_loss(0, by_design).unwrap();
    // The kernel had no room for the count.
    let mut by_design = Loss::uncounted();
    by_design.overwritten = true;
    writer.add_loss(1, by_design).unwrap();
    for made in &events {
        if made.0 == 1 && made.1 == 230 && !later.is_none() {
            writer.add_loss(1, later).unwrap();
        }
        writer.add_event(made.0, made.1 * STEP, &record(made)).unwrap();
    }
    let stats = |overrun: u64| {
        let text =
            format!("entries: 0\noverrun: {overrun}\ncommit overrun: 0\ndropped events: 0\nread events: 3\n");
        CpuStats::parse(&text).unwrap()
    };
    let counters = [(0, stats(700)), (1, stats(40 + later.counted))];
    writer.add_stats(StatsTaken::After, &counters).unwrap();
    let path = scratch.0.join("ring.kmt");
    fs::write(&path, writer.finish().unwrap()).unwrap();
    path
}

fn numbers(file: &Path, args: &[&str]) -> [u64; 6] {
    let summary = json(&[&["summary", "--json"], args].concat(), file);
    let keys = [
        "/trace/lost_events",
        "/trace/overwritten_events",
        "/trace/window_begin",
        "/slab/alloc_events",
        "/slab/free_events",
        "/slab/live",
    ];
    keys.map(|key| at(&summary, key).as_u64().unwrap_or_else(|| panic!("{key}: {summary}")))
}

#[test]
fn events_that_were_overwritten_by_design_are_not_lost() {
    let scratch = Scratch::new();
    let file = ring(&scratch, Loss::default());
    // Object 1 is not live: its free may have been overwritten. Objects 3 and 4 are of the window.
    assert_eq!(numbers(&file, &[]), [0, 740, 200 * STEP, 2, 2, 1]);
    assert_eq!(numbers(&file, &["--time", ".."]), [0, 740, 200 * STEP, 4, 2, 2]);
    for report in ["summary", "info", "findings", "leaks", "callers", "dump"] {
        let output = run(&[report], &file);
        assert_eq!(output.status.code(), Some(0), "{report}: {}", stderr(&output));
        assert!(!stderr(&output).contains("warning"), "{report}: {}", stderr(&output));
    }
    assert_eq!(dump(&file).lines().count(), 6);
    let account = json(&["account", "--json"], &file);
    assert_eq!(at(&account, "/trace/lost_events"), 0);
    for args in [&["findings"][..], &["info"]] {
        let text = stdout(&run(args, &file)).replace('\n', " ");
        assert!(text.contains("The window begins at 2.000000: 740 older events were overwritten"), "{text}");
        assert!(text.contains("Stopped by oom: python3 (process 93) was killed."), "{text}");
    }
    let first = stdout(&run(&["findings"], &file));
    assert!(first.starts_with("Stopped by oom"), "{first}");
}

#[test]
fn later_losses_of_a_ring_are_losses() {
    let scratch = Scratch::new();
    let file = ring(&scratch, Loss::counted(5));
    let summary = run(&["summary", "--json"], &file);
    assert_eq!(summary.status.code(), Some(3), "{}", stderr(&summary));
    let summary: serde_json::Value = serde_json::from_slice(&summary.stdout).unwrap();
    assert_eq!(at(&summary, "/trace/lost_events"), 5);
    assert_eq!(at(&summary, "/trace/overwritten_events"), 740);
}

#[test]
fn copies_of_a_ring_keep_where_its_window_begins() {
    let scratch = Scratch::new();
    let file = ring(&scratch, Loss::default());
    let expected = numbers(&file, &[]);
    for by in ["recover", "slice"] {
        let to = scratch.0.join(format!("{by}.kmt"));
        let output = run(&[by, "-o", to.to_str().unwrap()], &file);
        assert_eq!(output.status.code(), Some(0), "{by}: {}", stderr(&output));
        assert_eq!(numbers(&to, &[]), expected, "{by}");
    }
    let to = scratch.0.join("converted.kmt");
    convert(&file, &to, None).unwrap();
    assert_eq!(numbers(&to, &[]), expected);
}

/// A text of a buffer that was not read: its header has one number for all CPUs.
#[test]
fn a_text_begins_behind_what_its_buffer_overwrote() {
    const ALLOC: &str =
        "kmalloc: call_site=f+0x1/0x20 ptr=ffff888104289080 bytes_req=60 bytes_alloc=64 gfp_flags=GFP_KERNEL";
    let line = |cpu: u32, us: u64, event: &str| {
        format!("      sh-77      [{cpu:03}] d..1.     1.{us:06}: {event}\n")
    };
    let free = "kfree: call_site=g+0x1/0x20 ptr=ffff888104289080";
    let head = |cpus: u32| format!("# entries-in-buffer/entries-written: 4/154   #P:{cpus}\n#\n");
    for (cpus, last_cpu, begin) in [(1, 0, 1_000_001_000_u64), (2, 1, 1_000_003_000)] {
        let lines = [line(0, 1, ALLOC), line(0, 2, free), line(last_cpu, 3, ALLOC), line(last_cpu, 4, free)];
        let scratch = Scratch::new();
        let (input, file) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
        fs::write(&input, head(cpus) + &lines.concat()).unwrap();
        convert(&input, &file, None).unwrap();
        let events = if cpus == 1 { 2 } else { 1 };
        assert_eq!(numbers(&file, &[]), [0, 150, begin, events, events, 0]);
        let info = run(&["info"], &file);
        assert_eq!(info.status.code(), Some(0), "{}", stderr(&info));
        let text = stdout(&info).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("150 older events were overwritten"), "{text}");
        assert_eq!(text.contains("Which CPUs the overwritten events were of is unknown"), cpus > 1, "{text}");
        let copy = scratch.0.join("copy.kmt");
        let sliced = run(&["slice", "-o", copy.to_str().unwrap()], &file);
        assert_eq!(sliced.status.code(), Some(0), "{}", stderr(&sliced));
        assert_eq!(numbers(&copy, &[]), numbers(&file, &[]), "slice");
    }
}
