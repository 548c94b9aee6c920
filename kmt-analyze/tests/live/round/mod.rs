//! The same events as text of every layout, converted, against the raw buffers: what differs is what the text lacks.
//!
//! `KMT_RAW_CAPTURES` names captures of other kernels with their text. `KMT_ROUND_EVENTS` is the number of events.

mod compare;
mod instance;
mod layouts;
mod prefixes;
mod rows;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use self::compare::{compare, is_printed_again};
use self::instance::{Instance, LOAD, record};
use self::layouts::{KERNEL, Layout, PERF, PERF_REFUSED, TRACE_CMD};
use self::prefixes::{PREFIXES, with_prefix};
use self::rows::Rows;
use crate::support::alone::Alone;
use crate::support::files::{Scratch, convert, copy, stderr};
use crate::support::skip::{Lack, skip};

/// Without it trace-cmd 3.1 crashes.
const PRINT_FORMAT: &str = "name: print\nID: 5\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;\n\n\
    print fmt: \"%ps: %s\", (void *)REC->ip, REC->buf\n";

/// Differences, and how much was compared.
#[derive(Default)]
struct Results {
    differences: Vec<String>,
    compared: usize,
}

impl Results {
    /// A text without and behind each prefix. Prints a row of a table.
    fn text(&mut self, scratch: &Scratch, raw: &Rows, text: &str, layout: &Layout) {
        let plain = match read(scratch, text) {
            Ok(plain) => plain,
            Err(e) => return self.differ(layout, "", &e),
        };
        let again = is_printed_again(text, &plain, layout);
        match compare(raw, &plain, layout).and_then(|events| again.map(|()| events)) {
            Ok(events) => {
                self.compared += events;
                println!("{}: {events} events", layout.name);
            }
            Err(e) => self.differ(layout, "", &e),
        }
        for (name, prefix) in PREFIXES {
            match read(scratch, &with_prefix(text, prefix)) {
                Ok(read) if read == plain => {}
                Ok(read) => {
                    let at = read.rows.iter().zip(&plain.rows).find(|(a, b)| a != b);
                    let names: Vec<_> = read.names.symmetric_difference(&plain.names).take(8).collect();
                    let what = format!(
                        "{} events of {}, {} losses, names {names:?}: {at:?}",
                        read.rows.len(),
                        plain.rows.len(),
                        read.losses
                    );
                    self.differ(layout, name, &what);
                }
                Err(e) => self.differ(layout, name, &e),
            }
        }
    }

    fn differ(&mut self, layout: &Layout, prefix: &str, what: &str) {
        let what = format!("{}, prefix {prefix:?}: {what}", layout.name);
        println!("DIFFERS {what}");
        self.differences.push(what);
    }

    fn end(self) {
        assert!(
            self.differences.is_empty(),
            "{} differences: {}",
            self.differences.len(),
            self.differences[0]
        );
        assert!(self.compared > 0, "nothing was compared");
    }
}

/// The events of a text.
fn read(scratch: &Scratch, text: &str) -> Result<Rows, String> {
    let input = scratch.0.join("text");
    fs::write(&input, text).unwrap();
    converted(scratch, &input)
}

fn converted(scratch: &Scratch, input: &Path) -> Result<Rows, String> {
    let output = scratch.0.join("out.kmt");
    convert(input, &output, None)?;
    Ok(Rows::of(&fs::read(output).unwrap()))
}

fn events() -> u64 {
    std::env::var("KMT_ROUND_EVENTS").map_or(100_000, |text| text.parse().unwrap())
}

fn is_there(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        skip(Lack::Program, &format!("{program} is not installed"));
    }
    is_there
}

