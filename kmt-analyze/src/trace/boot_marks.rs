//! Marks of a boot: levels of initcalls, initcalls, modules, the first user process, init and the processes that it starts.
//!
//! They come from events that the kernel records of a boot: `initcall:*`, `module:module_load`, `sched:sched_process_exec` and
//! `_fork`, `task:task_rename` (include/trace/events of 5.10 to 7.2). User space begins with the first program of the task 1:
//! before it the kernel may run helpers such as modprobe. Where no load of a module was recorded, a module of a recording that
//! begins at boot begins with the first event whose call site is in it. The events of these classes are read ahead of the pass.

use std::collections::{HashMap, HashSet};

use kmt_format::read::{Event, Trace};
use kmt_format::schema::{EventClass, Role};

use crate::int_hash::IntHash;
use crate::trace::comms::rare_events;
use crate::trace::names::{Symbolizer, function_of};
use crate::trace::session::Session;

/// A recording whose first event is later, in nanoseconds, does not begin at boot.
const BOOT_NS_MAX: u64 = 1_000_000_000;
/// Clocks of the kernel that begin at boot, and count nanoseconds; that of a text is probably one of them.
const CLOCKS: [&str; 5] = ["local", "global", "mono", "mono_raw", "boot"];

/// Marks that are kept.
pub const MARKS_MAX: usize = 8_192;
/// Bytes of the name of a mark.
const NAME_MAX: usize = 256;
/// The first process of user space.
const INIT: i32 = 1;

/// Kind of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MarkKind {
    /// The first event.
    Start,
    /// A level of initcalls begins.
    InitcallLevel,
    /// An initcall begins.
    Initcall,
    /// A module is loaded, and its own function begins.
    Module,
    /// The first event whose call site is in a module.
    ModuleUse,
    /// The first program of user space, where none of the task 1 was recorded.
    FirstProcess,
    /// A program of the task 1, the first time: that of the initramfs, those that leave it, that of the root.
    Init,
    /// The first time that a task started by init, or a helper before it, executes a program.
    Process,
}

impl MarkKind {
    /// True for phases: each ends where the next one begins.
    pub fn is_phase(self) -> bool {
        self == Self::Start || self == Self::InitcallLevel || self.is_user_space()
    }

    /// True if user space runs from then on.
    pub fn is_user_space(self) -> bool {
        matches!(self, Self::FirstProcess | Self::Init)
    }
}

/// A time of a boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Time in the clock's unit.
    pub time: u64,
    /// Kind.
    pub kind: MarkKind,
    /// Level, function, module or path of a program; empty for the start.
    pub name: Vec<u8>,
}

/// Marks of a trace, by time.
#[derive(Debug, PartialEq, Eq)]
pub struct BootMarks {
    /// The marks; those of one time in the kernel's order.
    pub marks: Vec<Mark>,
    /// Marks beyond the limit.
    pub left_out: u64,
    /// Begin of the recording.
    pub begin: Begin,
}

/// System, event, and the kind that it is read as.
const SOURCES: [(&str, &str, Source); 6] = [
    ("initcall", "initcall_level", Source::Level),
    ("initcall", "initcall_start", Source::Initcall),
    ("module", "module_load", Source::Module),
    ("sched", "sched_process_exec", Source::Exec),
    ("sched", "sched_process_fork", Source::Fork),
    ("task", "task_rename", Source::Rename),
];

/// Events that have marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Levels of initcalls.
    Level,
    /// Initcalls.
    Initcall,
    /// Loads of modules.
    Module,
    /// Executed programs.
    Exec,
    /// Started tasks.
    Fork,
    /// Names of tasks.
    Rename,
}

impl Source {
    /// The source of the events of a class.
    pub fn of(class: &EventClass) -> Option<Self> {
        let found = SOURCES.iter().find(|(system, name, _)| class.system == *system && class.name == *name);
        found.map(|source| source.2)
    }
}

