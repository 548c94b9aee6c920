//! Latencies of functions: the function_graph tracer with a threshold.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::time::Duration;

use super::plan::Plan;
use crate::failure::{Failure, Result};
use crate::tracefs::{TraceDir, Undo};

/// Where the tracer can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In our own instance (6.9 and later, by trying).
    Instance,
    /// At the top level only.
    TopLevel,
    /// The kernel does not have it.
    Nowhere,
}

const TRACER: &str = "function_graph";
const THRESHOLD_DEFAULT: Duration = Duration::from_micros(100);

/// Tries where the tracer can run; nothing is recorded meanwhile.
pub fn place(top: &TraceDir, instance: &TraceDir) -> Place {
    let has = |dir: &TraceDir| {
        dir.read("available_tracers").is_some_and(|t| t.split_ascii_whitespace().any(|name| name == TRACER))
    };
    if !has(top) {
        return Place::Nowhere;
    }
    if has(instance) && instance.write("current_tracer", TRACER).is_ok() {
        let _ = instance.write("current_tracer", "nop");
        return Place::Instance;
    }
    Place::TopLevel
}

/// Checks that nobody uses the top level, and remembers its state.
pub fn occupy(top: &TraceDir, undo: &mut Undo) -> Result<()> {
    let user = |what: String, remedy: &str| {
        Err(Failure::new(format!("the top level of {} is in use: {what}", top.path().display()))
            .hint(format!("this kernel has function graphs there only; {remedy}")))
    };
    let read = |name: &str| top.read(name).unwrap_or_default().trim().to_owned();
    let tracer = read("current_tracer");
    if tracer != "nop" {
        return user(
            format!("current_tracer is {tracer}"),
            "stop the other tracer, or record another preset",
        );
    }
    let events = read("set_event");
    if let Some(event) = events.lines().next() {
        return user(format!("{event} is enabled"), "disable its events, or record another preset");
    }
    for (file, unused) in
        [("set_ftrace_filter", "#"), ("set_graph_function", "#"), ("set_event_pid", "no pid")]
    {
        let text = read(file);
        if !text.is_empty() && !text.starts_with(unused) {
            return user(format!("{file} is set"), "clear it, or record another preset");
        }
    }
    let entries: u64 = top
        .cpus()
        .iter()
        .filter_map(|cpu| {
            kmt_format::kernel::CpuStats::parse(&top.read(&format!("per_cpu/cpu{cpu}/stats"))?)?.entries
        })
        .sum();
    if entries > 0 {
        return user(
            format!("its buffer holds {entries} events of another recording"),
            "empty it with `echo > trace` if nobody needs them",
        );
    }
    let on = read("tracing_on");
    undo.change(top, "tracing_on", &on, "0")
}

/// Whether somebody else has set a threshold, which is one for all instances.
fn threshold_in_use(top: &TraceDir) -> Option<String> {
    let value = top.read("tracing_thresh")?.trim().to_owned();
    (value != "0").then_some(value)
}

/// Sets functions, threshold and tracer; returns what is to be said. `plan` keeps the functions that are traced.
pub fn prepare(
    top: &TraceDir,
    dir: &TraceDir,
    threshold: Option<Duration>,
    plan: &mut Plan,
    undo: &mut Undo,
) -> Result<Vec<String>> {
    if let Some(value) = threshold_in_use(top) {
        return Err(Failure::new(format!("tracing_thresh is in use: somebody set it to {value} us")).hint(
            "there is one for all of tracefs; `echo 0 > tracing_thresh` at its top level if nobody needs it",
        ));
    }
    let mut notes = Vec::new();
    let mut found = Vec::new();
    let available = available(top, &plan.functions)?;
    for row in &plan.functions {
        match row.iter().find(|name| available.contains(name)) {
            Some(name) => found.push(name.clone()),
            None => notes.push(format!(
                "{} cannot be traced: inlined or not in this kernel; the rest is",
                row.join(" or ")
            )),
        }
    }
    if found.is_empty() {
        return Err(Failure::new("none of the functions can be traced in this kernel")
            .hint("`grep NAME available_filter_functions` in tracefs tells which can"));
    }
    if dir == top {
        undo.remember(dir, "set_ftrace_filter", "");
    }
    dir.write("set_ftrace_filter", "")?;
    for name in &found {
        dir.append("set_ftrace_filter", &format!("{name}\n"))?;
    }
    let micros = threshold.unwrap_or(THRESHOLD_DEFAULT).as_micros();
    if micros > 0 {
        undo.change(top, "tracing_thresh", "0", &micros.to_string())?;
        notes.push(format!("tracing_thresh is {micros} us until the end; it is one for all of tracefs"));
    }
    if dir == top {
        undo.remember(dir, "current_tracer", "nop");
    }
    dir.write("current_tracer", TRACER)?;
    plan.functions = found.into_iter().map(|name| vec![name]).collect();
    Ok(notes)
}

/// The functions of `wanted` that can be traced. The list of all is long: it is read line by line.
fn available(top: &TraceDir, wanted: &[Vec<String>]) -> Result<Vec<String>> {
    let path = top.file("available_filter_functions");
    let file = File::open(&path).map_err(|e| {
        Failure::io("opening", &path, &e)
            .hint("the kernel needs CONFIG_DYNAMIC_FTRACE to trace single functions")
    })?;
    let mut found = Vec::new();
    for line in BufReader::new(file).split(b'\n') {
        let line = line.map_err(|e| Failure::io("reading", &path, &e))?;
        let name = line.split(|&b| b == b' ').next().unwrap_or_default();
        if let Some(name) = wanted.iter().flatten().find(|w| w.as_bytes() == name) {
            found.push(name.clone());
        }
    }
    Ok(found)
}
