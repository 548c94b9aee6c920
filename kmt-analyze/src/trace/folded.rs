//! Files with survivors as events and the other objects as sums: what can be computed of them.

use std::path::Path;

use kmt_common::shell;
use kmt_format::read::Trace;

use crate::failure::{Failure, Result};

/// Reports that add the sums to the events, for hints.
pub const REPORTS: &str = "summary, callers, caches, sizes, lifetimes and leaks";

/// Refuses a file of which a command would take a part of the events for all.
pub fn check_all_events(path: &Path, trace: &Trace<'_>) -> Result<()> {
    if !trace.header().folded {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} has the events of survivors alone, and sums of objects that died young: this command needs every event",
        path.display()
    ))
    .hint(format!("{REPORTS} add the sums, such as kmt-analyze callers {}", shell::path(path))))
}

/// Events of the recording that are in the file or in its sums.
pub fn all_events(trace: &Trace<'_>) -> u64 {
    trace.folds().iter().fold(trace.event_count(), |sum, (_, info)| sum.saturating_add(info.events))
}