/// Begin of a recording, in relation to the boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// Before the trace clock ran, with nothing lost before: all events of the boot.
    AtBoot,
    /// Within a second of the clock's zero.
    Early,
    /// Later, or unknown.
    Later,
}

impl Begin {
    /// Begin of a recording, by the first time of which all CPUs have their events.
    pub fn of(session: &Session<'_>) -> Self {
        let metadata = session.trace.metadata();
        let is_of_clock = metadata.clock.as_ref().is_none_or(|clock| CLOCKS.contains(&clock.name.as_str()));
        // Times of an anonymized trace begin at 0, whenever it was recorded.
        let is_of_boot = is_of_clock && metadata.value("anonymized").is_none();
        let is_cut = session.losses.window_begin().is_some() || session.losses.any_before_first();
        match first_time(session) {
            Some(_) if session.begins_before_clock() && !is_cut => Self::AtBoot,
            Some(first) if is_of_boot && first < BOOT_NS_MAX => Self::Early,
            _ => Self::Later,
        }
    }
}

/// First time of which all CPUs have their events.
pub fn first_time(session: &Session<'_>) -> Option<u64> {
    session.losses.window_begin().or_else(|| session.first_time())
}

impl BootMarks {
    /// Marks between two times.
    pub fn of(session: &Session<'_>, (first, last): (u64, u64)) -> Self {
        let (trace, symbols) = (session.trace, &session.symbolizer());
        let mut found = Found::new(symbols);
        rare_events(
            trace,
            |class| Source::of(class).is_some(),
            |event| {
                if (first..=last).contains(&event.time()) {
                    found.event(event);
                }
            },
        );
        let begin = Begin::of(session);
        if !found.has_modules && begin != Begin::Later {
            found.modules(trace, (first, last));
        }
        let mut marks = found.finished(begin);
        marks.sort_by_key(|mark| mark.time);
        marks.insert(0, Mark { time: first, kind: MarkKind::Start, name: Vec::new() });
        let left_out = found.left_out + marks.len().saturating_sub(MARKS_MAX) as u64;
        marks.truncate(MARKS_MAX);
        Self { marks, left_out, begin }
    }

    /// Time at which user space begins, if that is recorded.
    pub fn user_space(&self) -> Option<u64> {
        if self.begin == Begin::Later {
            return None;
        }
        self.marks.iter().find(|mark| mark.kind.is_user_space()).map(|mark| mark.time)
    }
}

/// Marks found so far.
struct Found<'s, 'd> {
    symbols: &'s Symbolizer<'d>,
    marks: Vec<Mark>,
    left_out: u64,
    has_modules: bool,
    /// Programs that were executed; true: by the task 1.
    programs: HashSet<(bool, Vec<u8>)>,
    /// True if a start of a task was seen: else any program may be one of init.
    has_forks: bool,
    /// Tasks that init started.
    of_init: HashSet<i32, IntHash>,
    has_init: bool,
    /// First name of the task 1 that it gave itself.
    renamed: Option<Mark>,
}

impl<'s, 'd> Found<'s, 'd> {
    fn new(symbols: &'s Symbolizer<'d>) -> Self {
        Self {
            symbols,
            marks: Vec::new(),
            left_out: 0,
            has_modules: false,
            programs: HashSet::new(),
            has_forks: false,
            of_init: HashSet::default(),
            has_init: false,
            renamed: None,
        }
    }

    fn add(&mut self, time: u64, kind: MarkKind, name: &[u8]) {
        if self.marks.len() >= MARKS_MAX {
            self.left_out += 1;
            return;
        }
        let name = name.get(..NAME_MAX).unwrap_or(name).to_vec();
        self.marks.push(Mark { time, kind, name });
    }

