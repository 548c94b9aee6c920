//! Names of tasks: of running tasks at the start of a recording, and from events afterwards.

use std::collections::{HashMap, HashSet};
use std::fs;

use kmt_format::kernel::{ByteOrder, parse_saved_cmdlines};
use kmt_format::write::Task;

use crate::naming::{Named, NamingEvents};
use crate::tracefs::TraceDir;

/// Tasks that are remembered at most.
const KNOWN_MAX: usize = 8_192;

/// Watches the events that name tasks.
#[derive(Debug)]
pub struct TaskNames {
    order: ByteOrder,
    naming: NamingEvents,
    /// Offset and size of the id of the running task in every event.
    pid_at: Option<(usize, usize)>,
    last_pid: i32,
    /// Tasks that had events, up to a number of them.
    occurred: HashSet<i32>,
    /// Thread group and last name of each task.
    names: HashMap<i32, KnownTask>,
    /// Names that are not in the file yet.
    pending: Vec<Task>,
    /// Processes whose new threads are wanted, and those threads.
    watched: Vec<i32>,
    threads: Vec<i32>,
}

/// Thread group and last name of a task.
#[derive(Debug)]
struct KnownTask {
    /// Time of the event that named it.
    since: u64,
    tgid: i32,
    comm: Vec<u8>,
}

impl TaskNames {
    /// For events of `dir`.
    pub fn new(dir: &TraceDir, order: ByteOrder, long_size: usize, watched: &[i32]) -> Self {
        let mut naming = NamingEvents::new(order, long_size);
        for (event, _) in NamingEvents::EVENTS {
            let text = dir.read(&format!("events/task/{event}/format"));
            text.iter().for_each(|text| naming.add("task", text));
        }
        Self {
            order,
            pid_at: naming.current_at(),
            naming,
            last_pid: -1,
            occurred: HashSet::new(),
            names: HashMap::new(),
            pending: Vec::new(),
            watched: watched.to_vec(),
            threads: Vec::new(),
        }
    }

    /// Takes in the tasks that are running.
    pub fn running(&mut self) {
        let pending = running_tasks();
        pending.iter().for_each(|task| self.remember(0, task.pid, task.tgid, &task.comm));
        self.pending = pending;
    }

    /// Events of different CPUs arrive in any order: a task's start may arrive after its next name.
    fn remember(&mut self, since: u64, pid: i32, tgid: i32, comm: &[u8]) {
        let is_full = self.names.len() >= KNOWN_MAX;
        match self.names.get_mut(&pid) {
            Some(known) if since < known.since => {
                if known.tgid == 0 {
                    known.tgid = tgid;
                }
            }
            Some(known) => *known = KnownTask { since, tgid, comm: comm.to_vec() },
            None if is_full => {}
            None => {
                self.names.insert(pid, KnownTask { since, tgid, comm: comm.to_vec() });
            }
        }
    }

    /// Takes in the names that are known, for the next file. Where many are known, tasks that ended are forgotten then.
    pub fn again(&mut self) {
        let known = self.names.iter();
        self.pending
            .extend(known.map(|(&pid, task)| Task::new(pid, &*task.comm).tgid(task.tgid).since(task.since)));
        if self.names.len() >= KNOWN_MAX / 2 {
            let running = numbered("/proc").into_iter();
            let running: HashSet<i32> =
                running.flat_map(|process| numbered(&format!("/proc/{process}/task"))).collect();
            self.names.retain(|pid, _| running.contains(pid));
        }
        self.occurred.clear();
        self.last_pid = -1;
    }

    /// Looks at an event.
    #[inline]
    pub fn see(&mut self, time: u64, record: &[u8]) {
        if let Some((offset, size)) = self.pid_at {
            let pid = self.order.uint_at(record, offset, size).unwrap_or(0) as i32;
            if pid != self.last_pid {
                self.last_pid = pid;
                if self.occurred.len() < KNOWN_MAX {
                    self.occurred.insert(pid);
                }
            }
        }
        if let Some(named) = self.naming.read(record) {
            self.name(time, named);
        }
    }

