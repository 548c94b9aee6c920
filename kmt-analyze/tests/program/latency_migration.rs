//! Compaction and migration figures of `latency`, against sums over the text of the same events.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::files::{Scratch, at, convert, json, run, stdout};

/// Figures of a task, and the event and the key of the text that each is the sum of.
const FIGURES: [(&str, &[&str], &str); 8] = [
    ("compaction_scanned", &["mm_compaction_isolate_migratepages"], "nr_scanned"),
    ("compaction_isolated", &["mm_compaction_isolate_migratepages"], "nr_taken"),
    ("compaction_free_scanned", &FREE, "nr_scanned"),
    ("compaction_free_isolated", &FREE, "nr_taken"),
    ("compaction_migrated", &["mm_compaction_migratepages"], "nr_migrated"),
    ("compaction_failed", &["mm_compaction_migratepages"], "nr_failed"),
    ("pages_migrated", &["mm_migrate_pages"], "nr_succeeded"),
    ("pages_migration_failed", &["mm_migrate_pages"], "nr_failed"),
];

const FREE: [&str; 2] = ["mm_compaction_isolate_freepages", "mm_compaction_fast_isolate_freepages"];

/// A text of the kernel with events of three tasks; events whose names begin with `left_out` are not in it.
fn text(left_out: &str) -> String {
    let mut seed = 7u64;
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut out = "# tracer: nop\n#\n".to_owned();
    for number in 0..600u64 {
        let (a, b) = (next(4_096), next(512));
        let range = format!("range=(0x{:x} ~ 0x{:x}) nr_scanned={a} nr_taken={b}", a << 9, (a + 1) << 9);
        let event = match next(6) {
            0 => format!("mm_compaction_isolate_migratepages: {range}"),
            1 => format!("mm_compaction_isolate_freepages: {range}"),
            2 => format!("mm_compaction_fast_isolate_freepages: {range}"),
            3 => format!("mm_compaction_migratepages: nr_migrated={a} nr_failed={b}"),
            4 => format!(
                "mm_migrate_pages: nr_succeeded={a} nr_failed={b} nr_thp_succeeded=1 nr_thp_failed=2 \
                 nr_thp_split=3 nr_split=4 mode=MIGRATE_ASYNC reason=compaction"
            ),
            _ => "mm_compaction_defer_reset: node=0 zone=Normal order=1 considered=0 limit=0".to_owned(),
        };
        if left_out.is_empty() || !event.starts_with(left_out) {
            let pid = [51, 766, 767][next(3) as usize];
            out +=
                &format!("           task-{pid:<5} [00{}] ..... {:>4}.{number:06}: {event}\n", pid % 2, 10);
        }
    }
    out
}

/// Sums of the figures by task.
fn plainly(text: &str) -> BTreeMap<i64, [Option<u64>; 8]> {
    let is_recorded = FIGURES.map(|(_, events, _)| text.contains(&format!(": {}: ", events[0])));
    let mut out: BTreeMap<i64, [Option<u64>; 8]> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let pid = line.split(" [").next().unwrap().trim().rsplit('-').next().unwrap().parse().unwrap();
        let (_, event) = line.split_once(": ").unwrap();
        let (name, values) = event.split_once(": ").unwrap();
        if !FIGURES.iter().any(|(_, events, _)| events.contains(&name)) {
            continue;
        }
        let sums = out.entry(pid).or_insert(is_recorded.map(|is| is.then_some(0)));
        for (sum, (_, events, key)) in sums.iter_mut().zip(FIGURES) {
            let value = values.split(' ').find_map(|word| word.strip_prefix(&format!("{key}=")));
            if let (true, Some(value)) = (events.contains(&name), value) {
                *sum = sum.map(|sum| sum + value.parse::<u64>().unwrap());
            }
        }
    }
    out
}

fn reported(report: &Value) -> BTreeMap<i64, [Option<u64>; 8]> {
    let tasks = report["latency"]["tasks"].as_array().unwrap();
    let figures = |task: &Value| FIGURES.map(|(figure, ..)| at(task, &format!("/{figure}")).as_u64());
    tasks.iter().map(|task| (task["pid"].as_i64().unwrap(), figures(task))).collect()
}

#[test]
fn figures_are_the_sums_of_the_events_of_each_task() {
    let scratch = Scratch::new();
    let (input, file) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
    for left_out in ["", "mm_migrate_pages", "mm_compaction_isolate", "mm_compaction_migratepages"] {
        let text = text(left_out);
        fs::write(&input, &text).unwrap();
        convert(&input, &file, None).unwrap();
        let report = json(&["latency", "--json", "-l", "0"], &file);
        let expected = plainly(&text);
        assert_eq!(expected.len(), 3);
        assert_eq!(reported(&report), expected, "without {left_out}");
        let missing = report["latency"]["not_recorded"].to_string();
        assert!(left_out.is_empty() || missing.contains(left_out), "{missing}");
    }
    let screen = stdout(&run(&["latency", "--wide"], &file));
    assert!(screen.contains("isolated") && screen.contains("migrated"), "{screen}");
    assert!(!screen.contains("compacted"), "unknown for all tasks: {screen}");
}

#[test]
fn events_that_were_not_recorded_have_no_figures() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.1-reclaim");
    let scratch = Scratch::new();
    let report = json(&["latency", "--json"], &scratch.convert(&data));
    for (task, figures) in reported(&report) {
        assert_eq!(figures, [None; 8], "{task}");
    }
}
