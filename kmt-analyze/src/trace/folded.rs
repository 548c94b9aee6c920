//! Files with survivors as events and the other objects as sums: what can be computed of them.

use std::path::Path;

use kmt_common::shell;
use kmt_format::read::Trace;

use crate::failure::{Failure, Result};
use crate::pass::condition::Key;
use crate::pass::selection::Selection;

/// Reports that add the sums to the events, for hints.
const REPORTS: &str = "summary, callers, caches, sizes, lifetimes and leaks";

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

/// Why a report that adds sums cannot answer for a selection; `None`: it can.
pub fn needs_events(selection: &Selection) -> Option<String> {
    let by_task = !selection.is_of_any_task() || !selection.cpus.is_empty() || selection.without_recorder;
    let keys = [Key::Pid, Key::Comm, Key::Cgroup, Key::Cpu, Key::Lifetime, Key::Pfn];
    (by_task || keys.iter().any(|key| selection.has_term_on(*key))).then(|| {
        "the sums of objects that died young have no task, CPU, frame or single lifetime to select by"
            .to_owned()
    })
}

/// Why a report that does not add sums has no answer.
pub fn not_of_sums(title: &str) -> String {
    format!(
        "{title}: this file has the events of survivors alone, and sums of objects that died young; {REPORTS} add the sums"
    )
}