    fn name(&mut self, time: u64, named: Named) {
        let pid = named.pid;
        let tgid = match named.is_thread {
            None => self.group_of(pid),
            Some(false) => pid,
            Some(true) => self.group_of(named.current),
        };
        if named.is_thread.is_some() && tgid != pid && self.watched.contains(&tgid) {
            self.threads.push(pid);
        }
        self.remember(time, pid, tgid, &named.comm);
        self.pending.push(Task::new(pid, named.comm).tgid(tgid).since(time));
    }

    fn group_of(&self, pid: i32) -> i32 {
        self.names.get(&pid).map_or(0, |known| known.tgid)
    }

    /// True if the task may have had an event.
    fn has_occurred(&self, pid: i32) -> bool {
        self.pid_at.is_none() || self.occurred.len() >= KNOWN_MAX || self.occurred.contains(&pid)
    }

    /// Adds the kernel's saved names of tasks that had events, but no name in an event or in /proc. If events were lost
    /// before `lost_until`, adds the names that differ from older ones of an event, since that time: the kernel saves
    /// names when tasks are switched, so events after the loss are better.
    pub fn saved(&mut self, top: &TraceDir, lost_until: Option<u64>) {
        let Ok(saved) = top.read_bytes("saved_cmdlines") else { return };
        for task in parse_saved_cmdlines(&saved) {
            let (time, tgid) = match (self.names.get(&task.pid), lost_until) {
                (None, _) if !self.has_occurred(task.pid) => continue,
                (None, _) => (0, 0),
                (Some(known), Some(time)) if known.comm != task.comm && known.since <= time => {
                    (time, known.tgid)
                }
                _ => continue,
            };
            self.pending.push(Task::new(task.pid, task.comm).tgid(tgid).since(time));
        }
    }

    /// The names that came up since the last call.
    pub fn take(&mut self) -> Vec<Task> {
        core::mem::take(&mut self.pending)
    }

    /// Threads of watched processes that came up since the last call.
    pub fn new_threads(&mut self) -> Vec<i32> {
        core::mem::take(&mut self.threads)
    }

    /// No threads are wanted any more.
    pub fn watch_none(&mut self) {
        self.watched.clear();
    }

    /// How many names came up.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }
}

/// The tasks that are running, by /proc.
pub(crate) fn running_tasks() -> Vec<Task> {
    let mut tasks = Vec::new();
    for process in numbered("/proc") {
        for thread in numbered(&format!("/proc/{process}/task")) {
            let Ok(mut comm) = fs::read(format!("/proc/{process}/task/{thread}/comm")) else { continue };
            comm.truncate(comm.len().saturating_sub(1));
            plain_worker_name(&mut comm);
            tasks.push(Task::new(thread, comm).tgid(process));
        }
    }
    tasks
}

/// /proc adds to a worker's name what it does (`wq_worker_comm`, kernel/workqueue.c): `kworker/1:1-events`, and so to a
/// rescuer's. Its own name has neither `-` nor `+` after the CPU.
fn plain_worker_name(comm: &mut Vec<u8>) {
    if comm.starts_with(b"kworker/") && !comm.starts_with(b"kworker/R-") {
        let end = comm.iter().position(|b| matches!(b, b'-' | b'+')).unwrap_or(comm.len());
        comm.truncate(end);
    }
    comm.truncate(15);
}

/// True if that number is a process, not one of its threads.
pub fn is_process(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Tgid:").is_some_and(|t| t.trim() == pid.to_string()))
}

