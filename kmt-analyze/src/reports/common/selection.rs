//! What a report counts, and running the ledger over it.

use std::cell::Cell;
use std::collections::HashMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use super::names::TraceNames;
use crate::collect::Collectors;
use crate::ledger::totals::Totals;
use crate::pass::filter::Filter;
use crate::pass::term::Term;
use crate::pass::{self, Task};
use crate::stream::Api;
use crate::trace::session::Session;
use crate::trace::time_range::TimeRange;

/// What is counted.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// When.
    pub time: Option<TimeRange>,
    /// At one instant: what is live then.
    pub at: Option<TimeRange>,
    /// Allocations of these tasks.
    pub pids: Vec<i32>,
    /// Allocations of tasks of these names.
    pub comms: Vec<String>,
    /// Allocations on these CPUs.
    pub cpus: Vec<u32>,
    /// Conditions, all of which have to hold.
    pub terms: Vec<Term>,
    /// Whether what the recorder itself allocated is left out.
    pub without_recorder: bool,
    /// Cores to use.
    pub threads: Option<usize>,
}

impl Selection {
    /// The filter for a trace.
    pub fn filter(&self, session: &Session<'_>) -> Filter {
        let start = session.first_time().unwrap_or(0);
        let window = self.at.as_ref().or(self.time.as_ref()).map(|t| t.resolve(session.unit(), start));
        Filter {
            pids: self.pids.clone(),
            comms: self.comms.iter().map(|c| c.as_bytes().to_vec()).collect(),
            cpus: self.cpus.clone(),
            without: recorder(session).filter(|_| self.without_recorder),
            window,
            terms: self.terms.clone(),
        }
    }

    /// First and last time of what is counted, within the trace.
    pub fn span(&self, session: &Session<'_>) -> (u64, u64) {
        let (first, last) = self.filter(session).window.unwrap_or((0, u64::MAX));
        // A damaged file may have chunks that end before they begin.
        let start = session.first_time().unwrap_or(0);
        let end = session.last_time().unwrap_or(0).max(start);
        (first.clamp(start, end), last.clamp(start, end))
    }
}

/// What a report wants of a pass besides sums by site.
pub struct Wants<'w> {
    /// Sums that are gathered besides.
    pub collectors: &'w Collectors,
    /// Counts of all events by class and origin.
    pub event_counts: bool,
    /// Totals as ranges, where events were lost.
    pub ranges: bool,
}

impl<'w> Wants<'w> {
    /// Collectors alone.
    pub fn of(collectors: &'w Collectors) -> Self {
        Self { collectors, event_counts: false, ranges: false }
    }
}

/// Runs the ledger over what is selected, for sums by site alone.
pub fn analyse(session: &Session<'_>, selection: &Selection) -> pass::Analysis {
    analyse_for(session, selection, &Wants::of(&Collectors::default()))
}

/// Runs the ledger over what is selected.
pub fn analyse_for(session: &Session<'_>, selection: &Selection, wants: &Wants<'_>) -> pass::Analysis {
    let filter = selection.filter(session);
    let names = TraceNames::new(session);
    let progress = Progress::new();
    let task = Task {
        filter: &filter,
        names: &names,
        collectors: wants.collectors,
        event_counts: wants.event_counts,
        ranges: wants.ranges,
        threads: selection.threads,
        progress: &|done, all| progress.tell(done, all),
    };
    let result = pass::run(session.trace, &session.losses, &task);
    progress.clear();
    result
}

/// The task that recorded; `None` if the file was not recorded live.
fn recorder(session: &Session<'_>) -> Option<i32> {
    session.trace.metadata().text("recorder.pid")?.parse().ok()
}

/// The sums of all sites of one interface.
pub fn sum_of(result: &pass::Analysis, api: Option<Api>) -> Totals {
    let mut sum = Totals::default();
    for (number, parts) in result.balance.sites.iter().enumerate() {
        let site = result.interner.sites.get(number as u32);
        if site.is_some_and(|s| api.is_none_or(|a| a == s.api)) {
            parts.iter().for_each(|(_, totals)| sum += totals);
        }
    }
    sum
}

/// The names of tasks, the latest each.
pub fn task_names<'s>(session: &'s Session<'_>) -> HashMap<i32, &'s [u8]> {
    let mut names = HashMap::new();
    for task in &session.trace.metadata().tasks {
        names.insert(task.pid, task.comm.as_ref());
    }
    names.entry(0).or_insert(b"<idle>");
    names
}

/// Tells how far a pass is, on a terminal and if it takes long.
struct Progress {
    started: Instant,
    told: Cell<Option<Instant>>,
    calls: Cell<u32>,
    is_terminal: bool,
}

/// Shorter passes say nothing.
const PATIENCE: Duration = Duration::from_millis(700);
/// Time between two lines.
const INTERVAL: Duration = Duration::from_millis(200);

impl Progress {
    fn new() -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { started: Instant::now(), told: Cell::new(None), calls: Cell::new(0), is_terminal }
    }

    fn tell(&self, done: u64, all: u64) {
        // The clock is asked once in a while only.
        self.calls.set(self.calls.get().wrapping_add(1));
        if !self.is_terminal || self.calls.get() % 32 != 0 {
            return;
        }
        let (now, elapsed) = (Instant::now(), self.started.elapsed());
        let due = self.told.get().map_or(elapsed > PATIENCE, |told| now - told > INTERVAL);
        if due {
            let share = done as f64 / all.max(1) as f64;
            let left = elapsed.as_secs_f64() * (1.0 - share).max(0.0) / share.max(1e-6);
            eprint!(
                "\r{:3.0} % of {} events, {left:.0} s left \x1b[K",
                share * 100.0,
                crate::render::text::count(all)
            );
            self.told.set(Some(now));
        }
    }

    fn clear(&self) {
        if self.told.get().is_some() {
            eprint!("\r\x1b[K");
        }
    }
}
