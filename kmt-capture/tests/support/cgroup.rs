//! Memory cgroups with a limit, of version 1 or 2, for live tests of what the kernel does where memory is short.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// Groups of this program so far.
static GROUPS: AtomicU32 = AtomicU32::new(0);

/// A memory cgroup, removed at the end. One of version 1 has a group of version 2 beside it, if there are any: that has the
/// pressure.
pub struct Cgroup {
    memory: PathBuf,
    beside: Option<PathBuf>,
}

impl Cgroup {
    /// With this limit in bytes; `None`: this machine cannot have one.
    pub fn new(bytes: u64) -> Option<Self> {
        let root = Path::new("/sys/fs/cgroup");
        let _ = fs::write(root.join("cgroup.subtree_control"), "+memory");
        let name = format!("kmt-test-{}-{}", std::process::id(), GROUPS.fetch_add(1, Ordering::Relaxed));
        for (parent, limit) in [(root.join("memory"), "memory.limit_in_bytes"), (root.into(), "memory.max")] {
            let mut group = Self { memory: parent.join(&name), beside: None };
            let limit = group.memory.join(limit);
            // A folder beside the groups of version 1 is none.
            if fs::create_dir(&group.memory).is_ok()
                && limit.exists()
                && fs::write(limit, bytes.to_string()).is_ok()
            {
                let beside = root.join("unified").join(&name);
                if !group.memory.join("memory.pressure").exists() && fs::create_dir(&beside).is_ok() {
                    group.beside = Some(beside);
                }
                return Some(group);
            }
        }
        None
    }

    /// The group of version 2, if it has pressure.
    pub fn with_pressure(&self) -> Option<&Path> {
        let mut groups = [Some(&self.memory), self.beside.as_ref()].into_iter().flatten();
        groups.find(|group| group.join("memory.pressure").exists()).map(PathBuf::as_path)
    }

    /// The command of sh that moves itself into it.
    pub fn enter(&self) -> String {
        let groups = [Some(&self.memory), self.beside.as_ref()].into_iter().flatten();
        groups.map(|group| format!("echo $$ > {}; ", group.join("cgroup.procs").display())).collect()
    }

    /// The most bytes that it has had, and how often its limit was reached, as the kernel has them.
    pub fn peak(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.memory.join(name)).ok();
        let peak = read("memory.max_usage_in_bytes").or_else(|| read("memory.peak")).unwrap_or_default();
        let reached = read("memory.failcnt").or_else(|| read("memory.events")).unwrap_or_default();
        format!("{} (limit reached: {})", peak.trim(), reached.trim().replace('\n', ", "))
    }

    /// Runs a command of sh in it, without output.
    pub fn run(&self, command: &str) -> ExitStatus {
        let script = format!("{}{command}", self.enter());
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).stdout(Stdio::null()).stderr(Stdio::null());
        shell.status().expect("sh runs")
    }

    /// Runs a process in it that the OOM killer kills; true if it was killed.
    pub fn kill_one(&self) -> bool {
        // One line without an end, which tail keeps as a whole.
        !self.run("exec tail -n 1 < /dev/zero").success()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for group in self.beside.iter().chain([&self.memory]) {
            // The kernel may still account pages of a process that was killed.
            let _ = (0..100).any(|_| {
                fs::remove_dir(group).is_ok() || {
                    thread::sleep(Duration::from_millis(20));
                    false
                }
            });
        }
    }
}