    fn event(&mut self, event: &Event<'_>) {
        let field = |name: &str| event.class().field_named(name);
        let text = |name: &str| field(name).and_then(|field| event.text(field)).unwrap_or_default();
        let number = |name: &str| field(name).and_then(|field| event.uint(field));
        match Source::of(event.class()) {
            Some(Source::Level) => self.add(event.time(), MarkKind::InitcallLevel, text("level")),
            Some(Source::Initcall) => {
                let function = number("func").map(|address| function_of(&self.symbols.shown(address)));
                self.add(event.time(), MarkKind::Initcall, function.unwrap_or_default().as_bytes());
            }
            Some(Source::Module) => {
                self.has_modules = true;
                self.add(event.time(), MarkKind::Module, text("name"));
            }
            Some(Source::Fork) => {
                self.has_forks = true;
                let (parent, child) = (number("parent_pid"), number("child_pid"));
                let is_of_init = parent.is_some_and(|pid| pid as i32 == INIT);
                if let Some(child) = child.filter(|_| is_of_init && self.of_init.len() < MARKS_MAX) {
                    self.of_init.insert(child as i32);
                }
            }
            Some(Source::Exec) => {
                let pid = number("pid").map_or(event.pid(), |pid| pid as i32);
                self.program(event.time(), pid, text("filename"));
            }
            Some(Source::Rename) => {
                let pid = number("pid").map_or(event.pid(), |pid| pid as i32);
                // The task that becomes init was `swapper/0`, and kernel_init has no other name.
                if pid == INIT && self.renamed.is_none() {
                    let name = text("newcomm").to_vec();
                    self.renamed = Some(Mark { time: event.time(), kind: MarkKind::Init, name });
                }
            }
            None => {}
        }
    }

    /// Adds the execution of a program.
    fn program(&mut self, time: u64, pid: i32, path: &[u8]) {
        let path = path.get(..NAME_MAX).unwrap_or(path);
        let (is_init, is_first) = (pid == INIT, self.programs.is_empty());
        if self.programs.len() >= MARKS_MAX || !self.programs.insert((is_init, path.to_vec())) {
            return;
        }
        if is_init {
            self.has_init = true;
            self.add(time, MarkKind::Init, path);
        } else if is_first {
            self.add(time, MarkKind::FirstProcess, path);
        } else if !self.has_forks || self.of_init.contains(&pid) {
            self.add(time, MarkKind::Process, path);
        }
    }

    /// The marks, with one begin of user space at most: helpers that ran before init are programs.
    fn finished(&mut self, begin: Begin) -> Vec<Mark> {
        let mut marks = std::mem::take(&mut self.marks);
        if self.has_init || begin == Begin::Later {
            let first = marks.iter_mut().filter(|mark| mark.kind == MarkKind::FirstProcess);
            first.for_each(|mark| mark.kind = MarkKind::Process);
        } else if self.programs.is_empty() {
            marks.extend(self.renamed.take());
        }
        marks
    }

    /// Adds the first event of each module, by call sites.
    fn modules(&mut self, trace: &Trace<'_>, (first, last): (u64, u64)) {
        let has_sites = |class: &EventClass| class.field_with(Role::CALL_SITE).is_some();
        let symbols = self.symbols;
        let mut known: HashMap<u64, bool, IntHash> = HashMap::default();
        let mut modules: HashMap<String, u64> = HashMap::new();
        rare_events(trace, has_sites, |event| {
            let site = event.uint_with(Role::CALL_SITE).filter(|_| (first..=last).contains(&event.time()));
            let Some(site) = site else { return };
            known.entry(site).or_insert_with(|| {
                let module = symbols.module(site).filter(|module| module != "[kernel]");
                let Some(module) = module else { return false };
                modules.entry(module).or_insert(event.time());
                true
            });
        });
        let mut modules: Vec<(u64, String)> = modules.into_iter().map(|(name, time)| (time, name)).collect();
        modules.sort();
        for (time, name) in modules {
            self.add(time, MarkKind::ModuleUse, name.trim_matches(['[', ']']).as_bytes());
        }
    }
}
