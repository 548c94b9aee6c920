//! Texts of kernels and tools, converted and read back: each event, stack and loss as the text has it.
#![cfg(feature = "convert")]

mod boots;
mod columns;
mod foreign;
mod losses;
mod numbers;
mod pages;
mod prefixes;
mod round;
mod stacks;

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use kmt_format::print::{EventText, PrintEnv};
use kmt_format::read::{Item, TaskRecord, Trace};
use kmt_format::schema::Role;

/// A converted text.
#[derive(Debug)]
struct Converted {
    /// Exit code of the conversion.
    code: Option<i32>,
    /// Messages of the conversion.
    stderr: String,
    /// `COMM-PID [CPU] NANOSECONDS: EVENT: TEXT` of each event, in the order of times; stacks as `stack: FRAME FRAME`.
    lines: Vec<String>,
    /// Call site of each line.
    sites: Vec<Option<u64>>,
    /// Frame number of each line.
    frames: Vec<Option<u64>>,
    /// Pointer, requested and allocated bytes, and order of each line.
    numbers: Vec<[Option<u64>; 4]>,
    /// `PID (TGID) COMM since TIME` of each name of a task.
    tasks: Vec<String>,
    /// Lost events that were counted.
    lost: u64,
    /// Losses without a count.
    uncounted: u64,
    /// Entries that the header counts and the text has not.
    missing: u64,
    /// Entries that were overwritten before the first one.
    overwritten: u64,
}

impl Converted {
    /// `EVENT: TEXT` of each line.
    fn texts(&self) -> Vec<&str> {
        self.lines.iter().map(|line| line.split_once(": ").unwrap().1).collect()
    }

    /// Only stacks.
    fn stacks(&self) -> Vec<&str> {
        self.texts().into_iter().filter_map(|text| text.strip_prefix("stack: ")).collect()
    }

    /// Everything is read, and no message says otherwise.
    fn is_whole(&self) {
        assert_eq!((self.code, self.lost, self.uncounted), (Some(0), 0, 0), "{}", self.stderr);
        for part in ["without an event", "lost", "cannot be"] {
            assert!(!self.stderr.contains(part), "{part}: {}", self.stderr);
        }
    }
}

/// Runs `kmt-capture convert` over a text: exit code, messages, and the file.
fn run(text: &str, options: &[&str]) -> (Option<i32>, String, Option<Vec<u8>>) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("kmt-capture-text-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).unwrap();
    let (input, output) = (folder.join("trace.txt"), folder.join("out.kmt"));
    fs::write(&input, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-capture"));
    let ran = command.arg("convert").arg(&input).arg("-o").arg(&output).args(options).output().unwrap();
    let file = fs::read(&output).ok();
    fs::remove_dir_all(&folder).unwrap();
    (ran.status.code(), String::from_utf8(ran.stderr).unwrap(), file)
}

/// Message of a conversion that refuses a text.
fn refused(text: &str) -> String {
    let (code, stderr, file) = run(text, &[]);
    assert!(code == Some(1) && file.is_none(), "{code:?}: {stderr}");
    stderr
}

/// Converts a text and reads the file.
fn converted(text: &str) -> Converted {
    converted_with(text, &[])
}

/// Converts a text with options and reads the file.
fn converted_with(text: &str, options: &[&str]) -> Converted {
    let (code, stderr, file) = run(text, options);
    let file = file.unwrap_or_else(|| panic!("{stderr}"));
    let trace = Trace::open(&file).unwrap();
    let env = PrintEnv::of(trace.header(), trace.metadata(), trace.symbols());
    let (mut lines, mut sites, mut frames, mut numbers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut lost, mut uncounted) = (0, 0);
    for item in trace.items() {
        match item {
            Item::Event(event) => {
                let comm = String::from_utf8_lossy(event.comm().unwrap_or(b"?")).into_owned();
                let mut line =
                    format!("{comm}-{} [{}] {}: ", event.pid(), event.cpu(), event.time()).into_bytes();
                if let Some(stack) = event.stack() {
                    let frames: Vec<String> = stack
                        .addresses()
                        .map(|a| String::from_utf8(env.symbol_with_offset(a)).unwrap())
                        .collect();
                    line.extend(format!("stack: {}", frames.join(" ")).into_bytes());
                } else {
                    EventText::new(event.class(), &env).write(&mut line, &event, &env);
                }
                sites.push(event.uint_with(Role::CALL_SITE));
                let roles = [Role::PTR, Role::BYTES_REQ, Role::BYTES_ALLOC, Role::ORDER];
                numbers.push(roles.map(|role| event.uint_with(role)));
                frames.push(event.uint_with(Role::PFN));
                lines.push(String::from_utf8(line).unwrap().trim_end().to_owned());
            }
            Item::Loss(gap) => {
                lost += gap.counted();
                uncounted += u64::from(gap.counted() == 0);
            }
            _ => {}
        }
    }
    let named = |t: &TaskRecord<'_>| {
        let comm = String::from_utf8_lossy(&t.comm).into_owned();
        format!("{} ({}) {comm} since {}", t.pid, t.tgid, t.time)
    };
    let tasks = trace.metadata().tasks.iter().map(named).collect();
    let number = |key| trace.metadata().text(key).map_or(0, |number| number.parse().unwrap());
    let (missing, overwritten) = (number("input.missing"), number("input.overwritten"));
    Converted { code, stderr, lines, sites, frames, numbers, tasks, lost, uncounted, missing, overwritten }
}

/// A line of `trace` of task sh.
fn line(us: u64, event: &str) -> String {
    format!("              sh-2011    [001] d..1.   454.{us:06}: {event}\n")
}
