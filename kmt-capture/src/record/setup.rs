//! Sets a ring buffer up as the plan says, and remembers how to undo it.

use std::time::Duration;

use kmt_format::kernel::HeaderPage;

use super::RecordOptions;
use super::adopted::Adopted;
use super::graph;
use super::plan::{Plan, Recorded};
use crate::failure::{Failure, Result};
use crate::tracefs::{self, Event, Guard, Instance, Probe, TraceDir, Undo};
use kmt_common::text::count as counted;

/// Clocks that are comparable across CPUs, the best first: `mono` is what other tools and user space have, too.
const CLOCKS: [&str; 5] = ["mono", "mono_raw", "boot", "global", "perf"];

/// Sub-buffers of this size take a system call for four times as many events: 46 instead of 52 ns an event in all.
const SUB_BUFFER_KB: u64 = 16;
/// How long the instance of a killed recorder may be in use when a recording begins; `clean` takes more time.
const ORPHAN_PATIENCE: Duration = Duration::from_millis(100);
/// Buffers of a CPU from which on larger sub-buffers are asked for.
const LARGE_KB: u64 = 4096;

/// The note on the clock that each CPU has for itself.
const LOCAL: &str = "the clock is `local`: times of different CPUs are not comparable";

/// The selected clock of `trace_clock`: the one in brackets.
fn selected(text: &str) -> &str {
    let name = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    name.map_or("local", |(name, _)| name)
}

/// The number of KiB in a `buffer_size_kb`. A buffer that is not used yet reads as `7 (expanded: 1408)`.
fn size_in(text: &str) -> String {
    let size = text.split_once("expanded:").map_or(text, |(_, size)| size);
    size.chars().filter(char::is_ascii_digit).collect()
}

/// A ring buffer that is set up. Dropping it leaves tracefs as it was.
#[derive(Debug)]
pub struct Setup {
    /// The directory that records: the instance, or the top level.
    pub dir: TraceDir,
    /// The top level.
    pub top: TraceDir,
    /// Name of the clock.
    pub clock: String,
    /// Why it is the clock.
    pub clock_reason: &'static str,
    /// Messages to the user.
    pub notes: Vec<String>,
    /// The buffer is one that was found.
    pub adopted: Option<Adopted>,
    instance: Option<Instance>,
    probe: Option<Probe>,
    undo: Undo,
    // Dropped last.
    _guard: Option<Guard>,
}

/// tracefs, and the means to undo changes in it.
struct Found {
    top: TraceDir,
    notes: Vec<String>,
    undo: Undo,
    guard: Option<Guard>,
}

impl Drop for Setup {
    fn drop(&mut self) {
        // Our own buffer first: where the top level is used, `undo` stops it step by step.
        self.instance = None;
        self.probe = None;
    }
}

impl Setup {
    /// Finds tracefs, and removes what killed recorders have left.
    fn find(options: &RecordOptions) -> Result<Found> {
        // Before anything is changed, and dropped after all is put back.
        let mut guard = options.guard.then(Guard::start).flatten();
        let (mut undo, mut notes) = (Undo::default(), Vec::new());
        if options.guard && guard.is_none() {
            notes.push(
                "no process watches this recorder (that needs /proc): after kill -9, run `kmt-capture clean` to restore tracefs"
                    .to_owned(),
            );
        }
        // Before tracefs is looked for: its mount may be among what is undone.
        for count in tracefs::put_back(None, tracefs::mounted().as_ref()) {
            notes.push(format!("restored {} of a killed recorder", counted(count as u64, "setting")));
        }
        let top = tracefs::find(options.tracefs.as_deref(), &mut undo)?;
        if let Some(guard) = &mut guard {
            guard.watch(&top);
        }
        for name in tracefs::orphans(&top) {
            if tracefs::remove_orphan(&top, &name, ORPHAN_PATIENCE) {
                let path = top.file(&name);
                notes.push(format!("removed {}, left by a killed recorder", path.display()));
            }
        }
        for group in tracefs::orphan_probes(&top) {
            if tracefs::remove_orphan_probe(&top, &group) {
                notes.push(format!("removed the probe {group}, left by a killed recorder"));
            }
        }
        Ok(Found { top, notes, undo, guard })
    }

    /// Takes over the buffer `name` as it is: nothing of it is changed before the end.
    pub fn adopt(options: &RecordOptions, name: &str) -> Result<(Self, Plan)> {
        // Dropped in reverse order: the guard last.
        let Found { guard, undo, mut notes, top } = Self::find(options)?;
        let (adopted, dir) = Adopted::find(&top, name)?;
        let plan = adopted.plan(&dir)?;
        notes.push(adopted.note(&dir));
        let text = dir.must_read("trace_clock")?;
        let clock = selected(&text).to_owned();
        if clock == "local" {
            notes.push(LOCAL.to_owned());
        }
        let setup = Self {
            dir,
            top,
            clock,
            clock_reason: "the clock of the buffer that was found",
            notes,
            adopted: Some(adopted),
            instance: None,
            probe: None,
            undo,
            _guard: guard,
        };
        Ok((setup, plan))
    }

