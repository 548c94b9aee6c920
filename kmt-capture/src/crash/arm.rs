//! `arm`: records into a persistent ring buffer, and leaves.
//!
//! The clock stays `local`: with another one 7.2 loses a CPU of the buffer, and 6.12 forgets which it was. The sidecar has its name
//! before the first event is recorded.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use kmt_common::tell;
use kmt_common::text::count;
use kmt_format::kernel::CpuStats;

use super::instance::{Persistent, entries};
use super::last_boot::LastBoot;
use super::sidecar::Sidecar;
use super::system::{System, now_ns};
use super::{MISCOUNTED, NOT_KEPT, is_of_earlier_boot, read_sidecar, sidecar_path};
use crate::check;
use crate::failure::{Failure, Outcome, Result};
use crate::output::{Output, print};
use crate::record::{Plan, RecordOptions, enable_events, running_tasks};
use crate::tracefs::{self, Event, EventSpec, TraceDir, Undo, find_events};

/// Events of tasks besides those of `record`: after a crash, /proc does not have the tasks of before.
const TASK_EVENTS: [&str; 2] = ["sched:sched_process_exec", "sched:sched_process_fork"];
/// Events that ftrace writes by itself, and that can occur here.
const OWN_EVENTS: [&str; 3] = ["kernel_stack", "user_stack", "print"];
/// Small files of tracefs that a conversion reads.
const CONDITIONS: [&str; 8] = [
    "events/header_page",
    "events/header_event",
    "trace_clock",
    "trace_options",
    "timestamp_mode",
    "buffer_size_kb",
    "buffer_subbuf_size_kb",
    "tracing_cpumask",
];
/// Files of the system, by their names in a saved folder.
const OF_SYSTEM: [(&str, &str); 3] =
    [("cmdline", "proc/cmdline"), ("modules", "proc/modules"), ("notes", "sys/kernel/notes")];

/// Events to record, and the instance.
#[derive(Debug, Clone, Default)]
pub struct ArmOptions {
    /// Events, with their filters and stacks; other options are not used.
    pub selection: RecordOptions,
    /// Name of the instance, if there are several.
    pub instance: Option<String>,
    /// The sidecar; `None`: the default one.
    pub sidecar: Option<PathBuf>,
    /// True if events of the last boot that were not collected are discarded.
    pub is_discarding: bool,
    /// Mount point of tracefs.
    pub tracefs: Option<PathBuf>,
    /// True if only problems are reported.
    pub quiet: bool,
}

/// Starts to record into the persistent ring buffer.
pub fn arm(options: &ArmOptions, system: &System) -> Result<Outcome> {
    tracefs::check_user(options.tracefs.as_deref())?;
    let mut undo = Undo::default();
    let top = tracefs::find(options.tracefs.as_deref(), &mut undo)?;
    let Some(persistent) = Persistent::find(&top, options.instance.as_deref())? else {
        print(check::persistent_parameters(&top)?.as_bytes())?;
        return Err(Failure::new("this boot has no persistent ring buffer")
            .hint("boot with these kernel parameters, then run `kmt-capture arm` again"));
    };
    let path = sidecar_path(options.sidecar.as_deref());
    refuse_to_discard(&persistent, &path, options, system)?;
    if entries(persistent.last_boot_dir()) == 0 && is_of_earlier_boot(&path, system) {
        tell!("warning: {} {NOT_KEPT}", persistent.dir.path().display());
    }
    let mut plan = plan(options, &top)?;
    make_folder(&path)?;
    let started = start(&persistent, &top, &mut plan, &path, system);
    if started.is_err() {
        let _ = stop(&persistent);
    }
    started?;
    if persistent.is_miscounted() {
        tell!("warning: {}: {MISCOUNTED}", persistent.dir.path().display());
        tell!(
            "hint: another size, as `reserve_mem={}:...` in the kernel parameters",
            check::persistent_size(&top)
        );
    }
    if !options.quiet {
        plan.notes.iter().for_each(|note| tell!("note: {note}"));
        tell!(
            "armed: {} in {}; facts in {}. After a crash: `kmt-capture collect -o crash.kmt`",
            plan.summary(),
            persistent.dir.path().display(),
            path.display()
        );
    }
    Ok(Outcome::Done)
}

