//! Names of tasks over time: the name in a row or a condition is the one at the time of the event.
//!
//! The kernel records the start of a task on one CPU and its next name on another. The last row or event of a file need
//! not be the latest, so everything is sorted by time.

use std::collections::HashMap;

use kmt_format::read::{Event, Trace};
use kmt_format::schema::EventClass;

use super::rare_events::rare_events;
use crate::int_hash::IntHash;

/// Names of each task, with their start times.
#[derive(Debug, Default)]
pub struct Comms {
    by_pid: HashMap<i32, Vec<(u64, Vec<u8>)>, IntHash>,
}

/// Fields of an event with the name of a task.
struct NameSource {
    class: usize,
    /// Field of the task; `None`: the running task.
    pid: Option<usize>,
    comm: usize,
    /// Field of the previous name.
    old: Option<usize>,
}

/// System, event, fields of the task, its name, its previous name (include/trace/events/{task,sched}.h, 3.2 to 7.2).
/// Without a `pid` in task_rename it is the running task.
const SOURCES: [(&str, &str, &str, &str, Option<&str>); 4] = [
    ("task", "task_rename", "pid", "newcomm", Some("oldcomm")),
    ("task", "task_newtask", "pid", "comm", None),
    ("sched", "sched_switch", "prev_pid", "prev_comm", None),
    ("sched", "sched_switch", "next_pid", "next_comm", None),
];

/// Names found in events.
#[derive(Default)]
struct FoundName {
    /// Task, time, name.
    rows: Vec<(i32, u64, Vec<u8>)>,
    last: HashMap<i32, Vec<u8>, IntHash>,
    /// Previous names of tasks whose first event is a rename.
    before: HashMap<i32, Vec<u8>, IntHash>,
}

impl Comms {
    /// Names of a trace, from its table of tasks and, if that may lack some, from recorded events.
    pub fn of(trace: &Trace<'_>) -> Self {
        let mut names = Self::default();
        for task in trace.metadata().tasks.iter().filter(|t| !t.comm.is_empty()) {
            names.add(task.pid, task.time, task.comm.to_vec());
        }
        if !has_all_names(trace) {
            let found = FoundName::of(trace);
            // The kernel's `trace` file has the last name of a task in all of its lines.
            if trace.metadata().text("source") == Some("ftrace text") {
                names.by_pid.retain(|pid, _| !found.last.contains_key(pid));
            }
            names.merge(found);
        }
        for rows in names.by_pid.values_mut() {
            rows.sort_by_key(|(time, _)| *time);
            rows.dedup_by(|next, first| {
                let is_same = next.1 == first.1 || next.0 == first.0;
                if is_same && next.0 == first.0 {
                    first.1 = std::mem::take(&mut next.1);
                }
                is_same
            });
        }
        names
    }

    fn add(&mut self, pid: i32, time: u64, name: Vec<u8>) {
        self.by_pid.entry(pid).or_default().push((time, name));
    }

    fn merge(&mut self, found: FoundName) {
        for (pid, old) in found.before {
            // saved_cmdlines has last names without a time: the event is better.
            self.by_pid.entry(pid).or_default().retain(|(time, _)| *time > 0);
            self.add(pid, 0, old);
        }
        found.rows.into_iter().for_each(|(pid, time, name)| self.add(pid, time, name));
    }

    /// True if a task had more than one name.
    pub fn changes(&self, pid: i32) -> bool {
        self.by_pid.get(&pid).is_some_and(|rows| rows.len() > 1)
    }

    /// Number of a task's name at a time; the first name also holds before its event.
    pub fn number_at(&self, pid: i32, time: u64) -> u16 {
        let rows = self.by_pid.get(&pid).map(Vec::as_slice).unwrap_or_default();
        let after = rows.partition_point(|(since, _)| *since <= time);
        u16::try_from(after.saturating_sub(1)).unwrap_or(u16::MAX)
    }

