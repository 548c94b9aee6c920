//! Damage of a file is counted once: screens, standard error and JSON have the same number.

use std::fs;
use std::path::{Path, PathBuf};

use kmt_format::raw::ChunkKind;
use kmt_format::read::Trace;
use serde_json::Value;

use super::model::{BASE, Crafted};
use crate::support::files::{Scratch, at, json, run, stderr, stdout};
use crate::support::model::{Event, What};

/// Chunks that cannot be found, and chunks that cannot be read.
const HEADS: usize = 1_500;
const BODIES: usize = 7;

/// More damage than the list of a trace holds, of both kinds; between two damaged chunks is a sound one.
fn damaged(scratch: &Scratch) -> PathBuf {
    let mut crafted = Crafted::new();
    for n in 0..2 * (HEADS + BODIES) as u64 {
        let what = What::Alloc { kmalloc: true, site: 1, ptr: BASE + n * 64, req: 8, alloc: 8 };
        crafted.event(&Event { time: 1_000 + n, cpu: 0, pid: 7, what });
        crafted.writer.flush(0).unwrap();
    }
    let mut bytes = crafted.writer.finish().unwrap();
    let chunks: Vec<_> = Trace::open(&bytes).unwrap().chunks().collect();
    let events = chunks.iter().filter(|chunk| chunk.kind == ChunkKind::EVENTS).step_by(2);
    for (number, chunk) in events.enumerate() {
        let place = if number < HEADS { chunk.offset } else { chunk.body_offset() + chunk.body_len - 1 };
        bytes[place as usize] ^= 1;
    }
    let file = scratch.0.join("damaged.kmt");
    fs::write(&file, bytes).unwrap();
    file
}

/// Number of damaged places by standard error: those that are listed, and the number of others.
fn reported(text: &str) -> u64 {
    let listed = text.lines().filter(|line| line.contains("bytes cannot be used)")).count() as u64;
    let more = text.lines().find_map(|line| line.strip_suffix(" more damaged parts"));
    listed + more.map_or(0, |line| number(line.rsplit(' ').next().unwrap()))
}

fn number(text: &str) -> u64 {
    text.replace(',', "").parse().unwrap_or_else(|_| panic!("{text}"))
}

/// The number before these words.
fn number_before(text: &str, words: &str) -> u64 {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (before, _) = text.split_once(words).unwrap_or_else(|| panic!("no {words} in {text}"));
    number(before.rsplit([' ', '(']).next().unwrap())
}

#[test]
fn screens_standard_error_and_json_count_the_same_damage() {
    let scratch = Scratch::new();
    let file = damaged(&scratch);
    let all = (HEADS + BODIES) as u64;
    for report in ["summary", "callers", "all"] {
        let output = run(&[report], &file);
        assert_eq!(output.status.code(), Some(3), "{report}");
        assert_eq!(number_before(&stdout(&output), " damaged places)"), all, "{report}");
        assert_eq!(reported(&stderr(&output)), all, "{report}: {}", stderr(&output));
        let trust = json(&[report, "--json"], &file)["trust"].take();
        assert_eq!(at(&trust, "/damaged_places"), &Value::from(all), "{report}");
        assert_eq!(at(&trust, "/damaged_chunks"), &Value::from(BODIES), "{report}");
        assert_eq!(at(&trust, "/limits_exceeded"), &Value::Array(Vec::new()), "{report}");
    }
    let info = run(&["info"], &file);
    assert_eq!(number_before(&stdout(&info), " places."), all, "{}", stdout(&info));
    assert_eq!(reported(&stderr(&info)), all, "{}", stderr(&info));
    let info = json(&["info", "--json"], &file);
    assert_eq!(at(&info, "/integrity/damages_total"), &Value::from(all));
    assert!(at(&info, "/integrity/damages").as_array().unwrap().len() < all as usize);
    let verify = json(&["verify", "--json"], &file);
    assert_eq!(at(&verify, "/verify/damages_total"), &Value::from(all));
    for args in [&["dump"][..], &["export", "csv", "--of", "objects"], &["summary", "--compat", "perf-kmem"]]
    {
        assert_eq!(reported(&stderr(&run(args, &file))), all, "{args:?}");
    }
}

#[test]
fn a_limit_is_no_damage() {
    let scratch = Scratch::new();
    let file = scratch.convert(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.18-stacks"));
    let output = run(&["caches", "--limit", "texts=20"], &file);
    assert_eq!(output.status.code(), Some(3));
    let (screen, warning) = (stdout(&output), stderr(&output));
    assert!(!screen.contains("damaged") && screen.contains("`texts`"), "{screen}");
    assert!(!warning.contains("cannot be used") && warning.contains("--limit NAME=SIZE"), "{warning}");
    let trust = json(&["caches", "--json", "--limit", "texts=20"], &file)["trust"].take();
    assert_eq!(at(&trust, "/limits_exceeded"), &serde_json::json!(["texts"]));
    assert_eq!((at(&trust, "/damaged_places"), at(&trust, "/damaged_chunks")), (&0.into(), &0.into()));
    let sound = json(&["caches", "--json"], &file)["trust"].take();
    assert_eq!(at(&sound, "/limits_exceeded"), &Value::Array(Vec::new()));
}

/// Counters read on behind the selected time, for the names of caches; stalls and events do not.
#[test]
fn an_export_to_perfetto_reports_all_damage_that_it_met_once() {
    let scratch = Scratch::new();
    let file = damaged(&scratch);
    let out = scratch.0.join("out.pftrace").display().to_string();
    let all = (HEADS + BODIES) as u64;
    for more in [&[][..], &["--events"], &["--time", "+0..+0.0001"], &["--time", "+0..+0.0001", "--events"]] {
        let output = run(&[&["export", "perfetto", "--force", "-o", &out], more].concat(), &file);
        assert_eq!(output.status.code(), Some(3), "{more:?}");
        assert_eq!(reported(&stderr(&output)), all, "{more:?}: {}", stderr(&output));
    }
    // A body is damaged that only the counters read.
    let mut bytes = fs::read(scratch.convert(&capture())).unwrap();
    let chunks: Vec<_> = Trace::open(&bytes).unwrap().chunks().collect();
    let last = chunks.iter().rfind(|chunk| chunk.kind == ChunkKind::EVENTS).unwrap();
    bytes[(last.body_offset() + last.body_len - 1) as usize] ^= 1;
    fs::write(&file, bytes).unwrap();
    let args = ["export", "perfetto", "--time", "+0..+0.0001", "--events", "--force", "-o", &out];
    let output = run(&args, &file);
    assert_eq!((output.status.code(), reported(&stderr(&output))), (Some(3), 1), "{}", stderr(&output));
}

/// A capture with many chunks, whose allocations do not name their caches.
fn capture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1")
}
