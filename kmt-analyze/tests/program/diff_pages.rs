//! `diff` of recordings in which pages grow: they are in the answer, and the recorder's own memory is not.

use std::fs;
use std::path::PathBuf;

use kmt_format::kernel::{ByteOrder, TraceClock};
use kmt_format::write::{Task, Writer, WriterOptions};

use crate::support::files::{Scratch, at, data, json, run, stdout};

/// GFP_HIGHUSER_MOVABLE | __GFP_ZERO, and GFP_HIGHUSER_MOVABLE | __GFP_WRITE: anonymous memory, and a page of a file (6.1).
const ANONYMOUS: u64 = 0x10_0dca;
const FILE: u64 = 0x10_1cca;

/// The task of the load, and the recorder.
const WORKER: u32 = 800;
const RECORDER: u32 = 900;

/// 1,600 pages over 16 s, of which one of `keep` stays; the recorder keeps one of two.
fn recording(scratch: &Scratch, name: &str, keep: Option<u64>, writes_file: bool) -> PathBuf {
    let options = WriterOptions::new(ByteOrder::Little, 8).page_size(4096).trace_uuid([5; 16]);
    let mut writer = Writer::new(options).unwrap();
    let format = |path: PathBuf| fs::read_to_string(path.join("format")).unwrap();
    let kmem = data("x86_64-6.1").join("tracefs/events/kmem");
    let alloc = writer.add_format("kmem", &format(kmem.join("mm_page_alloc"))).unwrap();
    let free = writer.add_format("kmem", &format(kmem.join("mm_page_free"))).unwrap();
    writer.add_clock(&TraceClock::named("mono")).unwrap();
    let pairs = [("kernel.release", &b"6.1.0"[..]), ("recorder.pid", RECORDER.to_string().as_bytes())]
        .map(|(key, value)| (key, value.to_vec()));
    pairs.iter().for_each(|(key, value)| writer.add_metadata(&[(*key, value.as_slice())]).unwrap());
    writer.add_tasks(&[WORKER, RECORDER].map(|pid| Task::new(pid as i32, format!("task-{pid}")))).unwrap();
    let mut event = |id: u16, pid: u32, time: u64, words: &[u64]| {
        let mut record = [&id.to_le_bytes()[..], &[0, 0], &pid.to_le_bytes()].concat();
        words.iter().for_each(|word| record.extend(word.to_le_bytes()));
        writer.add_event(0, time, &record).unwrap();
    };
    for step in 0..1_600_u64 {
        let (time, pfn) = (1_000_000_000 + step * 10_000_000, 0x1000 + step);
        event(alloc, WORKER, time, &[pfn, 0, ANONYMOUS, 1]);
        if keep.is_none_or(|keep| step % keep != 0) {
            event(free, WORKER, time + 1_000, &[pfn, 0]);
        }
        if writes_file && step % 2 == 0 {
            event(alloc, RECORDER, time + 2_000, &[0x10_0000 + step, 0, FILE, 1]);
        }
    }
    let path = scratch.0.join(name);
    fs::write(&path, writer.finish().unwrap()).unwrap();
    path
}

#[test]
fn pages_are_in_the_answer_and_the_recorder_is_left_out() {
    let scratch = Scratch::new();
    let before = recording(&scratch, "before.kmt", None, true);
    let after = recording(&scratch, "after.kmt", Some(4), false);
    let diff = |more: &[&str]| {
        let args = [&["diff", "--wide"], more, &[before.to_str().unwrap()]].concat();
        stdout(&run(&args, &after)).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let screen = diff(&[]);
    assert!(
        screen.starts_with("Live memory of pages grew by 1.56 MiB beyond noise, 100 % of it by order 0"),
        "{screen}"
    );
    assert!(screen.contains("--with-recorder counts it"), "{screen}");
    let rows = |more: &[&str]| {
        let report = json(
            &[&["diff", "--json", "--all", "-l", "0"], more, &[before.to_str().unwrap()]].concat(),
            &after,
        );
        let rows = at(&report, "/diff/rows").as_array().unwrap().len();
        (
            rows,
            at(&report, "/diff/without_recorder") == true,
            at(&report, "/diff/live_page_growth_beyond_noise").clone(),
        )
    };
    let growth = serde_json::json!(400.0 * 4096.0);
    assert_eq!(rows(&[]), (1, true, growth.clone()));
    assert_eq!(rows(&["--with-recorder"]), (2, false, growth));
    // 800 pages of the recorder are larger than 400 of the leak.
    let screen = diff(&["--with-recorder"]);
    assert!(screen.starts_with("Live memory of pages fell by 1.56 MiB beyond noise"), "{screen}");
}

/// What is born behind a window, to complete what began in it, is none of it.
#[test]
fn live_pages_of_a_window_are_those_that_pages_has() {
    let scratch = Scratch::new();
    let sample =
        scratch.convert(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1"));
    let window = "+0.04..+0.19";
    let pages = json(&["summary", "--json", "--time", window], &sample);
    let live = at(&pages, "/pages/bytes_live").as_f64().unwrap();
    for by in ["call-site", "cache"] {
        let args = ["--json", "--all", "-l", "0", "--with-recorder", "--totals", "--by", by];
        let times = ["diff", "--time", window, "--against", "+0.2..+0.35"];
        let document = json(&[&times[..], &args].concat(), &sample);
        let rows = at(&document, "/diff/rows").as_array().unwrap();
        let of_pages = rows.iter().filter(|row| *at(row, "/kind") == "pages");
        let sum: f64 = of_pages.map(|row| at(row, "/bytes_live/before").as_f64().unwrap()).sum();
        assert_eq!(sum, live, "by {by}");
    }
}
