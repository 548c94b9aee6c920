//! Prints the progress of a pass, on a terminal and if it takes long.
//!
//! A pass reports the time that it has reached, as a share of the selected time, on standard error. Nothing is printed
//! if standard error is not a terminal or the pass is short. `dump` and exports of events use the same lines.

use std::cell::Cell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use crate::env::Env;
use crate::render::words::count;
use crate::trace::session::Session;

/// Progress of reading events in the order of their time.
pub(crate) struct ByTime {
    progress: Progress,
    first: u64,
    last: u64,
    events: u64,
}

impl ByTime {
    /// Progress over the trace, or over a window of it.
    pub(crate) fn of(session: &Session<'_>, window: Option<(u64, u64)>) -> Self {
        let (start, end) = (session.first_time().unwrap_or(0), session.last_time().unwrap_or(0));
        let (first, last) = window.unwrap_or((start, end));
        let (first, last) = (first.max(start), last.min(end));
        Self { progress: Progress::new(&session.env), first, last, events: session.trace.event_count() }
    }

    /// Events until this time are done.
    pub(crate) fn at(&self, time: u64) {
        let share =
            time.saturating_sub(self.first) as f64 / self.last.saturating_sub(self.first).max(1) as f64;
        self.progress.print((self.events as f64 * share.min(1.0)) as u64, self.events);
    }
}

impl Drop for ByTime {
    fn drop(&mut self) {
        self.progress.clear();
    }
}

/// Progress of a pass.
pub(super) struct Progress {
    started: Instant,
    printed: Cell<Option<Instant>>,
    calls: Cell<u32>,
    is_terminal: bool,
}

/// Shortest duration of a pass that prints its progress.
const PATIENCE: Duration = Duration::from_millis(700);
/// Time between two lines.
const INTERVAL: Duration = Duration::from_millis(200);

impl Progress {
    pub(super) fn new(env: &Env) -> Self {
        let is_terminal = env.shows_progress && std::io::stderr().is_terminal();
        Self { started: Instant::now(), printed: Cell::new(None), calls: Cell::new(0), is_terminal }
    }

    pub(super) fn print(&self, done: u64, all: u64) {
        // The clock is read only once in many calls.
        self.calls.set(self.calls.get().wrapping_add(1));
        if !self.is_terminal || self.calls.get() % 32 != 0 {
            return;
        }
        let (now, elapsed) = (Instant::now(), self.started.elapsed());
        let due = self.printed.get().map_or(elapsed > PATIENCE, |last| now - last > INTERVAL);
        if due {
            let share = done as f64 / all.max(1) as f64;
            let left = elapsed.as_secs_f64() * (1.0 - share).max(0.0) / share.max(1e-6);
            kmt_common::text::to_stderr(format_args!(
                "\r{:3.0} % of {} events, {left:.0} s left \x1b[K",
                share * 100.0,
                count(all)
            ));
            self.printed.set(Some(now));
        }
    }

    pub(super) fn clear(&self) {
        if self.printed.get().is_some() {
            kmt_common::text::to_stderr(format_args!("\r\x1b[K"));
        }
    }
}