/// A trace.dat of a capture, and what `trace-cmd report` prints of it.
fn reports(scratch: &Scratch, capture: &Path, results: &mut Results) {
    let folder = scratch.0.join("dat");
    fs::create_dir(&folder).unwrap();
    let (head, whole) = (folder.join("head.dat"), folder.join("trace.dat"));
    let tracefs = capture.join("tracefs");
    let count = fs::read_dir(tracefs.join("per_cpu")).unwrap().count();
    let raw = (0..count).map(|cpu| tracefs.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw")));
    let run = |command: &mut Command| {
        let output = command.current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", stderr(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let mut begin = Command::new("trace-cmd");
    begin.args(["restore", "-c", "-t"]).arg(&tracefs).arg("-k").arg(capture.join("kallsyms"));
    run(begin.arg("-o").arg(&head));
    run(Command::new("trace-cmd").args(["restore", "-o"]).arg(&whole).arg("-i").arg(&head).args(raw));
    let raw = converted(scratch, &whole).unwrap();
    for layout in &TRACE_CMD {
        let text = run(Command::new("trace-cmd").arg("report").args(layout.options).arg("-i").arg(&whole));
        // Of other byte orders.
        if !text.contains("kmalloc: ") {
            println!("trace-cmd prints no event");
            return;
        }
        results.text(scratch, &raw, &text, layout);
    }
}

#[test]
#[ignore = "takes minutes: .ci/nightly runs it"]
fn text_of_the_kernel_and_of_trace_cmd_is_read_back() {
    let Some(alone) = Alone::or_skip() else { return };
    let scratch = Scratch::new();
    let (instance, piped) = (Instance::new("round"), Instance::new("round-pipe"));
    record(&[&instance, &piped], events());
    let texts: Vec<(&Layout, String)> =
        KERNEL.iter().map(|layout| (layout, instance.text(layout.options))).collect();
    let capture = scratch.0.join("capture");
    fs::create_dir(&capture).unwrap();
    instance.capture(&capture);
    let (unpiped, from_pipe) = (piped.text(&[]), piped.pipe());
    drop((instance, piped, alone));
    let raw = converted(&scratch, &capture).unwrap();
    assert!(raw.rows.len() as u64 >= events());
    let mut results = Results::default();
    for (layout, text) in &texts {
        results.text(&scratch, &raw, text, layout);
    }
    let unpiped = read(&scratch, &unpiped).unwrap();
    results.text(&scratch, &unpiped, &from_pipe, &Layout { name: "trace_pipe", ..KERNEL[0] });
    if is_there("trace-cmd") {
        reports(&scratch, &capture, &mut results);
    }
    results.end();
}

#[test]
#[ignore = "takes minutes: .ci/nightly runs it"]
fn text_of_perf_script_is_read_back() {
    let Some(alone) = Alone::or_skip() else { return };
    if !is_there("perf") {
        return;
    }
    let scratch = Scratch::new();
    let recording = scratch.0.join("perf.data");
    let mut perf = Command::new("perf");
    perf.args(["record", "-a", "-c", "1", "-m", "8192", "-o"]).arg(&recording);
    for event in ["kmalloc", "kfree", "kmem_cache_alloc", "kmem_cache_free", "mm_page_free", "rss_stat"] {
        perf.args(["-e", &format!("kmem:{event}")]);
    }
    perf.args([
        "-e",
        "kmem:mm_page_alloc/call-graph=fp/",
        "-e",
        "task:task_newtask",
        "-e",
        "sched:sched_switch",
    ]);
    let rounds = events().div_ceil(100_000).to_string();
    let script = format!("i=0; while [ $i -lt {rounds} ]; do {LOAD}; i=$((i+1)); done");
    let recorded = perf.args(["--", "sh", "-c", &script]).output().unwrap();
    if !recorded.status.success() {
        return skip(Lack::Machine, &format!("perf cannot record: {}", stderr(&recorded)));
    }
    drop(alone);
    let raw = converted(&scratch, &recording).unwrap();
    let mut results = Results::default();
    let script = |options: &[&str]| {
        let mut script = Command::new("perf");
        let printed = script.args(["script", "-f", "-i"]).arg(&recording).args(options).output().unwrap();
        String::from_utf8_lossy(&printed.stdout).into_owned()
    };
    for layout in &PERF {
        results.text(&scratch, &raw, &script(layout.options), layout);
    }
    for (options, message) in PERF_REFUSED {
        let refused = read(&scratch, &script(options)).unwrap_err();
        assert!(refused.contains(message), "{options:?}: {refused}");
    }
    results.end();
}

/// Text of other kernels, recorded before.
#[test]
#[ignore = "KMT_RAW_CAPTURES names a folder of captures"]
fn text_of_captures_is_read_back() {
    let dir = std::env::var_os("KMT_RAW_CAPTURES").expect("KMT_RAW_CAPTURES names a folder of captures");
    let mut results = Results::default();
    let captures = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    // Slow readers lost events, and the text of functions is another one.
    let is_whole = |capture: &PathBuf| {
        let read = |file: &str| fs::read_to_string(capture.join("tracefs").join(file)).unwrap_or_default();
        !capture.join("tracefs-full").exists() && read("current_tracer").trim() == "nop"
    };
    for capture in captures.filter(|c| c.join("trace.txt").exists()).filter(is_whole) {
        println!("{}", capture.display());
        let (scratch, from) = (Scratch::new(), capture);
        let capture = scratch.0.join("capture");
        copy(&from, &capture);
        let print = capture.join("tracefs/events/ftrace/print");
        fs::create_dir_all(&print).unwrap();
        fs::write(print.join("format"), PRINT_FORMAT).unwrap();
        let raw = converted(&scratch, &capture).unwrap();
        let text = fs::read(capture.join("trace.txt")).unwrap();
        results.text(&scratch, &raw, &String::from_utf8_lossy(&text), &KERNEL[0]);
        // trace-cmd 3.1 reads a sub-buffer of one page only.
        let page = fs::read_to_string(capture.join("tracefs/events/header_page")).unwrap();
        if page.contains("size:40") && is_there("trace-cmd") {
            reports(&scratch, &capture, &mut results);
        }
    }
    results.end();
}
