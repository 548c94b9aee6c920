//! The black box: a ring buffer that keeps the newest events, is not read while it waits, and is written to a file when a
//! condition holds.
//!
//! `condition` has the conditions of `--stop-when`, `triggers` those that the kernel checks at an event, `polls` those that the
//! recorder reads, `pace` how often, `kernel_log`, `cgroup` and `state` what is stored beside the events, `oom_score` the protection from the OOM killer.

mod cgroup;
mod condition;
mod kernel_log;
mod oom_score;
mod pace;
mod polls;
mod state;
mod triggers;

use std::path::PathBuf;
use std::time::Duration;

pub use condition::{Condition, Pressure};
pub use kernel_log::KernelLog;
pub use oom_score::OomScore;
pub use pace::Pace;
pub use polls::Polls;
pub use state::State;
pub use triggers::Triggers;

/// Size of the ring buffers of all CPUs together, where `--ring` has none.
pub const SIZE_DEFAULT: &str = "64M";

/// Options of a black box.
#[derive(Debug, Clone, Default)]
pub struct BlackBoxOptions {
    /// Bytes of the ring buffers of all CPUs together.
    pub size: u64,
    /// Conditions that end the wait.
    pub stop_when: Vec<Condition>,
    /// How long events are recorded after a condition that the recorder reads.
    pub after: Duration,
    /// True if the wait begins again after a file was written.
    pub rearm: bool,
    /// Number of files that are kept; `None`: all.
    pub max_files: Option<u32>,
    /// True if this is a wait after another one: a condition that holds already has its file.
    pub is_again: bool,
}

impl BlackBoxOptions {
    /// The cgroup whose pressure is watched.
    pub fn cgroup(&self) -> Option<&str> {
        self.stop_when.iter().find_map(|condition| match condition {
            Condition::Pressure(pressure) => pressure.cgroup.as_deref(),
            _ => None,
        })
    }

    /// Bytes of each CPU's ring buffer.
    pub fn of_cpu(&self, cpus: usize) -> u64 {
        self.size / (cpus.max(1) as u64)
    }
}

/// Where the kernel shows the memory pressure of the machine, or of a cgroup (a path from the cgroup file system on).
fn pressure_file(cgroup: Option<&str>) -> PathBuf {
    match cgroup {
        None => PathBuf::from("/proc/pressure/memory"),
        Some(path) if path.starts_with("/sys/") => PathBuf::from(path).join("memory.pressure"),
        Some(path) => {
            let path = path.trim_start_matches('/');
            // Where both hierarchies are mounted, the unified one has the pressure.
            let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
            let files = roots.map(|root| PathBuf::from(root).join(path).join("memory.pressure"));
            files.iter().find(|file| file.exists()).unwrap_or(&files[0]).clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_that_of_all_cpus() {
        let options = BlackBoxOptions { size: 64 << 20, ..BlackBoxOptions::default() };
        assert_eq!(options.of_cpu(4), 16 << 20);
        assert_eq!(options.of_cpu(0), 64 << 20);
    }

    #[test]
    fn pressure_is_that_of_the_machine_or_of_a_cgroup() {
        assert_eq!(pressure_file(None), PathBuf::from("/proc/pressure/memory"));
        let given = pressure_file(Some("/sys/fs/cgroup/x"));
        assert_eq!(given, PathBuf::from("/sys/fs/cgroup/x/memory.pressure"));
        let missing = pressure_file(Some("kmt-no-such-group"));
        assert_eq!(missing, PathBuf::from("/sys/fs/cgroup/kmt-no-such-group/memory.pressure"));
    }
}
