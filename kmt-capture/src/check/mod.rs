//! `check`: the abilities of this system to record, each problem with its remedy.

mod boot;
mod events;
mod facts;
mod frees;

use std::fs;
use std::path::Path;
use std::time::Duration;

use kmt_format::kernel::HeaderPage;

pub use self::boot::{boot, persistent_parameters, persistent_size};
use self::facts::{Facts, State, as_json, as_text};
use crate::failure::{Failure, Outcome, Result};
use crate::output::print;
use crate::record::{RecordOptions, function_graph, measure, meminfo};
use crate::root;
use crate::tracefs::{self, Instance, TraceDir, Undo};
use kmt_common::text::count;

/// Output of `check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The verdict, and the facts that limit a recording.
    Verdict,
    /// The verdict, and all facts.
    List,
    /// One document with all facts.
    Json,
}

/// Examines the system and prints the facts found.
pub fn check(given: Option<&Path>, format: Format, measured: Option<Duration>) -> Result<Outcome> {
    let mut facts = Facts::default();
    let mut undo = Undo::default();
    facts.good("kernel", kernel());
    if root::is_root() {
        facts.good("user", "root");
    } else {
        facts.add("user", State::Bad, "not root", &root::this_command());
    }
    lockdown(&mut facts);
    let mut has_probes = false;
    match tracefs::find(given, &mut undo) {
        Ok(top) => {
            has_probes = top.has("kprobe_events");
            tracing(&mut facts, &top);
        }
        Err(failure) => {
            let text = failure.to_string();
            let (value, remedy) = text.split_once("\nhint: ").unwrap_or((&text, ""));
            facts.add("tracefs", State::Bad, value, remedy);
        }
    }
    kallsyms(&mut facts);
    frees::without_events(&mut facts, has_probes);
    configuration(&mut facts);
    memory_and_disk(&mut facts);
    drop(undo);
    if let Some(length) = measured {
        cost(&mut facts, given, length);
    }
    let text = match format {
        Format::Json => as_json(&facts.0),
        format => as_text(&facts.0, format == Format::List),
    };
    print(text.as_bytes())?;
    if facts.0.iter().any(|f| f.state == State::Bad) {
        return Err(Failure::new("this system cannot record; the lines marked BAD give the reasons"));
    }
    Ok(Outcome::Done)
}

/// Records the default events for some time, and forecasts the cost of a recording.
fn cost(facts: &mut Facts, given: Option<&Path>, length: Duration) {
    let options = RecordOptions {
        duration: Some(length),
        output: Some("/dev/null".into()),
        task_events: true,
        quiet: true,
        guard: true,
        tracefs: given.map(Path::to_owned),
        ..RecordOptions::default()
    };
    match measure(&options) {
        Ok((_, cost)) => {
            facts.good("cost", format!("{} over {:.1} s", cost.rates(), cost.length.as_secs_f64()));
            let of_recorder = match cost.of_recorder() {
                unknown if unknown.is_empty() => "measure for a second or longer".to_owned(),
                cost => cost,
            };
            facts.good("cost", format!("recorder: {of_recorder}"));
        }
        Err(failure) => {
            let text = failure.to_string().replace('\n', "; ");
            facts.add("cost", State::Bad, text, "remove the reason, and measure again");
        }
    }
}

fn kernel() -> String {
    let uname = rustix::system::uname();
    format!("{} {}", uname.release().to_string_lossy(), uname.machine().to_string_lossy())
}

fn lockdown(facts: &mut Facts) {
    let text = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    let mode =
        text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("none", |(mode, _)| mode);
    match mode {
        "confidentiality" => facts.add(
            "lockdown",
            State::Bad,
            mode,
            "this mode blocks tracefs: boot with lockdown=integrity, or without secure boot",
        ),
        mode => facts.good("lockdown", mode),
    }
}

fn tracing(facts: &mut Facts, top: &TraceDir) {
    facts.good("tracefs", top.path().display().to_string());
    others(facts, top);
    events::recordable(facts, top);
    let clocks = top.read("trace_clock").unwrap_or_default();
    if clocks.contains("mono") {
        facts.good("clocks", clocks.trim());
    } else {
        facts.add(
            "clocks",
            State::Warning,
            clocks.trim(),
            "this kernel has no `mono` clock: times cannot be compared with times of other tools",
        );
    }
    let instance = match Instance::create(top) {
        Ok(instance) => instance,
        Err(failure) => {
            facts.add("instance", State::Bad, failure.to_string().replace('\n', "; "), "run as root");
            return;
        }
    };
    facts.good("instance", "can be created");
    buffers(facts, top, instance.dir());
    match function_graph(top, instance.dir()) {
        "" => facts.add(
            "function latencies",
            State::Warning,
            "no function_graph tracer",
            "needs CONFIG_FUNCTION_GRAPH_TRACER and CONFIG_DYNAMIC_FTRACE; without it --preset reclaim records tracepoints only",
        ),
        place => facts.good("function latencies", place),
    }
}

fn buffers(facts: &mut Facts, top: &TraceDir, dir: &TraceDir) {
    let name = "events/header_page";
    let header = dir.read(name).or_else(|| top.read(name)).and_then(|text| HeaderPage::parse(&text).ok());
    let Some(header) = header else {
        facts.add(
            "sub-buffers",
            State::Bad,
            "events/header_page is missing or has an unknown format",
            "report this, with the file",
        );
        return;
    };
    facts.good("sub-buffers", format!("{} bytes, {}-bit", header.sub_buffer_len(), header.long_size() * 8));
    if dir.has("buffer_percent") {
        facts.good("waiting", "wakes up when a buffer fills");
    } else {
        facts.good("waiting", "polls every 100 ms (wake-up when a buffer fills needs Linux 5.4)");
    }
}