/// Stops recording, and removes the events of the buffer and the sidecar.
pub(super) fn off(options: &ArmOptions, system: &System) -> Result<Outcome> {
    tracefs::check_user(options.tracefs.as_deref())?;
    let mut undo = Undo::default();
    let top = tracefs::find(options.tracefs.as_deref(), &mut undo)?;
    let Some(persistent) = Persistent::find(&top, options.instance.as_deref())? else {
        return Err(Failure::new("this boot has no persistent ring buffer").hint("nothing is armed"));
    };
    let path = sidecar_path(options.sidecar.as_deref());
    refuse_to_discard(&persistent, &path, options, system)?;
    stop(&persistent)?;
    persistent.clear()?;
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::io("removing", &path, &error))
        }
        _ => Ok(Outcome::Done),
    }
}

/// Fails if the buffer has events of the last boot, or another program records into it.
fn refuse_to_discard(
    persistent: &Persistent,
    path: &Path,
    options: &ArmOptions,
    system: &System,
) -> Result<()> {
    // A sidecar that cannot be read is not of this boot.
    let sidecar = read_sidecar(path).ok().flatten();
    if sidecar.is_some_and(|sidecar| sidecar.boot_id == system.boot_id()) {
        return Ok(());
    }
    let dir = persistent.last_boot_dir();
    let events = entries(dir);
    if events > 0 && Persistent::last_boot(dir) != LastBoot::Current && !options.is_discarding {
        return Err(Failure::new(format!(
            "{} has {} of an earlier boot, which were not collected",
            dir.path().display(),
            count(events, "event")
        ))
        .hint("`kmt-capture collect -o crash.kmt` saves them; --discard discards them"));
    }
    let enabled = persistent.dir.read("set_event").unwrap_or_default().lines().count();
    if enabled > 0 && persistent.is_on() {
        let dir = persistent.dir.path().display();
        return Err(Failure::new(format!(
            "{dir} records already, with {}",
            count(enabled as u64, "enabled event")
        ))
        .hint(format!("`echo 0 > {dir}/tracing_on` stops it, then `kmt-capture arm` can use it")));
    }
    Ok(())
}

/// The events of `record`, and those that name tasks.
fn plan(options: &ArmOptions, top: &TraceDir) -> Result<Plan> {
    let mut plan = Plan::new(&options.selection, top)?;
    if !plan.functions.is_empty() {
        plan.functions.clear();
        plan.notes
            .push("latencies of functions are not recorded: a persistent buffer has events only".to_owned());
    }
    for spec in TASK_EVENTS.iter().filter_map(|name| EventSpec::parse(name).ok()) {
        for event in find_events(top, &spec) {
            plan.events.entry(event).or_default();
        }
    }
    Ok(plan)
}

fn make_folder(path: &Path) -> Result<()> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists())
    else {
        return Ok(());
    };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|e| {
        Failure::io("creating", folder, &e)
            .hint("--sidecar FILE selects another place, on a disk that keeps it over a crash")
    })
}

/// Sets the buffer up, writes the sidecar, and lets the events in.
fn start(
    persistent: &Persistent,
    top: &TraceDir,
    plan: &mut Plan,
    path: &Path,
    system: &System,
) -> Result<()> {
    let dir = &persistent.dir;
    stop(persistent)?;
    persistent.clear()?;
    if !dir.must_read("trace_clock")?.contains("[local]") {
        dir.write("trace_clock", "local")?;
    }
    dir.write("options/overwrite", "1")?;
    enable_events(plan, |event, _, file, value, _| dir.write(&event.file(file), value))?;
    let sidecar = facts(persistent, top, plan, system);
    let mut output = Output::create(path, true)?;
    output.write(&sidecar.to_bytes())?;
    output.finish()?;
    let started = dir.write("tracing_on", "1");
    if started.is_err() {
        let _ = std::fs::remove_file(path);
    }
    started
}

/// Stops tracing, and disables all events with their filters and triggers.
fn stop(persistent: &Persistent) -> Result<()> {
    let dir = &persistent.dir;
    dir.write("tracing_on", "0")?;
    let enabled = dir.read("set_event").unwrap_or_default();
    for spec in enabled.lines().filter_map(|line| EventSpec::parse(line.trim()).ok()) {
        for event in find_events(dir, &spec) {
            for trigger in lines_of(dir, &event, "trigger") {
                dir.write(&event.file("trigger"), &format!("!{trigger}"))?;
            }
            if !lines_of(dir, &event, "filter").is_empty() {
                dir.write(&event.file("filter"), "0")?;
            }
        }
    }
    dir.write("events/enable", "0")
}