    /// Finds tracefs, and takes an instance, or the top level where function graphs need it.
    pub fn new(options: &RecordOptions) -> Result<(Self, Plan)> {
        let Found { guard, undo, notes, top } = Self::find(options)?;
        let mut plan = Plan::new(options, &top)?;
        let instance = Instance::create(&top)?;
        let mut setup = Self {
            dir: instance.dir().clone(),
            top,
            clock: String::new(),
            clock_reason: "",
            notes,
            adopted: None,
            instance: Some(instance),
            probe: None,
            undo,
            _guard: guard,
        };
        if !plan.functions.is_empty() {
            setup.graph(options, &mut plan)?;
        }
        if options.kfree_rcu {
            let probe = Probe::at_kfree_rcu(&setup.top, setup.long_size()?)?;
            plan.add_probe(&probe);
            setup.probe = Some(probe);
        }
        setup.clock(options)?;
        setup.options()?;
        Ok((setup, plan))
    }

    /// Bytes of the kernel's long, which may be more than ours.
    fn long_size(&self) -> Result<usize> {
        let text = self.header_page()?;
        let header = HeaderPage::parse(&text)
            .map_err(|e| Failure::new(format!("{}/events/header_page: {e}", self.top.path().display())))?;
        Ok(header.long_size())
    }

    /// The text that describes sub-buffers.
    pub fn header_page(&self) -> Result<String> {
        const NAME: &str = "events/header_page";
        self.dir.read(NAME).map_or_else(|| self.top.must_read(NAME), Ok)
    }

    /// How many hits of our probe were missed, if there is one.
    pub fn probe_missed(&self) -> Option<u64> {
        self.probe.as_ref().map(Probe::missed)
    }

    fn graph(&mut self, options: &RecordOptions, plan: &mut Plan) -> Result<()> {
        if !graph::has_tracer(&self.top) {
            plan.functions.clear();
            self.notes.push(
                "this kernel has no function_graph tracer (CONFIG_FUNCTION_GRAPH_TRACER): \
                 tracepoints are recorded, function latencies are not"
                    .to_owned(),
            );
            return Ok(());
        }
        let (functions, notes) = graph::choose(&self.top, &plan.functions)?;
        self.notes.extend(notes);
        match graph::location(&self.top, &self.dir, functions.first()) {
            graph::TracerLocation::Instance => {}
            graph::TracerLocation::Nowhere | graph::TracerLocation::TopLevel => {
                graph::occupy(&self.top, &mut self.undo)?;
                self.notes.push(
                    "this kernel supports function graphs only at the top level of tracefs, which is used and restored at the end"
                        .to_owned(),
                );
                self.dir = self.top.clone();
                self.instance = None;
            }
        }
        let notes = graph::prepare(&self.top, &self.dir, options.threshold, functions, plan, &mut self.undo)?;
        self.notes.extend(notes);
        Ok(())
    }

    /// True if the top level of tracefs records, not an instance.
    pub fn is_top(&self) -> bool {
        self.dir == self.top
    }

