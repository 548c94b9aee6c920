//! Selection of events on the command line, for commands that show or copy events.

use crate::failure::Result;
use crate::trace::session::Session;
use crate::trace::time_range::TimeRange;

/// Events by time, CPU, task and class.
#[derive(Debug, clap::Args)]
pub struct EventArgs {
    /// Events from A to B: seconds as `dump` prints them, or +seconds from the start
    #[arg(long, value_name = "A..B", value_parser = TimeRange::parse)]
    pub time: Option<TimeRange>,
    /// Events on this CPU; may be given several times
    #[arg(long, value_name = "CPU")]
    pub cpu: Vec<u32>,
    /// Events of this task (thread id); may be given several times
    #[arg(long, value_name = "PID")]
    pub pid: Vec<i32>,
    /// Events: SYSTEM, EVENT or SYSTEM:EVENT, with * and ?; may be given several times. Includes their stacks
    #[arg(short, long = "event", value_name = "EVENT")]
    pub event: Vec<String>,
}

impl EventArgs {
    /// First and last selected time, in the clock's unit; `None`: all.
    pub fn window(&self, session: &Session<'_>) -> Result<Option<(u64, u64)>> {
        let start = session.first_time().unwrap_or(0);
        self.time.as_ref().map(|time| time.resolve(&session.clock(), start)).transpose()
    }

    /// True if events of a CPU are selected.
    pub fn has_cpu(&self, cpu: u32) -> bool {
        self.cpu.is_empty() || self.cpu.contains(&cpu)
    }

    /// True if events of a task are selected.
    pub fn has_pid(&self, pid: i32) -> bool {
        self.pid.is_empty() || self.pid.contains(&pid)
    }
}
