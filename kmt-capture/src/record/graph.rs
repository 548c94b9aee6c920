//! Latencies of functions: the function_graph tracer with a threshold.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use rustix::fs::OFlags;

use super::plan::Plan;
use crate::failure::{Failure, Result};
use crate::tracefs::{TraceDir, Undo};

/// Location of the function_graph tracer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracerLocation {
    /// In our own instance (6.9 and later, by trying).
    Instance,
    /// At the top level only.
    TopLevel,
    /// The kernel does not have it.
    Nowhere,
}

const TRACER: &str = "function_graph";
/// Which functions the tracer patches; it is set before the tracer.
const FILTER: &str = "set_ftrace_filter";
const FUNCTIONS: &str = "available_filter_functions";
const THRESHOLD_DEFAULT: Duration = Duration::from_micros(100);

/// True if the tracer is there.
pub fn has_tracer(dir: &TraceDir) -> bool {
    let tracers = dir.read("available_tracers").unwrap_or_default();
    tracers.split_ascii_whitespace().any(|name| name == TRACER)
}

/// Tries where the tracer can run, with `function`, or any one that can be traced; nothing is recorded meanwhile.
///
/// Without a filter the kernel would patch all of its functions: 48,469 in 6 s on arm64 6.12.
pub fn location(top: &TraceDir, instance: &TraceDir, function: Option<&String>) -> TracerLocation {
    if !has_tracer(top) {
        return TracerLocation::Nowhere;
    }
    let is_limited = || {
        let function = function.cloned().or_else(|| any_function(top))?;
        instance.write(FILTER, &function).ok()
    };
    if has_tracer(instance) && is_limited().is_some() && instance.write("current_tracer", TRACER).is_ok() {
        let _ = instance.write("current_tracer", "nop");
        return TracerLocation::Instance;
    }
    TracerLocation::TopLevel
}

/// The first function that can be traced; the list of all takes long to read.
fn any_function(top: &TraceDir) -> Option<String> {
    let mut line = String::new();
    BufReader::new(top.open(FUNCTIONS, OFlags::RDONLY).ok()?).read_line(&mut line).ok()?;
    line.split_ascii_whitespace().next().map(str::to_owned)
}

/// Checks that the top level is not in use, and remembers its state.
pub fn occupy(top: &TraceDir, undo: &mut Undo) -> Result<()> {
    let user = |what: String, remedy: &str| {
        Err(Failure::new(format!("the top level of {} is in use: {what}", top.path().display()))
            .hint(format!("this kernel supports function graphs only there; {remedy}")))
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
        return user(format!("{event} is enabled"), "disable the events, or record another preset");
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
            format!("its buffer has {entries} events of another recording"),
            "clear it with `echo > trace` if they are not needed",
        );
    }
    let on = read("tracing_on");
    undo.change(top, "tracing_on", &on, "0")
}

/// True if somebody else has set a threshold, which is one for all instances.
fn threshold_in_use(top: &TraceDir) -> Option<String> {
    let value = top.read("tracing_thresh")?.trim().to_owned();
    (value != "0").then_some(value)
}

/// The functions that are traced: the first of each row that the kernel has. And notes on the others.
pub fn choose(top: &TraceDir, rows: &[Vec<String>]) -> Result<(Vec<String>, Vec<String>)> {
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    let available = available(top, rows)?;
    for row in rows {
        match row.iter().find(|name| available.contains(name)) {
            Some(name) => found.push(name.clone()),
            None => notes.push(format!(
                "{} cannot be traced (inlined, or not in this kernel); the other functions are traced",
                row.join(" or ")
            )),
        }
    }
    if found.is_empty() {
        return Err(Failure::new("none of the functions can be traced in this kernel")
            .hint("`grep NAME available_filter_functions` in tracefs shows if a function can be traced"));
    }
    Ok((found, notes))
}

