//! Memory cgroups with a limit, of version 1 or 2, for live tests of what the kernel does where memory is short.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

/// A memory cgroup, removed at the end.
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// With this limit in bytes; `None`: this machine cannot have one.
    pub fn new(bytes: u64) -> Option<Self> {
        let root = Path::new("/sys/fs/cgroup");
        let _ = fs::write(root.join("cgroup.subtree_control"), "+memory");
        for (parent, limit) in [(root.join("memory"), "memory.limit_in_bytes"), (root.into(), "memory.max")] {
            let group = Self(parent.join(format!("kmt-test-{}", std::process::id())));
            let limit = group.0.join(limit);
            // A folder beside the groups of version 1 is none.
            if fs::create_dir(&group.0).is_ok()
                && limit.exists()
                && fs::write(limit, bytes.to_string()).is_ok()
            {
                return Some(group);
            }
        }
        None
    }

    /// Runs a command of sh in it, without output.
    pub fn run(&self, command: &str) -> ExitStatus {
        let script = format!("echo $$ > {}; {command}", self.0.join("cgroup.procs").display());
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
        // The kernel may still account pages of a process that was killed.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}
