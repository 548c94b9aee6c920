//! Selection of a command.

use crate::failure::Result;
use crate::pass::condition::{Condition, Key};
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
    /// True to select descendants of the selected tasks too.
    pub children: bool,
    /// True to leave out allocations of the recorder.
    pub without_recorder: bool,
    /// Cores to use.
    pub threads: Option<usize>,
}

impl Selection {
    /// True if all objects are selected, at any time.
    pub fn is_all(&self) -> bool {
        let Self { time: _, at: _, pids, comms, children: _, cpus, terms, without_recorder, threads: _ } =
            self;
        let any = !pids.is_empty() || !comms.is_empty() || !cpus.is_empty() || !terms.is_empty();
        !any && !without_recorder
    }

    /// True if a condition is about the allocation itself, which events without one cannot meet.
    pub fn is_about_allocations(&self) -> bool {
        self.terms.iter().any(|term| !matches!(term.key, Key::Pid | Key::Comm | Key::Cgroup | Key::Cpu))
    }

    /// True if no task is given.
    pub fn is_of_any_task(&self) -> bool {
        self.pids.is_empty() && self.comms.is_empty()
    }

    /// True if a task of this name is given.
    pub fn is_task(&self, pid: i32, name: &[u8]) -> bool {
        self.pids.contains(&pid) || self.comms.iter().any(|comm| comm.as_bytes() == name)
    }

    /// True if a condition is about names of tasks.
    pub fn is_about_names(&self) -> bool {
        !self.comms.is_empty() || self.has_term_on(Key::Comm)
    }

    /// True if a condition has this key.
    pub fn has_term_on(&self, key: Key) -> bool {
        self.terms.iter().any(|term| term.key == key)
    }

    /// First and last selected time, in the clock's unit. Times that [`Selection::check`] refuses select nothing.
    pub fn bounds(&self, session: &Session<'_>) -> (u64, u64) {
        self.window(session).unwrap_or(Some(NOTHING)).unwrap_or((0, u64::MAX))
    }

    /// First and last time of the window, in the clock's unit. Refused as `Clock::units` is.
    pub fn window(&self, session: &Session<'_>) -> Result<Option<(u64, u64)>> {
        let range = self.at.as_ref().or(self.time.as_ref());
        range.map(|t| t.resolve(&session.clock(), session.first_time().unwrap_or(0))).transpose()
    }

    /// Conditions with times in the clock's unit. Refused as `Clock::units` is.
    pub fn terms_of(&self, session: &Session<'_>) -> Result<Vec<Condition>> {
        let clock = session.clock();
        self.terms.iter().map(|term| term.in_units_of(&clock)).collect()
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
