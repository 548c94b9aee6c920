//! Answers for files with survivors as events and the other objects as sums: reports that add the sums say for which selections
//! they can, the others refuse.

use crate::pass::condition::Key;
use crate::pass::selection::Selection;
use crate::trace::folded::{REMEDY, REPORTS};

/// Why a report that adds sums cannot answer for a selection; `None`: it can.
pub fn needs_events(selection: &Selection) -> Option<String> {
    let by_task = !selection.is_of_any_task() || !selection.cpus.is_empty() || selection.without_recorder;
    let keys = [Key::Pid, Key::Comm, Key::Cgroup, Key::Cpu, Key::Lifetime, Key::Pfn];
    (by_task || keys.iter().any(|key| selection.has_term_on(*key))).then(|| {
        format!(
            "the sums of objects that died young have no task, CPU, frame or single lifetime to select by: {REMEDY}"
        )
    })
}

/// Why a report that does not add sums has no answer.
pub fn not_of_sums(title: &str) -> String {
    format!(
        "{title}: this file has the events of survivors alone, and sums of objects that died young: {REMEDY}. {REPORTS} add the sums"
    )
}
