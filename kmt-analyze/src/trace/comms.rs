//! Names of tasks over time: a condition on a name is about the name at the time of the event.

use std::collections::HashMap;

use kmt_format::read::Trace;
use kmt_format::schema::EventClass;

use crate::int_hash::IntHash;

/// Names of each task, with their start times.
#[derive(Debug, Default)]
pub struct Comms {
    by_pid: HashMap<i32, Vec<(u64, Vec<u8>)>, IntHash>,
}

/// Fields of an event with the name of a task.
struct Source {
    class: usize,
    pid: usize,
    comm: usize,
    /// Field of the previous name.
    old: Option<usize>,
}

/// System, event, fields of the task, its name, its previous name (include/trace/events/{task,sched}.h, 3.2 to 7.2).
const SOURCES: [(&str, &str, &str, &str, Option<&str>); 4] = [
    ("task", "task_rename", "pid", "newcomm", Some("oldcomm")),
    ("task", "task_newtask", "pid", "comm", None),
    ("sched", "sched_switch", "prev_pid", "prev_comm", None),
    ("sched", "sched_switch", "next_pid", "next_comm", None),
];

impl Comms {
    /// Names of a trace, from its table of tasks and from recorded events.
    pub fn of(trace: &Trace<'_>) -> Self {
        let mut names = Self::default();
        for task in trace.metadata().tasks.iter().filter(|t| !t.comm.is_empty()) {
            names.by_pid.entry(task.pid).or_default().push((task.time, task.comm.to_vec()));
        }
        let sources: Vec<Source> =
            trace.schema().classes().flat_map(|(index, class)| sources(index, class)).collect();
        if !sources.is_empty() {
            names.read(trace, &sources);
        }
        for rows in names.by_pid.values_mut() {
            // The table has no start times of its oldest names; the last of those is used.
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

    fn read(&mut self, trace: &Trace<'_>, sources: &[Source]) {
        let mut merge = trace.merge();
        while let Some(run) = merge.next_run() {
            for event in run.events() {
                for source in sources.iter().filter(|s| s.class == event.class_index()) {
                    let Some(pid) = event.uint(source.pid) else { continue };
                    let rows = self.by_pid.entry(pid as i32).or_default();
                    if let Some(old) = source.old.and_then(|f| event.text(f)) {
                        if !rows.iter().any(|(time, _)| *time < event.time()) {
                            rows.push((0, old.to_vec()));
                        }
                    }
                    let Some(comm) = event.text(source.comm) else { continue };
                    if rows.last().is_none_or(|(_, last)| last != comm) {
                        rows.push((event.time(), comm.to_vec()));
                    }
                }
            }
        }
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

    /// The name of that number.
    pub fn name(&self, pid: i32, number: u16) -> Option<&[u8]> {
        let rows = self.by_pid.get(&pid)?;
        rows.get(usize::from(number)).map(|(_, name)| name.as_slice())
    }

    /// The name of a task at a time.
    pub fn at(&self, pid: i32, time: u64) -> Option<&[u8]> {
        self.name(pid, self.number_at(pid, time))
    }
}

fn sources(index: usize, class: &EventClass) -> impl Iterator<Item = Source> + '_ {
    let sources = SOURCES.iter().filter(|s| s.0 == class.system && s.1 == class.name);
    sources.filter_map(move |(.., pid, comm, old)| {
        Some(Source {
            class: index,
            pid: class.field_named(pid)?,
            comm: class.field_named(comm)?,
            old: old.and_then(|old| class.field_named(old)),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_holds_until_the_next_one() {
        let mut names = Comms::default();
        names.by_pid.insert(7, vec![(0, b"sh".to_vec()), (100, b"cat".to_vec()), (200, b"tail".to_vec())]);
        names.by_pid.insert(8, vec![(50, b"late".to_vec())]);
        let at = |pid, time| names.at(pid, time).map(|n| String::from_utf8_lossy(n).into_owned());
        assert_eq!(at(7, 99).as_deref(), Some("sh"));
        assert_eq!(at(7, 100).as_deref(), Some("cat"));
        assert_eq!(at(7, 1_000).as_deref(), Some("tail"));
        assert_eq!(at(8, 1).as_deref(), Some("late"), "the first name also before the event that tells it");
        assert_eq!(at(9, 1), None);
        assert!(names.changes(7) && !names.changes(8));
    }
}
