//! The first screen of a ring that an OOM kill stopped: the victim and the process that held most memory come before growth
//! that is small beside it. Recordings are made of text, and get the state that the recorder stores.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use kmt_format::write::Writer;
use kmt_format::{Compression, Limits};
use serde_json::Value;

use crate::support::files::{Scratch, at, convert, json, run, stderr, stdout};

/// Steps of 10 ms in a trace.
const STEPS: u64 = 400;
const PAGE: u64 = 4096;

/// The kernel log of a kill: with the table of processes, whose largest has `pages` resident.
fn log(pages: u64) -> String {
    format!(
        "[    4.900000] python3 invoked oom-killer: gfp_mask=0x140dca(GFP_HIGHUSER_MOVABLE|__GFP_COMP|__GFP_ZERO), order=0\n\
         [    4.900001] [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\n\
         [    4.900002] [     70]     0    70      682      3       45056        0             0 sh\n\
         [    4.900003] [     93]     0    93   116020    {pages}   450560        0             0 python3\n\
         [    4.900004] [     94]     0    94      700      5       45056        0         -1000 kmt-capture\n\
         [    4.900005] Out of memory: Killed process 93 (python3) total-vm:464080kB, anon-rss:1kB, file-rss:4kB, shmem-rss:0kB\n"
    )
}

/// Tasks that allocate and free nothing, each 128 bytes of a cache of its own in each step; and pages of python3.
fn text(leaking: &[&str]) -> String {
    let mut out = String::new();
    for step in 0..STEPS {
        let time = 1_000_000 + step * 10_000;
        let mut event = |task: &str, pid: u64, time: u64, text: &str| {
            let (seconds, rest) = (time / 1_000_000, time % 1_000_000);
            writeln!(out, "{task:>16}-{pid}     [000] .....     {seconds}.{rest:06}: {text}").unwrap();
        };
        for (number, task) in (0..).zip(leaking) {
            let ptr = (number * STEPS + step) * 128;
            let (site, pid) = (format!("{task}_alloc+0x10/0x40"), 200 + number);
            event(
                task,
                pid,
                time + number,
                &format!(
                    "kmalloc: call_site={site} ptr=ffff8881{ptr:08x} bytes_req=128 bytes_alloc=128 gfp_flags=GFP_KERNEL node=-1 accounted=false"
                ),
            );
        }
        // Growth needs frees.
        if step == 0 {
            event("sh", 70, time + 40, "kfree: call_site=early_free+0x10/0x40 ptr=ffff8880f0000000");
            let older = "mm_page_free: page=0xffffea0000080000 pfn=0x2000 order=0";
            event("sh", 70, time + 41, older);
        }
        // In the first tenth only: no growth.
        if step < STEPS / 10 {
            let frame = 0x10000 + step;
            event(
                "python3",
                93,
                time + 50,
                &format!(
                    "mm_page_alloc: page=0xffffea{:010x} pfn=0x{frame:x} order=0 migratetype=1 gfp_flags=GFP_HIGHUSER_MOVABLE",
                    frame << 6
                ),
            );
        }
    }
    out
}

/// A recording that ended as `cause` says, with these files of the state.
fn stopped(scratch: &Scratch, leaking: &[&str], cause: &str, state: &[(&str, &str)]) -> PathBuf {
    let (input, file) = (scratch.0.join("text"), scratch.0.join("oom.kmt"));
    fs::write(&input, text(leaking)).unwrap();
    convert(&input, &file, None).unwrap();
    let bytes = fs::read(&file).unwrap();
    let mut writer = Writer::append_to(&bytes, Limits::default(), Compression::None).unwrap();
    writer.add_metadata(&[("record.stopped_by", cause.as_bytes())]).unwrap();
    state.iter().for_each(|(name, text)| writer.add_file(name, text.as_bytes()).unwrap());
    fs::write(&file, [bytes, writer.finish().unwrap()].concat()).unwrap();
    file
}

