//! Tasks that a task has started, and those that they have started.

use std::collections::HashSet;

use kmt_format::read::Trace;
use kmt_format::schema::EventClass;

use super::rare_events::rare_events;

/// Threads and descendants of the tasks for which `is_root` is true, by the events of new tasks. A task is judged by its
/// id and the time at which it starts another. A thread belongs to the task that starts it.
pub fn descendants(trace: &Trace<'_>, is_root: impl Fn(i32, u64) -> bool) -> HashSet<i32> {
    let mut found = HashSet::new();
    rare_events(trace, is_start, |event| {
        let parent = event.pid();
        let pid = event.class().field_named("pid").and_then(|field| event.uint(field));
        if let Some(pid) = pid.filter(|_| found.contains(&parent) || is_root(parent, event.time())) {
            found.insert(pid as i32);
        }
    });
    found
}

/// True if starts of tasks were recorded.
pub fn has_starts(trace: &Trace<'_>) -> bool {
    trace.schema().classes().any(|(_, class)| is_start(class))
}

fn is_start(class: &EventClass) -> bool {
    class.system == "task" && class.name == "task_newtask"
}
