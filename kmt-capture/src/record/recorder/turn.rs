//! One turn of the recording loop: waits for events, takes them, and does what is due now and then.
//!
//! Once a second a reader that follows the file gets all that is known: open chunks, names of tasks, counters.

use std::time::{Duration, Instant};

use kmt_format::write::StatsTaken;

use super::{Recorder, StopReason};
use crate::failure::Result;
use crate::record::command::Running;
use crate::record::cpus::online;
use crate::record::{RecordOptions, description, snapshot};

/// Length of the configuration of the kernel in the file, at most about.
const CONFIG_LEN: u64 = 256 << 10;
/// How often buffers are emptied at least, and chunks written that are not full.
pub(super) const ROUND: Duration = Duration::from_millis(100);
const FLUSH: Duration = Duration::from_secs(1);
/// How often the trace clock is compared with the time of day.
const CLOCK_PAIR: Duration = Duration::from_secs(60);

/// Length of a recording that gets the kernel's configuration unasked: it takes 24 KB, and a short recording is to be small.
const CONFIG_AFTER: Duration = Duration::from_secs(60);

/// Result of one turn of the recording loop.
#[derive(Debug, Default)]
pub(in crate::record) struct TurnResult {
    /// Why the recording is to stop now.
    pub stop_reason: Option<StopReason>,
    /// True once a second.
    pub is_heartbeat: bool,
}

/// Times of what is done now and then.
pub(super) struct Times {
    pub start: Instant,
    flushed: Instant,
    paired: Instant,
    looked: Instant,
}

impl Times {
    pub fn from_now() -> Self {
        let now = Instant::now();
        Self { start: now, flushed: now, paired: now, looked: now }
    }
}

impl Recorder {
    /// Waits for events, and takes them; does what is due.
    pub(in crate::record) fn turn(&mut self, options: &RecordOptions) -> Result<TurnResult> {
        let left = options.duration.map(|d| d.saturating_sub(self.times.start.elapsed()));
        if !self.has_rest {
            self.wait(left.map_or(ROUND, |left| left.min(ROUND)), self.setup.dir.has("buffer_percent"));
        }
        self.notice_writes()?;
        self.drain_round()?;
        let is_over = left.is_some_and(|left| left.is_zero());
        if let Some(reason) = self.stop_reason(is_over) {
            return Ok(TurnResult { stop_reason: Some(reason), is_heartbeat: false });
        }
        self.symbols_if_due()?;
        if let Some(bound) = self.room.reached {
            return Ok(TurnResult { stop_reason: Some(StopReason::Size(bound)), is_heartbeat: false });
        }
        let now = Instant::now();
        let is_heartbeat = now - self.times.flushed >= FLUSH;
        if is_heartbeat {
            self.times.flushed = now;
            self.heartbeat(options)?;
        }
        if now - self.times.paired >= CLOCK_PAIR {
            self.times.paired = now;
            self.clock_pair()?;
        }
        let is_due = options.snapshot_every.is_some_and(|every| now - self.times.looked >= every);
        if is_due && self.room.has_room_before_end(&mut self.file.writer, self.room.end_len) {
            self.times.looked = now;
            self.snapshot(now)?;
        }
        self.rotate_if_due(options)?;
        Ok(TurnResult { stop_reason: None, is_heartbeat })
    }

    /// Why the recording stops now, if it does.
    pub(super) fn stop_reason(&mut self, is_over: bool) -> Option<StopReason> {
        if self.changes.of_clock {
            return Some(StopReason::Clock);
        }
        if self.file.output.signals.asked() > 0 {
            return Some(StopReason::Asked);
        }
        if self.file.output.signals.is_file_wanted() {
            return Some(StopReason::Written);
        }
        if self.command.as_mut().is_some_and(Running::has_ended) {
            return Some(StopReason::Command);
        }
        is_over.then_some(StopReason::Time)
    }

    /// Writes symbols that events need, as they are found.
    fn symbols_if_due(&mut self) -> Result<()> {
        let Some(used) = &mut self.used else { return Ok(()) };
        if used.advance(&mut self.file.writer)? {
            self.file.write()?;
        }
        Ok(())
    }

    /// Once a second: writes open chunks, names, and counters, so that a reader that follows is up to date.
    fn heartbeat(&mut self, options: &RecordOptions) -> Result<()> {
        self.file.output.out.check_name()?;
        self.open_rings();
        let is_due = options.kernel_config || self.times.start.elapsed() >= CONFIG_AFTER;
        if !self.has_config && is_due && self.room.has_room_before_end(&mut self.file.writer, CONFIG_LEN) {
            self.has_config = true;
            snapshot::write_config(&mut self.file.writer)?;
        }
        self.flush()?;
        self.read_counters()?;
        self.write_counters(StatsTaken::Before)?;
        self.read_settings()?;
        self.file.write()
    }

    fn snapshot(&mut self, start: Instant) -> Result<()> {
        let cpu = online(&self.setup).first().copied().unwrap_or(0);
        let now = || description::trace_now(&self.setup, cpu);
        let missing = snapshot::write_meanwhile(&mut self.file.writer, now)?;
        let notice =
            |name| format!("warning: /proc/{name} could not be read; it is missing in this snapshot");
        self.notices.extend(missing.into_iter().map(notice));
        self.snapshots += start.elapsed();
        self.file.write()
    }
}