/// Sets functions, threshold and tracer, in this order; returns notes. `plan` keeps the functions.
pub fn prepare(
    top: &TraceDir,
    dir: &TraceDir,
    threshold: Option<Duration>,
    found: Vec<String>,
    plan: &mut Plan,
    undo: &mut Undo,
) -> Result<Vec<String>> {
    if let Some(value) = threshold_in_use(top) {
        return Err(Failure::new(format!("tracing_thresh is in use: it is set to {value} us")).hint(
            "all of tracefs shares this threshold; if it is not needed: `echo 0 > tracing_thresh` at the top level",
        ));
    }
    let mut notes = Vec::new();
    if dir == top {
        undo.remember(dir, FILTER, "");
    }
    dir.write(FILTER, "")?;
    for name in &found {
        dir.append(FILTER, &format!("{name}\n"))?;
    }
    let micros = threshold.unwrap_or(THRESHOLD_DEFAULT).as_micros();
    if micros > 0 {
        undo.change(top, "tracing_thresh", "0", &micros.to_string())?;
        notes.push(format!(
            "tracing_thresh is {micros} us until the end of the recording; all of tracefs shares it"
        ));
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
    let path = top.file(FUNCTIONS);
    let file = top.open(FUNCTIONS, OFlags::RDONLY).map_err(|e| {
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// Directories of a kernel that has the tracer in instances.
    fn kernel(name: &str) -> (PathBuf, TraceDir, TraceDir) {
        let path = std::env::temp_dir().join(format!("kmt-graph-{name}-{}", std::process::id()));
        let instance = path.join("instances/own");
        fs::create_dir_all(&instance).unwrap();
        fs::write(path.join("available_tracers"), "function_graph nop\n").unwrap();
        fs::write(path.join("available_filter_functions"), "run_init [m]\nshrink_slab\nkfree\n").unwrap();
        fs::write(path.join("tracing_thresh"), "0\n").unwrap();
        fs::write(instance.join("available_tracers"), "function_graph nop\n").unwrap();
        fs::write(instance.join("current_tracer"), "untouched").unwrap();
        fs::write(instance.join(FILTER), "").unwrap();
        (path.clone(), TraceDir::at(&path), TraceDir::at(instance))
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_tracer_is_tried_with_one_function_or_not_at_all() {
        let (path, top, instance) = kernel("try");
        let read = |name: &str| instance.read(name).unwrap();
        assert_eq!(location(&top, &instance, None), TracerLocation::Instance);
        assert_eq!((read("current_tracer"), read(FILTER)), ("nop".to_owned(), "run_init".to_owned()));
        assert_eq!(location(&top, &instance, Some(&"kfree".to_owned())), TracerLocation::Instance);
        assert_eq!(read(FILTER), "kfree");
        // The filter is first: without it the tracer is left alone.
        fs::remove_file(instance.file(FILTER)).unwrap();
        instance.write("current_tracer", "untouched").unwrap();
        assert_eq!(location(&top, &instance, None), TracerLocation::TopLevel);
        assert_eq!(read("current_tracer"), "untouched");
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn the_tracer_never_gets_more_than_was_asked_for() {
        let (path, top, instance) = kernel("ask");
        let read = |name: &str| instance.read(name).unwrap();
        let rows = [names(&["do_shrink_slab", "shrink_slab"]), names(&["kfree"]), names(&["gone"])];
        let (found, notes) = choose(&top, &rows).unwrap();
        assert_eq!(found, names(&["shrink_slab", "kfree"]));
        assert!(notes.len() == 1 && notes[0].starts_with("gone cannot be traced"), "{notes:?}");
        let (mut plan, mut undo) = (Plan::default(), Undo::default());
        prepare(&top, &instance, None, found.clone(), &mut plan, &mut undo).unwrap();
        assert_eq!(
            (read("current_tracer"), read(FILTER)),
            (TRACER.to_owned(), "shrink_slab\nkfree\n".to_owned())
        );
        drop(undo);
        fs::remove_file(instance.file(FILTER)).unwrap();
        instance.write("current_tracer", "untouched").unwrap();
        let mut undo = Undo::default();
        assert!(prepare(&top, &instance, None, found, &mut plan, &mut undo).is_err());
        drop(undo);
        assert_eq!(read("current_tracer"), "untouched");
        fs::remove_dir_all(path).unwrap();
    }
}