/// Other users of the ring buffers.
fn others(facts: &mut Facts, top: &TraceDir) {
    let orphans = tracefs::orphans(top);
    if !orphans.is_empty() {
        facts.add(
            "orphans",
            State::Warning,
            format!("{} of killed recorders", count(orphans.len() as u64, "instance")),
            "`kmt-capture clean` removes them",
        );
    }
    let names = top.names("instances").into_iter().map(|name| name.to_string_lossy().into_owned());
    let mut names: Vec<String> =
        names.filter(|name| !orphans.contains(&format!("instances/{name}"))).collect();
    names.sort();
    let others = if names.is_empty() {
        "no other instances".to_owned()
    } else {
        format!("instances: {}", names.join(", "))
    };
    facts.good("other users", others);
    let read = |name: &str| top.read(name).unwrap_or_default().trim().to_owned();
    let (tracer, threshold) = (read("current_tracer"), read("tracing_thresh"));
    let enabled = read("set_event").lines().count();
    let mut uses = Vec::new();
    if !matches!(tracer.as_str(), "nop" | "") {
        uses.push(format!("tracer {tracer}"));
    }
    if enabled > 0 {
        uses.push(format!("{} enabled", count(enabled as u64, "event")));
    }
    if !matches!(threshold.as_str(), "0" | "") {
        uses.push(format!("tracing_thresh {threshold} us"));
    }
    if uses.is_empty() {
        facts.good("top level", "not in use");
    } else {
        facts.add(
            "top level",
            State::Warning,
            uses.join(", "),
            "only function latencies (--preset reclaim, --function) need the top level; they cannot be recorded while it is in use",
        );
    }
}

fn kallsyms(facts: &mut Facts) {
    let restrict = fs::read_to_string("/proc/sys/kernel/kptr_restrict").unwrap_or_default();
    let restrict = restrict.trim();
    let any_address = crate::record::kallsyms_has_addresses();
    match any_address {
        Some(true) => facts.good("symbols", format!("kallsyms readable, kptr_restrict {restrict}")),
        Some(false) => facts.add(
            "symbols",
            State::Warning,
            format!("kallsyms shows only zeros, kptr_restrict {restrict}"),
            "run as root: echo 0 > /proc/sys/kernel/kptr_restrict; otherwise call sites are printed as addresses",
        ),
        None => facts.add(
            "symbols",
            State::Warning,
            "no /proc/kallsyms",
            "needs CONFIG_KALLSYMS; without it call sites are printed as addresses",
        ),
    }
    let slab = if Path::new("/sys/kernel/slab").is_dir() {
        "slabinfo and /sys/kernel/slab"
    } else {
        "slabinfo only"
    };
    match fs::read("/proc/slabinfo") {
        Ok(_) => facts.good("slab state", slab),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            facts.add("slab state", State::Warning, "only root may read /proc/slabinfo", "run as root");
        }
        Err(_) => {
            let remedy = "needs CONFIG_SLUB_DEBUG or CONFIG_SLAB";
            facts.add("slab state", State::Warning, "no /proc/slabinfo", remedy);
        }
    }
}

/// Options of the kernel's configuration that recording and reports need, if the configuration is readable.
fn configuration(facts: &mut Facts) {
    const WANTED: [(&str, &str); 6] = [
        ("CONFIG_TRACING", "events"),
        ("CONFIG_STACKTRACE", "--stack"),
        ("CONFIG_FUNCTION_GRAPH_TRACER", "function latencies"),
        ("CONFIG_KALLSYMS", "names of call sites"),
        ("CONFIG_SLUB_DEBUG", "/sys/kernel/slab and cache aliases"),
        ("CONFIG_MEMCG", "cgroup accounting"),
    ];
    let Some(text) = crate::record::kernel_config() else {
        let value = if Path::new("/proc/config.gz").exists() {
            "not read; see /proc/config.gz"
        } else {
            "unknown: no /boot/config-RELEASE"
        };
        facts.good("configuration", value);
        return;
    };
    let is_set =
        |option: &str| text.lines().any(|line| line.strip_prefix(option).is_some_and(|v| v.starts_with('=')));
    for (option, what) in WANTED.iter().filter(|(option, _)| !is_set(option)) {
        facts.add(
            "configuration",
            State::Warning,
            format!("{option} is not set"),
            &format!("without it: no {what}"),
        );
    }
    if WANTED.iter().all(|(option, _)| is_set(option)) {
        facts.good("configuration", "all options that kmt needs are set");
    }
}

fn memory_and_disk(facts: &mut Facts) {
    match meminfo("MemAvailable").or_else(|| meminfo("MemFree")) {
        Some(bytes) if bytes < 16 << 20 => facts.add(
            "memory",
            State::Warning,
            format!("{} KiB available", bytes >> 10),
            "buffers use at most 1/16 of it; set --buffer-size, and expect lost events",
        ),
        Some(bytes) => {
            facts.good(
                "memory",
                format!("{} MiB available, at most {} MiB for buffers", bytes >> 20, bytes >> 24),
            );
        }
        None => facts.add("memory", State::Warning, "/proc/meminfo cannot be read", "mount /proc"),
    }
    let Ok(disk) = rustix::fs::statvfs(".") else { return };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let value = format!("{} MiB free in the current directory", free >> 20);
    if free < 64 << 20 {
        facts.add(
            "disk",
            State::Warning,
            value,
            "an event needs 16 bytes, 5 with --compress lz4; to write to another machine: -o - | ssh",
        );
    } else {
        facts.good("disk", value);
    }
}
