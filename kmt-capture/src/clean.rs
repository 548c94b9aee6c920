//! `clean`: removes the remains of killed recorders.

use std::path::Path;
use std::time::Duration;

use crate::failure::{Failure, Outcome, Result};
use crate::output::print;
use crate::tracefs::{self, TraceDir};
use kmt_common::text::count;

/// How long the guard of a recorder, or another `clean`, may take: the kernel switches events off in steps that all CPUs
/// must have seen, which takes long on a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);

/// Restores settings and removes instances of recorders that ended; prints each action.
pub fn clean(given: Option<&Path>) -> Result<Outcome> {
    let top = match given {
        Some(path) => Some(TraceDir::at(path)),
        None => tracefs::mounted(),
    };
    let orphans = top.as_ref().map(tracefs::orphans).unwrap_or_default();
    let (mut done, mut stuck) = (Vec::new(), Vec::new());
    if let Some(top) = &top {
        for name in &orphans {
            let path = top.file(name);
            match tracefs::remove_orphan(top, name, PATIENCE) {
                true => done.push(format!("removed {}", path.display())),
                false => stuck.push(path.display().to_string()),
            }
        }
        for group in tracefs::orphan_probes(top) {
            match tracefs::remove_orphan_probe(top, &group) {
                true => done.push(format!("removed the probe {group}")),
                false => stuck.push(format!("the probe {group}")),
            }
        }
    }
    // Last: the mount of tracefs may be among it.
    let settings: usize = tracefs::put_back(None, top.as_ref()).iter().sum();
    if settings > 0 {
        done.push(format!("restored {}", count(settings as u64, "setting")));
    }
    if done.is_empty() && stuck.is_empty() {
        done.push("nothing to clean".to_owned());
    }
    // All of it is done before a line is printed: printing may fail.
    done.iter().try_for_each(|line| print(format!("{line}\n").as_bytes()).map(drop))?;
    if stuck.is_empty() {
        return Ok(Outcome::Done);
    }
    Err(Failure::new(format!("{} cannot be removed", stuck.join(", ")))
        .hint("run as root; `fuser -v` on its files lists the processes that use it"))
}