/// Entries of a directory whose names are numbers.
pub fn numbered(path: &str) -> Vec<i32> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLONE_THREAD: u64 = 0x0001_0000;

    const NEWTASK: &str = "name: task_newtask\nID: 7\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:char comm[16];\toffset:12;\tsize:16;\tsigned:0;\n\
        \tfield:unsigned long clone_flags;\toffset:32;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n";

    fn record(current: i32, pid: i32, comm: &str, flags: u64) -> Vec<u8> {
        let mut out = vec![0; 40];
        out[..2].copy_from_slice(&7u16.to_le_bytes());
        out[4..8].copy_from_slice(&current.to_le_bytes());
        out[8..12].copy_from_slice(&pid.to_le_bytes());
        out[12..12 + comm.len()].copy_from_slice(comm.as_bytes());
        out[32..].copy_from_slice(&flags.to_le_bytes());
        out
    }

    #[test]
    fn new_tasks_have_names_and_groups() {
        let dir = std::env::temp_dir().join(format!("kmt-tasks-{}", std::process::id()));
        fs::create_dir_all(dir.join("events/task/task_newtask")).unwrap();
        fs::write(dir.join("events/task/task_newtask/format"), NEWTASK).unwrap();
        let mut names = TaskNames::new(&TraceDir::at(&dir), ByteOrder::Little, 8, &[50]);
        fs::remove_dir_all(&dir).unwrap();
        names.see(1, &record(1, 50, "sh", 0));
        names.see(2, &record(50, 51, "worker", CLONE_THREAD));
        names.see(3, &[8, 0, 0, 0]);
        names.see(4, &[7, 0]);
        assert_eq!((names.new_threads(), names.new_threads()), (vec![51], vec![]));
        let rows: Vec<_> = names.take().into_iter().map(|t| (t.time, t.pid, t.tgid, t.comm)).collect();
        assert_eq!(rows, [(1, 50, 50, b"sh".to_vec()), (2, 51, 50, b"worker".to_vec())]);
    }

    #[test]
    fn a_start_that_arrives_late_does_not_replace_a_later_name() {
        let dir = std::env::temp_dir().join(format!("kmt-tasks-late-{}", std::process::id()));
        fs::create_dir_all(dir.join("events/task/task_newtask")).unwrap();
        fs::write(dir.join("events/task/task_newtask/format"), NEWTASK).unwrap();
        fs::write(dir.join("saved_cmdlines"), "51 ip\n").unwrap();
        let top = TraceDir::at(&dir);
        let mut names = TaskNames::new(&top, ByteOrder::Little, 8, &[]);
        names.see(200, &record(50, 51, "ip", 0));
        names.see(100, &record(50, 51, "python3", 0));
        names.take();
        // The last name is known: events that were lost changed nothing.
        names.saved(&top, Some(150));
        fs::remove_dir_all(&dir).unwrap();
        assert!(names.take().is_empty());
    }

    #[test]
    fn the_next_file_has_the_names_that_are_known() {
        let dir = std::env::temp_dir().join(format!("kmt-tasks-again-{}", std::process::id()));
        fs::create_dir_all(dir.join("events/task/task_newtask")).unwrap();
        fs::write(dir.join("events/task/task_newtask/format"), NEWTASK).unwrap();
        let mut names = TaskNames::new(&TraceDir::at(&dir), ByteOrder::Little, 8, &[]);
        fs::remove_dir_all(&dir).unwrap();
        names.see(7, &record(1, 50, "sh", 0));
        let first = names.take();
        names.again();
        assert_eq!(names.take(), first);
    }

    #[test]
    fn workers_have_their_own_name() {
        for (name, own) in [
            ("kworker/1:1-events_unbound", "kworker/1:1"),
            ("kworker/u8:3+flush-8:0", "kworker/u8:3"),
            ("kworker/R-netns", "kworker/R-netns"),
            ("a-b+c", "a-b+c"),
        ] {
            let mut comm = name.as_bytes().to_vec();
            plain_worker_name(&mut comm);
            assert_eq!(comm, own.as_bytes());
        }
    }
}