    /// Changes a setting; at the top level it is put back.
    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        if self.is_top() {
            let before = self.dir.read(name).unwrap_or_default();
            return self.undo.change(&self.dir, name, &before, value);
        }
        self.dir.write(name, value)
    }

    fn clock(&mut self, options: &RecordOptions) -> Result<()> {
        let text = self.dir.must_read("trace_clock")?;
        let names: Vec<&str> = text.split_ascii_whitespace().map(|n| n.trim_matches(['[', ']'])).collect();
        let name = match &options.clock {
            Some(clock) if names.contains(&clock.as_str()) => clock.clone(),
            Some(clock) => {
                return Err(Failure::new(format!("this kernel has no trace clock {clock:?}"))
                    .hint(format!("available clocks: {}", names.join(", "))));
            }
            None => CLOCKS.iter().find(|c| names.contains(c)).map_or("local", |c| c).to_owned(),
        };
        if name == "local" {
            self.notes.push(LOCAL.to_owned());
        }
        if self.is_top() {
            let before = selected(&text).to_owned();
            self.undo.change(&self.dir, "trace_clock", &before, &name)?;
        } else {
            self.dir.write("trace_clock", &name)?;
        }
        self.clock_reason = match (&options.clock, name.as_str()) {
            (Some(_), _) => "chosen by --clock",
            (None, "mono") => "the same on all CPUs, and CLOCK_MONOTONIC of other programs",
            (None, "local") => "this kernel has no other clock of time",
            (None, _) => "the same on all CPUs; this kernel has no mono",
        };
        self.clock = name;
        Ok(())
    }

    /// Overwriting marks where events are missing; a buffer that stops when it is full does not.
    fn options(&mut self) -> Result<()> {
        self.set("options/overwrite", "1")?;
        if self.dir.has("buffer_percent") {
            self.set("buffer_percent", "25")?;
        }
        Ok(())
    }

    /// Sets the size of sub-buffers, in KiB, where the kernel can (6.8 and later) and the memory is there.
    fn sub_buffer_size_kb(&mut self, kb: u64) {
        const NAME: &str = "buffer_subbuf_size_kb";
        if self.dir.read(NAME).is_some_and(|now| now.trim() != kb.to_string()) {
            let _ = self.set(NAME, &kb.to_string());
        }
    }

    /// Sets the size of each CPU's buffer, in KiB.
    pub fn buffer_size_kb(&mut self, kb: u64) -> Result<()> {
        if kb >= LARGE_KB {
            self.sub_buffer_size_kb(SUB_BUFFER_KB);
        }
        if !self.is_top() {
            return self.dir.write("buffer_size_kb", &kb.to_string());
        }
        // The CPUs may differ.
        for cpu in self.dir.cpus() {
            let name = format!("per_cpu/cpu{cpu}/buffer_size_kb");
            let before = self.dir.read(&name).unwrap_or_default();
            let size = size_in(&before);
            if !size.is_empty() {
                self.undo.change(&self.dir, &name, &size, &kb.to_string())?;
            }
        }
        Ok(())
    }

    /// Size of the buffer of a CPU that was found, in KiB.
    pub fn found_size_kb(&self) -> u64 {
        let text = |cpu: u32| self.dir.read(&format!("per_cpu/cpu{cpu}/buffer_size_kb"));
        let sizes = self.dir.cpus().into_iter().filter_map(|cpu| size_in(&text(cpu)?).parse().ok());
        sizes.max().unwrap_or(1)
    }

    /// Enables the events, with filters and triggers. Those that cannot be enabled are named and left out.
    pub fn enable(&mut self, plan: &mut Plan) -> Result<()> {
        let is_top = self.is_top();
        let Self { dir, undo, .. } = self;
        enable_events(plan, |event, recorded, file, value, off| {
            let name = event.file(file);
            // The event of a probe goes with it.
            if is_top && recorded.probe.is_none() {
                return undo.change(dir, &name, off, value);
            }
            dir.write(&name, value)
        })
    }

    /// Sets the filters by task again.
    pub fn filter_tasks(&mut self, plan: &Plan) -> Result<()> {
        for (event, filter) in plan.task_filters() {
            self.dir.write(&event.file("filter"), &filter)?;
        }
        Ok(())
    }

    /// Lets the events in. A buffer that was found stays as it is.
    pub fn start(&mut self) -> Result<()> {
        if self.adopted.is_some() { Ok(()) } else { self.dir.write("tracing_on", "1") }
    }

    /// Lets no more events in; into a buffer that was found, until this is dropped.
    pub fn stop(&mut self) -> Result<()> {
        if self.adopted.is_none() {
            return self.dir.write("tracing_on", "0");
        }
        match self.dir.read("tracing_on") {
            Some(text) if text.trim() == "0" => Ok(()),
            _ => self.undo.change(&self.dir, "tracing_on", "1", "0"),
        }
    }

    /// Forgets what was recorded, counters included.
    pub fn clear(&mut self) -> Result<()> {
        self.dir.write("trace", "")
    }
}

/// Enables the events of a plan, with filters and triggers, by `set`: event, how it is recorded, name of a file, value, and the
/// value that takes it back. Events that cannot be enabled are named and left out.
pub(crate) fn enable_events(
    plan: &mut Plan,
    mut set: impl FnMut(&Event, &Recorded, &str, &str, &str) -> Result<()>,
) -> Result<()> {
    let (mut refused, in_kernel) = (Vec::new(), plan.in_kernel());
    for (event, recorded) in &plan.events {
        if let Some(filter) = in_kernel.filter(event, recorded) {
            set(event, recorded, "filter", &filter, "0")?;
        }
        if let Some(trigger) = in_kernel.trigger(event, recorded) {
            set(event, recorded, "trigger", &trigger, &format!("!{trigger}"))?;
        }
        if let Err(failure) = set(event, recorded, "enable", "1", "0") {
            refused.push((event.clone(), failure));
        }
    }
    for (event, failure) in refused {
        plan.events.remove(&event);
        plan.notes.push(format!("{event} cannot be enabled and is not recorded: {failure}"));
    }
    if plan.events.is_empty() {
        return Err(
            Failure::new("none of the events could be enabled").hint("`kmt-capture check` shows the reason")
        );
    }
    Ok(())
}
