//! No conversion's work is a product of two counts of its input. Each file is of a size at which such work takes minutes
//! or gigabytes.
#![cfg(feature = "convert")]

#[path = "support/bounded.rs"]
mod bounded;

use std::fs;
use std::path::{Path, PathBuf};

use bounded::bounded;
use kmt_format::read::Trace;

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("kmt-products-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// Converts a file within the bounds; returns the new file and the messages.
    fn convert(&self, bytes: &[u8]) -> (Vec<u8>, String) {
        let (input, made) = (self.0.join("input"), self.0.join("out.kmt"));
        fs::write(&input, bytes).unwrap();
        let output = bounded(&input, &made, &[]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(0), "{:?}: {told}", output.status);
        (fs::read(made).unwrap(), told)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn number(out: &mut Vec<u8>, value: u64, size: usize) {
    out.extend_from_slice(&value.to_le_bytes()[..size]);
}

/// The `format` of an event whose fields all are its last 8 bytes.
fn format(name: &str, id: u32, fields: &[&str]) -> String {
    let field = |field: &&str| format!("\tfield:{field};\toffset:8;\tsize:8;\tsigned:0;\n");
    format!(
        "name: {name}\nID: {id}\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n{}\nprint fmt: \"\"\n",
        fields.iter().map(field).collect::<String>()
    )
}

/// Tracing data of perf: formats of one system.
fn tracing_data(system: &str, formats: &[String]) -> Vec<u8> {
    let mut out = b"\x17\x08\x44tracing0.6\0\0\x08\0\x10\0\0".to_vec();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kmt-format/tests/data/x86_64-6.1");
    let header_page = fs::read(data.join("tracefs/events/header_page")).unwrap();
    for (name, text) in [(&b"header_page\0"[..], &header_page[..]), (b"header_event\0", b"")] {
        out.extend_from_slice(name);
        number(&mut out, text.len() as u64, 8);
        out.extend_from_slice(text);
    }
    number(&mut out, 0, 4);
    number(&mut out, 1, 4);
    out.extend_from_slice(system.as_bytes());
    out.push(0);
    number(&mut out, formats.len() as u64, 4);
    for text in formats {
        number(&mut out, text.len() as u64, 8);
        out.extend_from_slice(text.as_bytes());
    }
    // kallsyms, printk_formats, saved_cmdlines.
    out.extend_from_slice(&[0; 4 + 4 + 8]);
    out
}

/// A file of perf with one attribute, whose samples have time, CPU, period and record.
fn perf_data(event: u32, period: u64, tracing: &[u8], records: &[u8]) -> Vec<u8> {
    const HEADER_LEN: u64 = 104;
    const ATTR_LEN: u64 = 112 + 16;
    const SAMPLE_TYPE: u64 = 1 << 2 | 1 << 7 | 1 << 8 | 1 << 10;
    let mut out = b"PERFILE2".to_vec();
    let data = HEADER_LEN + ATTR_LEN;
    // Of the features only the tracing data.
    let words =
        [HEADER_LEN, ATTR_LEN, HEADER_LEN, ATTR_LEN, data, records.len() as u64, 0, 0, 1 << 1, 0, 0, 0];
    words.iter().for_each(|&word| number(&mut out, word, 8));
    // A frequency is asked for where the period is 0.
    let flags = if period == 0 { 1 << 10 } else { 0 };
    let attr = [2 | 112 << 32, event.into(), period, SAMPLE_TYPE, 0, flags];
    attr.iter().for_each(|&word| number(&mut out, word, 8));
    out.resize(data as usize, 0);
    out.extend_from_slice(records);
    let features_end = out.len() as u64 + 16;
    number(&mut out, features_end, 8);
    number(&mut out, tracing.len() as u64, 8);
    out.extend_from_slice(tracing);
    out
}

/// Task of all samples.
const PID: i32 = 7;

/// Adds a sample of an event, with 8 bytes after its common fields.
fn sample(out: &mut Vec<u8>, time: u64, event: u32, word: u64) {
    const BODY_LEN: u64 = 8 + 8 + 8 + 4 + 20;
    number(out, 9, 4);
    number(out, 0, 2);
    number(out, 8 + BODY_LEN, 2);
    number(out, time, 8);
    number(out, 0, 8);
    number(out, 1, 8);
    number(out, 20, 4);
    number(out, event.into(), 4);
    number(out, PID as u64, 4);
    number(out, word, 8);
    number(out, 0, 4);
}

#[test]
fn events_that_name_tasks() {
    const NAMING: u32 = 60_000;
    const EVENTS: u64 = 500_000;
    let mut formats = vec![format("plain", 1, &["u64 x"])];
    formats.extend((2..NAMING).map(|id| format("task_rename", id, &["char newcomm[8]"])));
    let mut records = Vec::new();
    (0..EVENTS).for_each(|time| sample(&mut records, time, 1, 7));
    sample(&mut records, EVENTS, NAMING - 1, u64::from_le_bytes(*b"renamed\0"));
    let input = perf_data(1, 1, &tracing_data("task", &formats), &records);
    let (file, _) = Folder::new("naming").convert(&input);
    let trace = Trace::open(&file).unwrap();
    let tasks: Vec<_> =
        trace.metadata().tasks.iter().map(|task| (task.pid, task.time, task.comm.to_vec())).collect();
    assert_eq!(tasks, [(PID, EVENTS, b"renamed".to_vec())]);
    assert_eq!(trace.event_count(), EVENTS + 1);
}

#[test]
fn call_sites_of_a_sampled_event_with_a_long_name() {
    const SITES: u64 = 60_000;
    let fields = ["unsigned long call_site", "size_t bytes_req", "size_t bytes_alloc"];
    let formats = [format(&"n".repeat(16_000), 1, &fields)];
    let mut records = Vec::new();
    (0..SITES).for_each(|site| sample(&mut records, site, 1, site));
    let input = perf_data(1, 0, &tracing_data("kmem", &formats), &records);
    let (file, told) = Folder::new("sampled").convert(&input);
    assert!(told.contains("was sampled"), "{told}");
    assert_eq!(Trace::open(&file).unwrap().event_count(), SITES);
}

/// Lines whose prefixes are long, deep, and all different.
#[test]
fn prefixes_of_lines() {
    const LINES: usize = 60_000;
    const PARTS: [&str; 8] =
        ["> ", "<6>", "kern  :warn  : ", "[    1.5] ", "[ T12] ", "Nov 28 09:00:00 ", "W/a: ", "b.dat: "];
    let mut text = Vec::new();
    for line in 0..LINES {
        // Eight parts of eight, in the order of the digits of a number.
        let part = |at: usize| PARTS[line.wrapping_mul(2_654_435_761) >> (at * 3) & 7];
        (0..8).for_each(|at| text.extend_from_slice(part(at).as_bytes()));
        text.extend_from_slice(
            format!(
                "    sh-7       [001] d..1. 1.{:06}: kfree: call_site=f+0x1/0x2 ptr=ffff888100001000\n",
                line
            )
            .as_bytes(),
        );
    }
    for part in PARTS {
        text.extend_from_slice(part.repeat(400_000).as_bytes());
        text.push(b'\n');
    }
    let folder = Folder::new("prefixes");
    let (input, made) = (folder.0.join("input"), folder.0.join("out.kmt"));
    fs::write(&input, &text).unwrap();
    let output = bounded(&input, &made, &[]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    // Prefixes that the text does not share are not guessed.
    assert!(output.status.code() == Some(3) && told.contains("lines with a part of an event"), "{told}");
    let trace = fs::read(made).unwrap();
    assert!(Trace::open(&trace).unwrap().event_count() < LINES as u64);
}