/// Lines of an event's filter or triggers, without remarks.
fn lines_of(dir: &TraceDir, event: &Event, file: &str) -> Vec<String> {
    let text = dir.read(&event.file(file)).unwrap_or_default();
    text.lines().filter(|line| !line.starts_with('#') && *line != "none").map(str::to_owned).collect()
}

/// Facts that the buffer does not keep.
fn facts(persistent: &Persistent, top: &TraceDir, plan: &Plan, system: &System) -> Sidecar {
    let dir = &persistent.dir;
    let mut files = of_tracefs(top, dir, plan.events.keys());
    for (event, recorded) in &plan.events {
        files.push((event.file("enable"), b"1\n".to_vec()));
        for (file, text) in
            [("filter", plan.filter(event, recorded)), ("trigger", plan.trigger(event, recorded))]
        {
            files.extend(text.map(|text| (event.file(file), (text + "\n").into_bytes())));
        }
    }
    files.extend(of_system(system));
    files.extend(tasks());
    let boot_id = system.boot_id();
    files.push(("boot_id".to_owned(), format!("{boot_id}\n").into_bytes()));
    files.extend(clock_pair(dir).map(|pair| ("clock_pair".to_owned(), pair.into_bytes())));
    files.retain(|(_, bytes)| !bytes.is_empty());
    Sidecar {
        boot_id,
        instance: persistent.name.clone(),
        build: system.build(),
        text: system.text_address(),
        armed_ns: now_ns(),
        files,
    }
}

/// Files of tracefs: layout, conditions, and formats of these events.
fn of_tracefs<'e>(
    top: &TraceDir,
    dir: &TraceDir,
    events: impl Iterator<Item = &'e Event>,
) -> Vec<(String, Vec<u8>)> {
    let own = OWN_EVENTS.map(|name| Event::new("ftrace", name).file("format"));
    let formats = events.map(|event| event.file("format")).chain(own);
    let names = CONDITIONS.map(str::to_owned).into_iter().chain(formats);
    names
        .filter_map(|name| Some((name.clone(), dir.read(&name).or_else(|| top.read(&name))?.into_bytes())))
        .collect()
}

fn of_system(system: &System) -> Vec<(String, Vec<u8>)> {
    let mut files = vec![
        ("uname".to_owned(), system.uname_line().into_bytes()),
        ("pagesize".to_owned(), rustix::param::page_size().to_string().into_bytes()),
    ];
    files
        .extend(OF_SYSTEM.into_iter().filter_map(|(name, path)| Some((name.to_owned(), system.read(path)?))));
    files
}

/// Facts of the running kernel in place of a sidecar: formats of all its events.
pub(super) fn running_kernel(top: &TraceDir, dir: &TraceDir, system: &System) -> Vec<(String, Vec<u8>)> {
    let names = |path: &str| top.names(path).into_iter().filter_map(|name| name.into_string().ok());
    let events = names("events").flat_map(|system| {
        let events = names(&format!("events/{system}"));
        events.map(|name| Event::new(&system, &name)).collect::<Vec<_>>()
    });
    let events: Vec<Event> = events.filter(|event| event.system != "ftrace").collect();
    let mut files = of_tracefs(top, dir, events.iter());
    files.extend(of_system(system));
    // They are of this boot.
    files.retain(|(name, bytes)| !matches!(name.as_str(), "cmdline" | "modules") && !bytes.is_empty());
    files
}

/// Names and thread groups of the running tasks, as `saved_cmdlines` and `saved_tgids` have them.
fn tasks() -> [(String, Vec<u8>); 2] {
    let (mut names, mut groups) = (Vec::new(), Vec::new());
    for task in running_tasks() {
        names.extend_from_slice(format!("{} ", task.pid).as_bytes());
        names.extend(task.comm.iter().map(|&byte| if byte == b'\n' { b'?' } else { byte }));
        names.push(b'\n');
        groups.extend_from_slice(format!("{} {}\n", task.pid, task.tgid).as_bytes());
    }
    [("saved_cmdlines".to_owned(), names), ("saved_tgids".to_owned(), groups)]
}

/// A time of the trace clock with the time of day: `TRACE REALTIME_NS WITHIN_NS`.
fn clock_pair(dir: &TraceDir) -> Option<String> {
    let cpu = dir.cpus().first().copied()?;
    let before = now_ns();
    let trace = CpuStats::parse(&dir.read(&format!("per_cpu/cpu{cpu}/stats"))?)?.now_time?;
    let after = now_ns();
    Some(format!("{trace} {} {}\n", before.midpoint(after), after.saturating_sub(before) / 2 + 1_000))
}
