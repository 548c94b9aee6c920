//! Selection of a command, and running the ledger over it.

use super::names::TraceNames;
use super::progress::Progress;
use crate::collect::Collectors;
use crate::failure::Result;
use crate::pass::condition::Condition;
use crate::pass::filter::Filter;
use crate::pass::{self, Task};
use crate::trace::session::Session;
use crate::trace::time_range::TimeRange;

/// A window in which no event is.
const NOTHING: (u64, u64) = (u64::MAX, 0);

/// Selection of a command.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Time window.
    pub time: Option<TimeRange>,
    /// An instant: objects live at that time.
    pub at: Option<TimeRange>,
    /// Allocations of these tasks.
    pub pids: Vec<i32>,
    /// Allocations of tasks of these names.
    pub comms: Vec<String>,
    /// Allocations on these CPUs.
    pub cpus: Vec<u32>,
    /// Conditions; all must hold.
    pub terms: Vec<Condition>,
    /// True to leave out allocations of the recorder.
    pub without_recorder: bool,
    /// Cores to use.
    pub threads: Option<usize>,
}

impl Selection {
    /// True if all objects are selected, at whatever time.
    pub fn is_all(&self) -> bool {
        let Self { time: _, at: _, pids, comms, cpus, terms, without_recorder, threads: _ } = self;
        let any = !pids.is_empty() || !comms.is_empty() || !cpus.is_empty() || !terms.is_empty();
        !any && !without_recorder
    }

    /// The filter for a trace. Times that [`Selection::check`] refuses select nothing.
    pub fn filter(&self, session: &Session<'_>) -> Filter {
        let window = self.window(session).unwrap_or(Some(NOTHING));
        Filter {
            pids: self.pids.clone(),
            comms: self.comms.iter().map(|c| c.as_bytes().to_vec()).collect(),
            cpus: self.cpus.clone(),
            without: recorder(session).filter(|_| self.without_recorder),
            window,
            terms: self.terms_of(session).unwrap_or_else(|_| self.terms.clone()),
        }
    }

    /// First and last time of the window, in the clock's unit. Refused as [`crate::trace::clock::Clock::units`] is.
    pub fn window(&self, session: &Session<'_>) -> Result<Option<(u64, u64)>> {
        let range = self.at.as_ref().or(self.time.as_ref());
        range.map(|t| t.resolve(&session.clock(), session.first_time().unwrap_or(0))).transpose()
    }

    /// Conditions with times in the clock's unit. Refused as [`crate::trace::clock::Clock::units`] is.
    pub fn terms_of(&self, session: &Session<'_>) -> Result<Vec<Condition>> {
        let clock = session.clock();
        self.terms.iter().map(|term| term.in_units_of(&clock)).collect()
    }

    /// First and last time of the window, within the trace.
    pub fn span(&self, session: &Session<'_>) -> (u64, u64) {
        let (first, last) = self.filter(session).window.unwrap_or((0, u64::MAX));
        // A damaged file may have chunks that end before they begin.
        let start = session.first_time().unwrap_or(0);
        let end = session.last_time().unwrap_or(0).max(start);
        (first.clamp(start, end), last.clamp(start, end))
    }
}

/// Needs of a report besides sums by site.
pub struct Wants<'w> {
    /// Collectors.
    pub collectors: &'w Collectors,
    /// Counts of all events by class and origin.
    pub event_counts: bool,
    /// Totals as ranges, where events were lost.
    pub ranges: bool,
    /// Names of tasks over time.
    pub task_names: bool,
    /// Names of caches by frees after the window.
    pub cache_names: bool,
}

impl<'w> Wants<'w> {
    /// Collectors only.
    pub fn of(collectors: &'w Collectors) -> Self {
        Self { collectors, event_counts: false, ranges: false, task_names: false, cache_names: false }
    }
}

/// Runs the ledger over the selection, for sums by site only.
pub fn analyse(session: &Session<'_>, selection: &Selection) -> pass::Analysis {
    analyse_for(session, selection, &Wants::of(&Collectors::default()))
}

/// Runs the ledger over the selection.
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
        task_names: (wants.task_names || filter.is_about_names()).then(|| session.names()),
        cache_names: wants.cache_names,
        threads: selection.threads,
        progress: &|done, all| progress.print(done, all),
    };
    let result = pass::run(session.trace, &session.losses, &task);
    progress.clear();
    result
}

/// Thread id of the recorder; `None` if the file was not recorded live.
pub fn recorder(session: &Session<'_>) -> Option<i32> {
    session.trace.metadata().text("recorder.pid")?.parse().ok()
}
