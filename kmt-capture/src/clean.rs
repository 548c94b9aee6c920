//! `clean`: removes what a recorder left that was killed.

use std::path::Path;

use crate::failure::{Failure, Outcome, Result};
use crate::output::print;
use crate::tracefs::{self, TraceDir};

/// Puts settings back and removes instances of recorders that are gone; says what was done.
pub fn clean(given: Option<&Path>) -> Result<Outcome> {
    let top = match given {
        Some(path) => Some(TraceDir::at(path)),
        None => tracefs::mounted(),
    };
    let orphans = top.as_ref().map(tracefs::orphans).unwrap_or_default();
    let mut stuck = Vec::new();
    for path in &orphans {
        if tracefs::remove_orphan(path) {
            print(format!("removed {}\n", path.display()).as_bytes())?;
        } else {
            stuck.push(path.display().to_string());
        }
    }
    let mut probes = 0;
    for (top, group) in
        top.iter().flat_map(|top| tracefs::orphan_probes(top).into_iter().map(move |g| (top, g)))
    {
        if tracefs::remove_orphan_probe(top, &group) {
            print(format!("removed the probe {group}\n").as_bytes())?;
            probes += 1;
        } else {
            stuck.push(format!("the probe {group}"));
        }
    }
    // Last: the mount of tracefs may be among it.
    let leftovers = tracefs::leftovers();
    let settings: usize = leftovers.iter().map(|(_, count)| count).sum();
    drop(leftovers);
    if settings > 0 {
        print(format!("put {settings} settings back\n").as_bytes())?;
    }
    if orphans.is_empty() && settings == 0 && probes == 0 && stuck.is_empty() {
        print(b"nothing to clean\n")?;
    }
    if stuck.is_empty() {
        return Ok(Outcome::Done);
    }
    Err(Failure::new(format!("{} cannot be removed", stuck.join(", ")))
        .hint("something has it open: `fuser -v` on its files tells what; or this is not root"))
}
