//! Selection of a command, and the input of a pass.
//!
//! The selection comes from the command line: time window, conditions, samples. With the collectors and further needs of the
//! reports it makes a [`Request`], which is the whole input of a pass.

use clap::builder::TypedValueParser;

use crate::collect::Collectors;
use crate::failure::Result;
use crate::pass::condition::{Condition, Key};
use crate::trace::folded;
use crate::trace::names::names_of_task;
use crate::trace::session::Session;
use crate::trace::time_range::TimeRange;

/// A window in which no event is.
const NOTHING: (u64, u64) = (u64::MAX, 0);

/// Heading of the options that select events.
pub const SELECTION: &str = "Selection";

/// Selection of events.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = SELECTION)]
pub struct Selection {
    /// Count events from A to B: +seconds from the start, or seconds as dump prints them. Earlier allocations still match
    #[arg(long, value_name = "A..B", value_parser = TimeRange::parse)]
    pub time: Option<TimeRange>,
    /// Show the memory that is allocated at this instant
    #[arg(long, value_name = "T", value_parser = TimeRange::parse_instant, conflicts_with = "time")]
    pub at: Option<TimeRange>,
    /// Allocations of this task (thread id); can be repeated
    #[arg(long = "pid", value_name = "PID")]
    pub pids: Vec<i32>,
    /// Allocations of tasks of this name; can be repeated
    #[arg(long = "comm", value_name = "NAME")]
    pub comms: Vec<String>,
    /// With --pid or --comm, allocations of their descendants too, as far as their starts were recorded
    #[arg(long)]
    pub children: bool,
    /// Allocations on this CPU; can be repeated
    #[arg(long = "cpu", value_name = "CPU")]
    pub cpus: Vec<u32>,
    /// Allocations that meet a condition: size>4096, call_site~^ext4_, pid=1,2, lifetime>1ms. Keys: pid, comm, cgroup, cpu,
    /// node, event, call_site, module, dir, file, cache, bytes_req, bytes_alloc or size, lifetime, gfp, order, migratetype,
    /// pfn (pfn=0x100..0x1ff). Operators: = != < <= > >=, ~ and !~ for regular expressions. If repeated, all conditions
    /// must hold
    #[arg(long = "where", value_name = "CONDITION", value_parser = Condition::parse)]
    pub terms: Vec<Condition>,
    /// Allocations of functions whose source is in this directory, such as fs/ext4: as --where dir=DIR
    #[arg(short = 'b', long, value_name = "DIR", value_parser = directory)]
    pub start_branch: Option<Condition>,
    /// Leave out memory that the recorder itself allocated
    #[arg(long)]
    pub without_recorder: bool,
    /// Use at most N cores; the output is the same for any number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..).map(usize::from))]
    pub threads: Option<usize>,
}

/// A directory, as the source lines have it.
fn directory(text: &str) -> std::result::Result<Condition, String> {
    Condition::parse(&format!("dir={}", text.trim_end_matches('/').trim_start_matches("./")))
}

