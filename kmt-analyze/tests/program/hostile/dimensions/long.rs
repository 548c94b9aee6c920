//! Single texts that screens show, each as long as wanted: metadata, conditions of events, lines and names.

use kmt_format::write::Task;

use super::{HEAP, LONG, SITE, bytes};
use crate::support::hostile::Made;

/// Metadata that screens show, each value one long word.
pub fn metadata(count: u64) -> Vec<u8> {
    let value = "x".repeat(count as usize);
    with_metadata(&value)
}

/// The same with values of many short words.
pub fn words_of_metadata(count: u64) -> Vec<u8> {
    with_metadata(&"x ".repeat(count as usize / 2))
}

fn with_metadata(value: &str) -> Vec<u8> {
    const KEYS: [&str; 8] = [
        "uname",
        "kernel.release",
        "kernel.machine",
        "host",
        "record.command",
        "record.command_outcome",
        "perf/sampled",
        "writer",
    ];
    let mut made = some();
    let by_perf = format!("perf record --filter {value}");
    let pairs = KEYS.map(|key| (key, value.as_bytes()));
    made.writer().add_metadata(&pairs).unwrap();
    made.writer().add_metadata(&[("perf/cmdline", by_perf.as_bytes())]).unwrap();
    made.finish()
}

/// A filter of one long word.
pub fn filter(count: u64) -> Vec<u8> {
    with_filter(&"x".repeat(count as usize))
}

/// A filter of many short words.
pub fn words_of_filter(count: u64) -> Vec<u8> {
    with_filter(&"a > 1 && ".repeat(count as usize / 9))
}

fn with_filter(filter: &str) -> Vec<u8> {
    let mut made = some();
    let line = format!("kmem:kmalloc enable=1 filter={filter}\n");
    made.writer().add_file("event_conditions", line.as_bytes()).unwrap();
    made.finish()
}

/// Attached files of the kernel, each with one long line of one long word.
pub fn attached_lines(count: u64) -> Vec<u8> {
    let word = "x".repeat(count as usize);
    let mut made = some();
    for when in ["before", "after"] {
        for (name, text) in [
            ("buddyinfo", format!("Node 0, zone {word} 1 2 3\n")),
            ("meminfo", format!("{word}: 1 kB\n")),
            ("vmstat", format!("{word} 1\n")),
            ("slabinfo", format!("{word} 1 1 64 64 1 : tunables 0 0 0 : slabdata 1 1 0\n")),
            ("allocinfo", format!("allocinfo - version: 1.0\n1 1 mm/{word}.c:1 func:{word}\n")),
            ("page_owner", format!("1 {word}+0x1/0x2\n")),
            ("cgroups", format!("1 /{word}\n")),
        ] {
            made.writer().add_file(&format!("{name}.{when}"), text.as_bytes()).unwrap();
        }
    }
    made.finish()
}

/// Names of an attached file and of a task.
pub fn names(count: u64) -> Vec<u8> {
    let name = "x".repeat(count as usize);
    let mut made = some();
    made.writer().add_file(&name, b"a line\n").unwrap();
    made.writer().add_tasks(&[Task::new(7, name.clone())]).unwrap();
    made.finish()
}

/// A class with a long name that has most events.
pub fn class(count: u64) -> Vec<u8> {
    let mut made = some();
    made.class("system", &"x".repeat(count as usize), 20, &[(LONG, "value", 8)], "\"%lu\", REC->value");
    (0..3_000).for_each(|i| made.event(0, 20, 7, &bytes(&[i])));
    made.finish()
}

fn some() -> Made {
    let mut made = Made::default();
    for i in 0..1_000 {
        made.kmalloc(0, 7, SITE + i % 10 * 16, HEAP + i * 64);
        made.pages(0, 7, i * 512, 0);
    }
    made
}