    /// The name of that number; the idle task always has one.
    pub fn name(&self, pid: i32, number: u16) -> Option<&[u8]> {
        let rows = self.by_pid.get(&pid).map(Vec::as_slice).unwrap_or_default();
        let name = rows.get(usize::from(number)).map(|(_, name)| name.as_slice());
        name.or((pid == 0).then_some(b"<idle>"))
    }

    /// The name of that number, `<...>` if it is unknown.
    pub fn shown(&self, pid: i32, number: u16) -> &[u8] {
        self.name(pid, number).unwrap_or(b"<...>")
    }

    /// The name of a task at a time.
    pub fn at(&self, pid: i32, time: u64) -> Option<&[u8]> {
        self.name(pid, self.number_at(pid, time))
    }

    /// The name of a task at a time, `<...>` if it is unknown.
    pub fn shown_at(&self, pid: i32, time: u64) -> &[u8] {
        self.at(pid, time).unwrap_or(b"<...>")
    }

    /// All tasks with names, by id, each with its name at a time.
    pub fn all_at(&self, time: u64) -> Vec<(i32, &[u8])> {
        let mut pids: Vec<i32> = self.by_pid.keys().copied().collect();
        pids.push(0);
        pids.sort_unstable();
        pids.dedup();
        pids.into_iter().map(|pid| (pid, self.shown_at(pid, time))).collect()
    }
}

/// True if the table of tasks has every name that events have: a live recorder writes a row for each of them.
fn has_all_names(trace: &Trace<'_>) -> bool {
    let metadata = trace.metadata();
    let is_ours = metadata.text("writer").is_some_and(|writer| writer.starts_with("kmt-capture "));
    let is_recorded = |name| trace.schema().classes().any(|(_, c)| c.system == "task" && c.name == name);
    is_ours
        && metadata.text("recorder.pid").is_some()
        && trace.is_finished()
        && trace.damage_count() == 0
        && is_recorded("task_newtask")
        && is_recorded("task_rename")
}

impl FoundName {
    /// Names in events of a trace. Reads only the chunks that may have such events.
    fn of(trace: &Trace<'_>) -> Self {
        let mut found = Self::default();
        let schema = trace.schema();
        let mut all: HashMap<usize, Vec<NameSource>, IntHash> = HashMap::default();
        for source in schema.classes().flat_map(|(index, class)| sources(index, class)) {
            all.entry(source.class).or_default().push(source);
        }
        rare_events(trace, is_naming, |event| {
            let sources = all.get(&event.class_index());
            sources.into_iter().flatten().for_each(|source| found.event(source, event));
        });
        found
    }

    fn event(&mut self, source: &NameSource, event: &Event<'_>) {
        let pid = match source.pid {
            None => event.pid(),
            Some(field) => event.uint(field).map_or(0, |pid| pid as i32),
        };
        // Idle tasks have the id 0 and a name for each CPU.
        let Some(comm) = event.text(source.comm).filter(|comm| pid != 0 && !comm.is_empty()) else { return };
        let last = self.last.get(&pid);
        if last.is_some_and(|last| last == comm) {
            return;
        }
        if let (None, Some(old)) = (last, source.old.and_then(|field| event.text(field))) {
            self.before.insert(pid, old.to_vec());
        }
        self.last.insert(pid, comm.to_vec());
        self.rows.push((pid, event.time(), comm.to_vec()));
    }
}

fn is_naming(class: &EventClass) -> bool {
    SOURCES.iter().any(|source| source.0 == class.system && source.1 == class.name)
}

fn sources(index: usize, class: &EventClass) -> impl Iterator<Item = NameSource> + '_ {
    let sources = SOURCES.iter().filter(|s| s.0 == class.system && s.1 == class.name);
    sources.filter_map(move |(_, event, pid, comm, old)| {
        let field = class.field_named(pid);
        Some(NameSource {
            class: index,
            pid: if *event == "task_rename" { field } else { Some(field?) },
            comm: class.field_named(comm)?,
            old: old.and_then(|old| class.field_named(old)),
        })
    })
}

#[cfg(test)]
mod tests;