impl Selection {
    /// All conditions.
    pub fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.terms.iter().chain(&self.start_branch)
    }

    /// The directory of --start-branch.
    pub fn branch(&self) -> Option<String> {
        self.start_branch.as_ref().map(|term| term.to_string().replacen("dir=", "", 1))
    }

    /// True if all objects are selected, at any time.
    pub fn is_all(&self) -> bool {
        let Self { time: _, at: _, pids, comms, children: _, cpus, terms, start_branch, .. } = self;
        let is_any_task = pids.is_empty() && comms.is_empty();
        is_any_task && cpus.is_empty() && terms.is_empty() && start_branch.is_none() && !self.without_recorder
    }

    /// True if a condition is about the allocation itself, which events without one cannot meet.
    pub fn is_about_allocations(&self) -> bool {
        self.conditions().any(|term| !matches!(term.key, Key::Pid | Key::Comm | Key::Cgroup | Key::Cpu))
    }

    /// True if no task is given.
    pub fn is_of_any_task(&self) -> bool {
        self.pids.is_empty() && self.comms.is_empty()
    }

    /// True if a task of this name is given: as the kernel has it, or as it is shown.
    pub fn is_task(&self, pid: i32, name: &[u8]) -> bool {
        self.pids.contains(&pid)
            || self.comms.iter().any(|comm| names_of_task(name).iter().any(|name| comm.as_bytes() == &**name))
    }

    /// True if a condition is about names of tasks.
    pub fn is_about_names(&self) -> bool {
        !self.comms.is_empty() || self.has_term_on(Key::Comm)
    }

    /// True if a condition has this key.
    pub fn has_term_on(&self, key: Key) -> bool {
        self.conditions().any(|term| term.key == key)
    }

    /// True if a part of the recording is selected, longer than a moment.
    pub fn has_window(&self) -> bool {
        self.time.is_some() && self.at.is_none()
    }

    /// First and last selected time, in the clock's unit. Times that [`Selection::check`] refuses select nothing. Where none
    /// are given, the time of which a ring buffer has the events of all CPUs; `--time ..` selects the whole file. Where lives are
    /// sums of intervals, whole ones are selected.
    pub fn bounds(&self, session: &Session<'_>) -> (u64, u64) {
        let all = (session.losses.window_begin().unwrap_or(0), u64::MAX);
        match self.window(session).unwrap_or(Some(NOTHING)) {
            Some(window) if session.trace.header().folded && window != NOTHING => {
                folded::whole_intervals(session.trace, window, self.at.is_some())
            }
            Some(window) => window,
            None => all,
        }
    }

    /// First and last time of the window, in the clock's unit. Refused as `Clock::units` is.
    pub fn window(&self, session: &Session<'_>) -> Result<Option<(u64, u64)>> {
        let range = self.at.as_ref().or(self.time.as_ref());
        range.map(|t| t.resolve(&session.clock(), session.first_time().unwrap_or(0))).transpose()
    }

    /// Conditions with times in the clock's unit. Refused as `Clock::units` is.
    pub fn terms_of(&self, session: &Session<'_>) -> Result<Vec<Condition>> {
        let clock = session.clock();
        self.conditions().map(|term| term.in_units_of(&clock)).collect()
    }

    /// First and last time of the window, within the trace.
    pub fn span(&self, session: &Session<'_>) -> (u64, u64) {
        let (first, last) = self.bounds(session);
        // A damaged file may have chunks that end before they begin.
        let start = session.first_time().unwrap_or(0);
        let end = session.last_time().unwrap_or(0).max(start);
        (first.clamp(start, end), last.clamp(start, end))
    }
}

/// Thread id of the recorder; `None` if the file was not recorded live.
pub fn recorder(session: &Session<'_>) -> Option<i32> {
    session.trace.metadata().text("recorder.pid")?.parse().ok()
}

/// Thread ids of the recorder; none if the file was not recorded live.
pub fn recorder_threads(session: &Session<'_>) -> Vec<i32> {
    let Some(pid) = recorder(session) else { return Vec::new() };
    let threads = session.trace.metadata().tasks.iter().filter(|task| task.tgid == pid).map(|task| task.pid);
    let mut all: Vec<i32> = threads.chain([pid]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Time at which the processes of a recorded command began to exit: what they had leaked is freed from then on. `None`:
/// live memory is judged at the end of the window.
pub fn command_exit(session: &Session<'_>, selection: &Selection) -> Option<u64> {
    let exit = session.trace.metadata().text("record.command_exit")?.parse().ok()?;
    let first = session.first_time()?.max(session.losses.window_begin().unwrap_or(0));
    let span = (first, session.last_time()?);
    // A selected window is judged at its own end.
    (selection.span(session) == span && span.0 < exit && exit < span.1).then_some(exit)
}

bitflags::bitflags! {
    /// Needs of a pass besides sums by site and those of its collectors.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct Needs: u8 {
        /// Counts of all events by class and origin.
        const EVENT_COUNTS = 1;
        /// Totals as ranges, where events were lost.
        const RANGES = 1 << 1;
        /// Names of tasks at the time of each event.
        const TASK_NAMES = 1 << 2;
        /// Names of caches by frees after the window too, where allocations do not name them: the pass reads to the end.
        /// Bounds of live objects need them, too: objects of a cache whose frees all have events are live if they seem so.
        const CACHE_NAMES = 1 << 3;
        /// Names of allocation flags.
        const FLAG_NAMES = 1 << 4;
        /// Ends after the window too: the pass reads to the end.
        const LATER_ENDS = 1 << 5;
        /// Cgroups of tasks at the time of each event.
        const CGROUPS = 1 << 6;
    }
}

/// Input of a pass: events to count, and results to compute.
#[derive(Debug, Clone, Copy)]
pub struct Request<'r> {
    /// Selected events.
    pub selection: &'r Selection,
    /// Collectors besides sums by site.
    pub collectors: &'r Collectors,
    /// Further needs.
    pub needs: Needs,
}

impl<'r> Request<'r> {
    /// A request for collectors.
    pub fn new(selection: &'r Selection, collectors: &'r Collectors) -> Self {
        Self { selection, collectors, needs: Needs::empty() }
    }

    /// This request with further needs.
    pub fn with(self, needs: Needs) -> Self {
        Self { needs: self.needs | needs, ..self }
    }
}
