//! Prints how far a pass is, on a terminal and if it takes long.

use std::cell::Cell;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::render::text::count;

/// Passes of this process print how far they are.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// Lets all passes of this process print how far they are, on standard error, if that is a terminal. A program asks for
/// this, a library does not.
pub fn show() {
    IS_SHOWN.store(true, Ordering::Relaxed);
}

/// How far a pass is.
pub(super) struct Progress {
    started: Instant,
    printed: Cell<Option<Instant>>,
    calls: Cell<u32>,
    is_terminal: bool,
}

/// Shorter passes print nothing.
const PATIENCE: Duration = Duration::from_millis(700);
/// Time between two lines.
const INTERVAL: Duration = Duration::from_millis(200);

impl Progress {
    pub(super) fn new() -> Self {
        let is_terminal = IS_SHOWN.load(Ordering::Relaxed) && std::io::stderr().is_terminal();
        Self { started: Instant::now(), printed: Cell::new(None), calls: Cell::new(0), is_terminal }
    }

    pub(super) fn print(&self, done: u64, all: u64) {
        // The clock is asked once in a while only.
        self.calls.set(self.calls.get().wrapping_add(1));
        if !self.is_terminal || self.calls.get() % 32 != 0 {
            return;
        }
        let (now, elapsed) = (Instant::now(), self.started.elapsed());
        let due = self.printed.get().map_or(elapsed > PATIENCE, |last| now - last > INTERVAL);
        if due {
            let share = done as f64 / all.max(1) as f64;
            let left = elapsed.as_secs_f64() * (1.0 - share).max(0.0) / share.max(1e-6);
            eprint!("\r{:3.0} % of {} events, {left:.0} s left \x1b[K", share * 100.0, count(all));
            self.printed.set(Some(now));
        }
    }

    pub(super) fn clear(&self) {
        if self.printed.get().is_some() {
            eprint!("\r\x1b[K");
        }
    }
}
