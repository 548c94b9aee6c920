//! A ring buffer of our own, and those of recorders that were killed.

use std::fs::File;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::dir::{TraceDir, remedy};
use super::owner::Owner;
use crate::failure::{Failure, Result};

const PREFIX: &str = "kmt-";
/// How long other processes may have a file of our instance open when it is removed.
const PATIENCE: Duration = Duration::from_secs(1);

/// Our own instance; it is removed when this is dropped.
#[derive(Debug)]
pub struct Instance {
    top: TraceDir,
    name: String,
    dir: TraceDir,
    /// Keeps others from removing it.
    hold: Option<File>,
}

impl Instance {
    /// Makes an instance, named after this process. Nothing is recorded in it yet.
    pub fn create(top: &TraceDir) -> Result<Self> {
        let name = name_of(Owner::this());
        top.make_dir(&name)
            .map_err(|e| Failure::io("creating the instance", &top.file(&name), &e).hint(remedy(&e)))?;
        let dir = top.sub(&name);
        let hold = dir.open("tracing_on", OFlags::RDONLY).ok();
        let instance = Self { top: top.clone(), name, dir, hold };
        instance.dir.write("tracing_on", "0")?;
        Ok(instance)
    }

    /// Directory of the instance.
    pub fn dir(&self) -> &TraceDir {
        &self.dir
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.hold = None;
        if !stop_and_remove(&self.top, &self.name, PATIENCE) {
            kmt_common::message!(
                "warning: {} could not be removed; run `kmt-capture clean` to try again",
                self.dir.path().display()
            );
        }
    }
}

/// Name of the instance from the top level on.
fn name_of(owner: Owner) -> String {
    format!("instances/{PREFIX}{}", owner.name())
}

/// True if it is the name of an instance that a recorder has made.
pub fn is_of_recorder(name: &str) -> bool {
    name.strip_prefix(PREFIX).and_then(Owner::parse).is_some()
}

/// Instances of recorders that are gone: their names from the top level on.
pub fn orphans(top: &TraceDir) -> Vec<String> {
    let names = top.names("instances").into_iter().filter_map(|name| name.into_string().ok());
    let mut found: Vec<String> =
        names.filter(|name| is_orphan(name)).map(|name| format!("instances/{name}")).collect();
    found.sort();
    found
}

fn is_orphan(name: &str) -> bool {
    let owner = name.strip_prefix(PREFIX).and_then(Owner::parse);
    owner.is_some_and(|owner| !owner.is_alive())
}

/// Removes the instance of a recorder that is gone. One that is in use after all (its maker may live where we cannot
/// see it, in another container) is left untouched: the kernel does not remove what is open. `patience`: how long a file of
/// it may be open, as its own guard may be removing it.
pub fn remove_orphan(top: &TraceDir, name: &str, patience: Duration) -> bool {
    remove(top, name, patience)
}

/// Stops and removes the instance of that recorder, which is known to be gone.
pub(super) fn remove_of(top: &TraceDir, owner: Owner, patience: Duration) -> bool {
    let name = name_of(owner);
    !top.has(&name) || stop_and_remove(top, &name, patience)
}

/// Stops everything in the instance and removes it.
fn stop_and_remove(top: &TraceDir, name: &str, patience: Duration) -> bool {
    let dir = top.sub(name);
    for (file, value) in [("tracing_on", "0"), ("current_tracer", "nop"), ("events/enable", "0")] {
        let _ = dir.write(file, value);
    }
    drop(dir);
    remove(top, name, patience)
}

/// Removes it once no process has a file of it open: that is soon, or never.
fn remove(top: &TraceDir, name: &str, patience: Duration) -> bool {
    let start = Instant::now();
    loop {
        match top.remove_dir(name) {
            Ok(()) => return true,
            // Somebody else was faster.
            Err(error) if error.kind() == ErrorKind::NotFound => return true,
            Err(_) if start.elapsed() >= patience => return false,
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orphans_are_those_whose_owner_is_gone() {
        for (name, orphan) in [("kmt-4194304-1", true), ("kmt-x", false), ("mine", false), ("kmt-1", false)] {
            assert_eq!(is_orphan(name), orphan, "{name}");
        }
        assert!(!is_orphan(&format!("kmt-{}", Owner::this().name())));
    }
}
