//! kmt-capture on trees and notes that are made of any bytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use kmt_capture::convert::{Boot, Options, convert};
use kmt_capture::survivors::SurvivorArgs;
use kmt_capture::tracefs::undo_step;
use kmt_format::Compression;
use kmt_format::read::Trace;

use super::look;

/// A format of each kind of event, of Linux 6.1.
const FORMATS: [(&str, &str); 4] = [
    ("kmalloc", include_str!("../../kmt-format/tests/data/x86_64-6.1/tracefs/events/kmem/kmalloc/format")),
    ("kfree", include_str!("../../kmt-format/tests/data/x86_64-6.1/tracefs/events/kmem/kfree/format")),
    (
        "mm_page_alloc",
        include_str!("../../kmt-format/tests/data/x86_64-6.1/tracefs/events/kmem/mm_page_alloc/format"),
    ),
    (
        "mm_page_free",
        include_str!("../../kmt-format/tests/data/x86_64-6.1/tracefs/events/kmem/mm_page_free/format"),
    ),
];
const HEADER_PAGE: &str = include_str!("../../kmt-format/tests/data/x86_64-6.1/tracefs/events/header_page");

/// Files that the input replaces, by the first byte of a part.
const FILES: [&str; 18] = [
    "tracefs/per_cpu/cpu0/trace_pipe_raw",
    "tracefs/per_cpu/cpu1/trace_pipe_raw",
    "tracefs/per_cpu/cpu0/stats",
    "tracefs/per_cpu/cpu0/stats.after",
    "tracefs/events/header_page",
    "tracefs/events/kmem/kmalloc/format",
    "tracefs/events/kmem/kfree/filter",
    "tracefs/saved_cmdlines",
    "tracefs/saved_tgids",
    "tracefs/trace_clock",
    "tracefs/printk_formats",
    "kallsyms",
    "modules",
    "uname",
    "pagesize",
    "slabinfo.after",
    "zoneinfo",
    "cmdline",
];

/// A tree as it is copied off a target; parts of the input, divided by `\0\xff\0`, stand for files of it.
pub fn directories(data: &[u8]) {
    let tree = tree();
    let mut changed = Vec::new();
    for part in parts(data) {
        let Some((&which, contents)) = part.split_first() else { continue };
        let path = tree.join(FILES[usize::from(which) % FILES.len()]);
        fs::write(&path, contents).expect("our own folder");
        changed.push(path);
    }
    let output = tree.with_extension("kmt");
    let survivors = survivors(data);
    let options = Options {
        input: tree.clone(),
        output: output.clone(),
        force: true,
        compression: Compression::None,
        verbatim: survivors.is_none() && data.len() % 2 == 1,
        quiet: true,
        symbols: kmt_capture::record::Symbols::Used,
        instance: None,
        boot: [None, Some(Boot::First), Some(Boot::Last)][data.len() % 3],
        survivors,
        limits: kmt_capture::convert::Limits::default(),
    };
    if convert(&options).is_ok() {
        let file = fs::read(&output).expect("it was written");
        let trace = Trace::open(&file).expect("what was written can be opened");
        assert_eq!(trace.damages(), []);
        look::at(&trace);
    }
    for path in changed {
        let usual = usual(&path.strip_prefix(tree).expect("below the tree").to_string_lossy());
        match usual {
            Some(text) => fs::write(path, text).expect("our own folder"),
            None => fs::remove_file(path).unwrap_or_default(),
        }
    }
}

/// By the last byte: survivors and sums, with little memory and short intervals.
fn survivors(data: &[u8]) -> Option<SurvivorArgs> {
    let last = usize::from(*data.last()?);
    let thresholds = [None, Some(0), Some(1_000), Some(1_000_000)];
    Some(SurvivorArgs {
        threshold: thresholds[last % 4]?,
        interval: [1, 10_000, 5_000_000, 10_000_000_000][last / 4 % 4],
        memory: [1, 4 << 10, 64 << 10, 1 << 20][last / 16 % 4],
    })
}

fn parts(data: &[u8]) -> Vec<&[u8]> {
    let (mut out, mut start, mut at) = (Vec::new(), 0, 0);
    while at + 3 <= data.len() {
        if data[at..].starts_with(b"\0\xff\0") {
            out.push(&data[start..at]);
            (start, at) = (at + 3, at + 3);
        } else {
            at += 1;
        }
    }
    out.push(&data[start..]);
    out.truncate(6);
    out
}

/// A file of the tree where the input has none.
fn usual(name: &str) -> Option<&'static str> {
    match name {
        "tracefs/events/header_page" => Some(HEADER_PAGE),
        "tracefs/per_cpu/cpu0/trace_pipe_raw" => Some(""),
        "tracefs/trace_clock" => Some("local [mono] global\n"),
        _ => FORMATS
            .iter()
            .find(|(event, _)| name == format!("tracefs/events/kmem/{event}/format"))
            .map(|(_, t)| *t),
    }
}

/// Laid out once for each process, in memory where there is such a folder.
fn tree() -> &'static PathBuf {
    static TREE: OnceLock<PathBuf> = OnceLock::new();
    TREE.get_or_init(|| {
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let tree = base.join(format!("kmt-fuzz-{}", std::process::id()));
        for name in FILES.into_iter().chain(["tracefs/events/kmem/kfree/format"]) {
            fs::create_dir_all(tree.join(name).parent().expect("in a folder")).expect("a folder to write to");
        }
        for (event, text) in FORMATS {
            let folder = tree.join("tracefs/events/kmem").join(event);
            fs::create_dir_all(&folder).expect("a folder to write to");
            fs::write(folder.join("format"), text).expect("a folder to write to");
        }
        for name in
            ["tracefs/events/header_page", "tracefs/per_cpu/cpu0/trace_pipe_raw", "tracefs/trace_clock"]
        {
            fs::write(tree.join(name), usual(name).unwrap_or_default()).expect("a folder to write to");
        }
        tree
    })
}

/// Any text as a line of notes on how to undo changes: what is read is written the same.
pub fn undo_notes(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for line in text.lines() {
        if let Some(again) = undo_step(line) {
            assert_eq!(undo_step(again.trim_end_matches('\n')).as_ref(), Some(&again));
        }
    }
}