/// The first screen in one line.
fn screen(file: &Path) -> String {
    let output = run(&[], file);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn held(file: &Path) -> Value {
    at(&json(&["findings", "--json"], file), "/held").clone()
}

/// Positions of texts on a screen.
fn places<const N: usize>(screen: &str, texts: [&str; N]) -> [usize; N] {
    texts.map(|text| screen.find(text).unwrap_or_else(|| panic!("no {text:?} in {screen}")))
}

#[test]
fn the_victim_and_the_largest_process_come_before_small_growth() {
    let scratch = Scratch::new();
    let file = stopped(&scratch, &["leaky"], "oom", &[("kmsg", &log(85_760))]);
    let screen = screen(&file);
    let at = places(
        &screen,
        [
            "Stopped by oom",
            "python3 (process 93) was killed.",
            "At the kill, python3 (process 93) had 335 MiB resident, the most of 3 processes. Of 160 KiB of pages",
            "allocated the most: 160 KiB.",
            "Also: ",
            "leaky_alloc",
        ],
    );
    assert!(at.is_sorted() && at[0] == 0, "{at:?}: {screen}");
    assert!(screen.contains("kmt-analyze info --show kmsg"), "{screen}");
    let held = held(&file);
    assert_eq!(held["task"], "python3");
    assert_eq!((held["pid"].as_u64(), held["processes"].as_u64()), (Some(93), Some(3)));
    assert_eq!(
        (held["bytes_resident"].as_u64(), &*held["source"].to_string()),
        (Some(85_760 * PAGE), "\"kernel_log\"")
    );
}

#[test]
fn several_small_growths_are_one_line() {
    let scratch = Scratch::new();
    let file = stopped(&scratch, &["leaky", "other"], "oom", &[("kmsg", &log(85_760))]);
    let text = screen(&file);
    assert_eq!(at(&json(&["findings", "--json"], &file), "/findings").as_array().unwrap().len(), 2, "{text}");
    let at = places(&text, ["At the kill, python3", "Also: 2 smaller findings of growth"]);
    assert!(at.is_sorted() && !text.contains("leaky_alloc is"), "{text}");
}

#[test]
fn growth_that_is_larger_than_every_process_comes_first() {
    let scratch = Scratch::new();
    let file = stopped(&scratch, &["leaky"], "oom", &[("kmsg", &log(7))]);
    let text = screen(&file);
    let at = places(
        &text,
        ["Stopped by oom", "leaky_alloc", "Also: at the kill, python3 (process 93) had 28.0 KiB"],
    );
    assert!(at.is_sorted(), "{text}");
}

#[test]
fn the_list_of_processes_is_used_where_the_log_has_none() {
    let scratch = Scratch::new();
    let processes = ("processes.after", "94 4096 -1000 kmt-capture\n70 12 0 sh\n");
    let file = stopped(&scratch, &["leaky"], "oom", &[processes]);
    let text = screen(&file);
    assert!(
        text.contains(
            "After the kill, kmt-capture (process 94) had 4.00 MiB resident, the most of 2 processes."
        ),
        "{text}"
    );
    assert!(text.contains("kmt-analyze info --show processes.after"), "{text}");
    // The victim had more before it was killed.
    let line = "[ 1.0] Out of memory: Killed process 93 (python3) total-vm:1kB, anon-rss:8192kB, file-rss:4kB, shmem-rss:0kB\n";
    let file = stopped(&scratch, &["leaky"], "oom", &[processes, ("kmsg", line)]);
    let text = screen(&file);
    assert!(text.contains("At the kill, python3 (process 93) had 8.00 MiB resident."), "{text}");
    assert_eq!((&held(&file)["processes"], &held(&file)["source"]), (&Value::Null, &Value::from("victim")));
}

#[test]
fn other_ends_of_a_wait_name_no_process() {
    let scratch = Scratch::new();
    let processes = ("processes.after", "94 400000 0 database\n");
    for (cause, state) in [("slab>1M", &[processes][..]), ("SIGUSR1", &[processes]), ("oom", &[])] {
        let file = stopped(&scratch, &["leaky"], cause, state);
        assert_eq!(held(&file), Value::Null, "{cause}");
        assert!(!screen(&file).contains("resident"), "{cause}");
    }
}
