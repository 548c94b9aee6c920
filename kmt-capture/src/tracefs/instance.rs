//! A ring buffer of our own, and those of recorders that were killed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{TraceDir, remedy};
use crate::failure::{Failure, Result};

/// Who made something: a process, told from a later one with the same number by its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pid: u32,
    /// Start of the process in clock ticks since boot.
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

    /// Whether that process is still there.
    pub fn is_alive(self) -> bool {
        start_of(self.pid) == Some(self.start)
    }
}

/// Field 22 of `/proc/PID/stat`; the name in field 2 may hold anything, also parentheses.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

const PREFIX: &str = "kmt-";

/// Our own instance; it is removed when this is dropped.
#[derive(Debug)]
pub struct Instance {
    dir: TraceDir,
    /// Keeps others from removing it.
    hold: Option<File>,
}

impl Instance {
    /// Makes an instance, named after this process. Nothing is recorded in it yet.
    pub fn create(top: &TraceDir) -> Result<Self> {
        let path = top.file("instances").join(format!("{PREFIX}{}", Owner::this().name()));
        fs::create_dir(&path).map_err(|e| Failure::io("making the instance", &path, &e).hint(remedy(&e)))?;
        let dir = TraceDir::at(&path);
        let hold = File::open(dir.file("tracing_on")).ok();
        let instance = Self { dir, hold };
        instance.dir.write("tracing_on", "0")?;
        Ok(instance)
    }

    /// Its directory.
    pub fn dir(&self) -> &TraceDir {
        &self.dir
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.hold = None;
        if !remove(&self.dir) {
            eprintln!(
                "warning: {} could not be removed; `kmt-capture clean` tries again",
                self.dir.path().display()
            );
        }
    }
}

/// Instances of recorders that are gone.
pub fn orphans(top: &TraceDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(top.file("instances")).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|e| e.path()).filter(|path| is_orphan(path)).collect();
    found.sort();
    found
}

fn is_orphan(path: &Path) -> bool {
    let name = path.file_name().and_then(|n| n.to_str());
    let owner = name.and_then(|n| n.strip_prefix(PREFIX)).and_then(Owner::parse);
    owner.is_some_and(|owner| !owner.is_alive())
}

/// Removes the instance of a recorder that is gone. One that is in use after all (its maker may live where we cannot
/// see it, in another container) is left untouched: the kernel does not remove what is open.
pub fn remove_orphan(path: &Path) -> bool {
    fs::remove_dir(path).is_ok()
}

/// Stops everything in the instance and removes it. Other processes may have a file of it open for a moment.
fn remove(dir: &TraceDir) -> bool {
    for (file, value) in [("tracing_on", "0"), ("current_tracer", "nop"), ("events/enable", "0")] {
        let _ = dir.write(file, value);
    }
    (0..50).any(|attempt| {
        if attempt > 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
        fs::remove_dir(dir.path()).is_ok() || !dir.path().exists()
    })
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
        assert_eq!(Owner::parse("12"), None);
        for (name, orphan) in [("kmt-4194304-1", true), ("kmt-x", false), ("mine", false), ("kmt-1", false)] {
            assert_eq!(is_orphan(Path::new(name)), orphan, "{name}");
        }
        assert!(!is_orphan(Path::new(&format!("kmt-{}", this.name()))));
    }
}
