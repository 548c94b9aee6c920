//! Owner of an instance or a probe in tracefs.

use std::fs;

use rustix::process::{Pid, test_kill_process};

/// A process; its start distinguishes it from a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pid: u32,
    /// Start of the process in clock ticks since boot; 0 where /proc does not show it.
    start: u64,
}

impl Owner {
    /// This process.
    pub fn this() -> Self {
        let pid = std::process::id();
        Self { pid, start: start_of(pid).unwrap_or(0) }
    }

    /// From `PID-START`.
    pub fn parse(text: &str) -> Option<Self> {
        let (pid, start) = text.split_once('-')?;
        Some(Self { pid: pid.parse().ok()?, start: start.parse().ok()? })
    }

    /// As `PID-START`.
    pub fn name(self) -> String {
        format!("{}-{}", self.pid, self.start)
    }

    /// True if that process is still there. Where its start is not known, any process of its number is taken for it.
    pub fn is_alive(self) -> bool {
        match start_of(self.pid) {
            Some(start) if self.start != 0 => start == self.start,
            None if start_of(std::process::id()).is_some() => false,
            _ => exists(self.pid),
        }
    }
}

fn exists(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// Field 22 of `/proc/PID/stat`; the name in field 2 may hold anything, also parentheses. `None` for a process that has
/// ended and whose parent has not taken notice of that yet.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_ascii_whitespace();
    words.next().filter(|state| !matches!(*state, "Z" | "X" | "x"))?;
    words.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_told_apart_by_their_start() {
        let this = Owner::this();
        assert!(this.is_alive() && this.start > 0);
        assert_eq!(Owner::parse(&this.name()), Some(this));
        assert!(!Owner { start: this.start + 1, ..this }.is_alive(), "a later process with this number");
        assert!(Owner { start: 0, ..this }.is_alive(), "made where /proc was missing");
        assert!(!Owner { pid: 4_194_304, start: 0 }.is_alive());
        assert_eq!(Owner::parse("12"), None);
    }
}
