//! Traces of Perfetto, converted and read back.
#![cfg(feature = "convert")]

mod encoder;
mod events;
mod files;
mod hostile;
mod losses;
mod tasks;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use kmt_format::Loss;
use kmt_format::print::{EventText, PrintEnv};
use kmt_format::read::{Item, TaskRecord, Trace};
use kmt_format::schema::Role;

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("kmt-perfetto-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// Converts a trace: exit code, messages, and the file.
    fn run(&self, bytes: &[u8], options: &[&str]) -> (Option<i32>, String, Option<Vec<u8>>) {
        let (input, output) = (self.0.join("trace"), self.0.join("out.kmt"));
        fs::write(&input, bytes).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-capture"));
        let ran = command.arg("convert").arg(&input).arg("-o").arg(&output).args(options).output().unwrap();
        (ran.status.code(), String::from_utf8(ran.stderr).unwrap(), fs::read(&output).ok())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A converted trace.
#[derive(Debug)]
struct Converted {
    /// Exit code of the conversion.
    code: Option<i32>,
    /// Messages of the conversion.
    stderr: String,
    /// The file.
    file: Vec<u8>,
    /// `PID [CPU] TIME: SYSTEM:EVENT: TEXT` of each event, in the order of each CPU.
    lines: Vec<String>,
    /// Allocation flags of each event.
    gfp_flags: Vec<Option<u64>>,
    /// Losses: CPU, time of the event before, loss.
    losses: Vec<(u32, Option<u64>, Loss)>,
    /// Counters of the kernel: CPU, events lost.
    counters: Vec<(u32, Option<u64>)>,
    /// `PID (TGID) COMM since TIME` of each name of a task.
    tasks: Vec<String>,
}

fn converted(trace: &[u8]) -> Converted {
    let folder = Folder::new();
    let (code, stderr, file) = folder.run(trace, &[]);
    read(code, stderr, file)
}

/// Reads the file of a conversion.
fn read(code: Option<i32>, stderr: String, file: Option<Vec<u8>>) -> Converted {
    let file = file.unwrap_or_else(|| panic!("{stderr}"));
    let trace = Trace::open(&file).unwrap();
    let env = PrintEnv::of(trace.header(), trace.metadata(), trace.symbols());
    let (mut lines, mut gfp_flags, mut losses) = (Vec::new(), Vec::new(), Vec::new());
    for item in trace.items() {
        match item {
            Item::Event(event) => {
                let (pid, system) = (event.pid(), &event.class().system);
                let mut line = format!("{pid} [{}] {}: {system}:", event.cpu(), event.time()).into_bytes();
                EventText::new(event.class(), &env).write(&mut line, &event, &env);
                lines.push(String::from_utf8(line).unwrap().trim_end().to_owned());
                gfp_flags.push(event.uint_with(Role::GFP_FLAGS));
            }
            Item::Loss(gap) => losses.push((gap.cpu, gap.after, gap.loss)),
            _ => {}
        }
    }
    losses.sort_by_key(|(cpu, after, _): &(u32, Option<u64>, Loss)| (*cpu, *after));
    let named = |t: &TaskRecord<'_>| {
        let comm = String::from_utf8_lossy(&t.comm).into_owned();
        format!("{} ({}) {comm} since {}", t.pid, t.tgid, t.time)
    };
    let tasks = trace.metadata().tasks.iter().map(named).collect();
    let counters = trace.metadata().counters.iter();
    let counters = counters.map(|(cpu, stats)| (*cpu, stats.after.and_then(|s| s.lost_events()))).collect();
    Converted { code, stderr, lines, gfp_flags, losses, counters, tasks, file: file.clone() }
}

/// Message of a conversion that refuses a trace.
fn refused(trace: &[u8], options: &[&str]) -> String {
    let (code, stderr, file) = Folder::new().run(trace, options);
    assert!(code == Some(1) && file.is_none(), "{code:?}: {stderr}");
    stderr
}
