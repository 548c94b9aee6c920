//! Cgroups of tasks over time: from the file's table, and from events of tasks that start and that are moved.
//!
//! A thread is in the cgroup of its process, and a new process in that of its parent (`cgroup_post_fork`,
//! kernel/cgroup/cgroup.c, 3.15 to 7.2), unless CLONE_INTO_CGROUP gives another one, which no event shows. Names and cgroups are
//! kept as far as a pass needs them.

use std::collections::HashMap;

use indexmap::IndexSet;
use kmt_format::read::{Event, Trace};
use kmt_format::schema::EventClass;

use super::comms::{Comms, rare_events};
use crate::int_hash::IntHash;
use crate::source::{PATH_MAX, paths_above};

/// include/uapi/linux/sched.h, 2.6.12 and 5.7 to 7.2.
const CLONE_THREAD: u64 = 0x1_0000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Cgroups of each process, with their start times. Paths are cut where they are longer than any of Linux.
#[derive(Debug, Default)]
pub struct Cgroups {
    by_pid: HashMap<i32, Vec<(u64, u32)>, IntHash>,
    /// Process of each thread that is not its first.
    leaders: HashMap<i32, i32, IntHash>,
    paths: IndexSet<Vec<u8>, IntHash>,
    /// Hierarchy of the memory controller.
    hierarchy: u32,
}

/// A row of the file: process, time, path.
type Row = (i32, u64, Vec<u8>);

impl Cgroups {
    /// Cgroups of a trace.
    pub fn of(trace: &Trace<'_>) -> Self {
        let (mut rows, hierarchy) = rows(trace);
        rows.sort_by_key(|row| row.1);
        let mut cgroups = Self { hierarchy, ..Self::default() };
        for task in trace.metadata().tasks.iter().filter(|task| task.tgid != 0 && task.tgid != task.pid) {
            cgroups.leaders.insert(task.pid, task.tgid);
        }
        let mut rows = rows.into_iter().peekable();
        rare_events(trace, is_about_cgroups, |event| {
            while let Some((pid, time, path)) = rows.next_if(|row| row.1 <= event.time()) {
                cgroups.set(pid, time, &path);
            }
            cgroups.event(event);
        });
        rows.for_each(|(pid, time, path)| cgroups.set(pid, time, &path));
        cgroups
    }

    /// True if no cgroup of any task is known.
    pub fn is_empty(&self) -> bool {
        self.by_pid.is_empty()
    }

    fn set(&mut self, pid: i32, time: u64, path: &[u8]) {
        let path = path.get(..PATH_MAX).unwrap_or(path);
        let number = self.paths.insert_full(path.to_vec()).0;
        self.add(pid, time, number as u32);
    }

    fn add(&mut self, pid: i32, time: u64, number: u32) {
        let rows = self.by_pid.entry(pid).or_default();
        match rows.last_mut() {
            Some(last) if last.1 == number => {}
            // Where a clock steps back, the earlier row gives way.
            Some(last) if last.0 >= time => *last = (last.0, number),
            _ => rows.push((time, number)),
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        let class = event.class();
        let number = |name: &str| event.uint(class.field_named(name)?);
        let Some(pid) = number("pid").map(|pid| pid as i32) else { return };
        if class.name == "cgroup_attach_task" {
            let path = class.field_named("dst_path").and_then(|field| event.text(field));
            if let Some(path) = path.filter(|_| number("dst_root") == Some(self.hierarchy.into())) {
                let path = path.to_vec();
                self.set(pid, event.time(), &path);
            }
            return;
        }
        let flags = number("clone_flags").unwrap_or(0);
        let parent = self.leader(event.pid());
        if flags & CLONE_THREAD != 0 {
            self.leaders.insert(pid, parent);
            return;
        }
        self.leaders.remove(&pid);
        let number = self.by_pid.get(&parent).and_then(|rows| rows.last()).map(|row| row.1);
        if let Some(number) = number.filter(|_| flags & CLONE_INTO_CGROUP == 0) {
            self.add(pid, event.time(), number);
        }
    }

    fn leader(&self, pid: i32) -> i32 {
        self.leaders.get(&pid).copied().unwrap_or(pid)
    }

    fn rows(&self, pid: i32) -> &[(u64, u32)] {
        self.by_pid.get(&self.leader(pid)).map(Vec::as_slice).unwrap_or_default()
    }

    /// Time until which a task stays in the cgroup of a time; `u64::MAX`: for good.
    pub fn same_until(&self, pid: i32, time: u64) -> u64 {
        let rows = self.rows(pid);
        rows.get(rows.partition_point(|(since, _)| *since <= time)).map_or(u64::MAX, |next| next.0)
    }

    /// Number of a task's cgroup at a time; the first one also holds before its row.
    pub fn number_at(&self, pid: i32, time: u64) -> u16 {
        let after = self.rows(pid).partition_point(|(since, _)| *since <= time);
        u16::try_from(after.saturating_sub(1)).unwrap_or(u16::MAX)
    }

    /// Path of the task's cgroup of that number; `None`: unknown.
    pub fn path(&self, pid: i32, number: u16) -> Option<&[u8]> {
        let (_, path) = self.rows(pid).get(usize::from(number))?;
        self.paths.get_index(*path as usize).map(Vec::as_slice)
    }
}

fn is_about_cgroups(class: &EventClass) -> bool {
    matches!(
        (class.system.as_str(), class.name.as_str()),
        ("task", "task_newtask") | ("cgroup", "cgroup_attach_task")
    )
}

/// Rows of the hierarchy with most of them, and its number: version 2 or, before, that of the memory controller. Files of
/// other programs have lines of `PID PATH` instead.
fn rows(trace: &Trace<'_>) -> (Vec<Row>, u32) {
    let metadata = trace.metadata();
    let mut counts: HashMap<u32, usize> = HashMap::new();
    metadata.cgroups.iter().for_each(|row| *counts.entry(row.hierarchy).or_default() += 1);
    let hierarchy = counts.into_iter().max_by_key(|(number, rows)| (*rows, u32::MAX - number));
    let hierarchy = hierarchy.map_or(0, |(number, _)| number);
    let table = metadata.cgroups.iter().filter(|row| row.hierarchy == hierarchy && !row.path.is_empty());
    let mut rows: Vec<Row> = table.map(|row| (row.pid, row.time, row.path.to_vec())).collect();
    let text = ["cgroups.before", "cgroups"].iter().find_map(|name| metadata.attachment(name));
    for line in text.unwrap_or_default().split(|&b| b == b'\n') {
        let Some(space) = line.iter().position(|&b| b == b' ') else { continue };
        let (pid, path) = line.split_at(space);
        let pid = std::str::from_utf8(pid).ok().and_then(|pid| pid.parse().ok());
        rows.extend(pid.zip(path.get(1..)).map(|(pid, path)| (pid, 0, path.to_vec())));
    }
    (rows, hierarchy)
}

/// A path and the paths above it.
pub fn with_parents(path: &str) -> impl Iterator<Item = &str> {
    let root = (path.len() > 1).then_some("/");
    root.into_iter().chain(paths_above(path).skip(1)).chain([path])
}

/// Names and cgroups; `None`: not needed.
#[derive(Debug, Clone, Copy, Default)]
pub struct TaskStates<'t> {
    pub names: Option<&'t Comms>,
    pub cgroups: Option<&'t Cgroups>,
}

impl TaskStates<'_> {
    /// True if neither is needed.
    pub fn is_empty(&self) -> bool {
        self.names.is_none() && self.cgroups.is_none()
    }

    /// Time until which a task keeps the name and the cgroup of a time; `u64::MAX`: for good.
    pub fn same_until(&self, pid: i32, time: u64) -> u64 {
        let name = self.names.map_or(u64::MAX, |names| names.same_until(pid, time));
        name.min(self.cgroups.map_or(u64::MAX, |cgroups| cgroups.same_until(pid, time)))
    }

    /// Numbers of a task's name and cgroup at a time; 0 for what is not needed.
    pub fn numbers_at(&self, pid: i32, time: u64) -> (u16, u16) {
        let name = self.names.map_or(0, |names| names.number_at(pid, time));
        (name, self.cgroups.map_or(0, |cgroups| cgroups.number_at(pid, time)))
    }
}

#[cfg(test)]
mod tests {
    use kmt_format::kernel::ByteOrder;
    use kmt_format::tables::CgroupRecord;
    use kmt_format::write::{Task, Writer, WriterOptions};

    use super::*;

    const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

    /// An event that starts a task: time, parent, task, flags.
    fn starts(time: u64, parent: i32, pid: i32, flags: u64) -> (u64, Vec<u8>) {
        let mut record = [7u16.to_le_bytes(), [0; 2]].concat();
        record.extend(parent.to_le_bytes());
        record.extend(pid.to_le_bytes());
        record.extend([0; 4]);
        record.extend(flags.to_le_bytes());
        (time, record)
    }

    /// An event that moves a task.
    fn moves(time: u64, pid: i32, root: u32, path: &str) -> (u64, Vec<u8>) {
        let mut record = [8u16.to_le_bytes(), [0; 2]].concat();
        record.extend(1i32.to_le_bytes());
        record.extend(root.to_le_bytes());
        record.extend(pid.to_le_bytes());
        let mut text = path.as_bytes().to_vec();
        text.resize(16, 0);
        record.extend(text);
        (time, record)
    }

    fn cgroups(table: &[CgroupRecord<'_>], tasks: &[Task], events: &[(u64, Vec<u8>)]) -> Cgroups {
        let mut writer = Writer::new(WriterOptions::new(ByteOrder::Little, 8)).unwrap();
        let newtask = format!(
            "name: task_newtask\nID: 7\nformat:\n{COMMON}\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n\
             \tfield:unsigned long clone_flags;\toffset:16;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n"
        );
        let attach = format!(
            "name: cgroup_attach_task\nID: 8\nformat:\n{COMMON}\tfield:int dst_root;\toffset:8;\tsize:4;\tsigned:1;\n\
             \tfield:int pid;\toffset:12;\tsize:4;\tsigned:1;\n\
             \tfield:char dst_path[16];\toffset:16;\tsize:16;\tsigned:0;\n\nprint fmt: \"\"\n"
        );
        writer.add_format("task", &newtask).unwrap();
        writer.add_format("cgroup", &attach).unwrap();
        writer.add_cgroups(table).unwrap();
        writer.add_tasks(tasks).unwrap();
        for (time, record) in events {
            writer.add_event(0, *time, record).unwrap();
        }
        Cgroups::of(&Trace::open(&writer.finish().unwrap()).unwrap())
    }

    fn row(pid: i32, path: &'static str, hierarchy: u32) -> CgroupRecord<'static> {
        let mut row = CgroupRecord::new(pid, path.as_bytes());
        row.hierarchy = hierarchy;
        row
    }

    fn at(cgroups: &Cgroups, pid: i32, time: u64) -> String {
        let path = cgroups.path(pid, cgroups.number_at(pid, time));
        path.map_or("?".to_owned(), |path| String::from_utf8_lossy(path).into_owned())
    }

    #[test]
    fn tasks_inherit_and_are_moved() {
        let mut late = row(14, "/late", 0);
        late.time = 90;
        let table = [row(1, "/", 0), row(10, "/a", 0), row(10, "/elsewhere", 3), late];
        let events = [
            starts(20, 10, 11, 0),
            starts(21, 11, 12, CLONE_THREAD),
            moves(30, 11, 0, "/a/b"),
            moves(31, 11, 3, "/other"),
            starts(40, 12, 13, 0),
            starts(50, 10, 14, CLONE_INTO_CGROUP),
            moves(60, 10, 0, "/"),
        ];
        let tasks = [Task::new(15, b"t".to_vec()).tgid(10)];
        let cgroups = cgroups(&table, &tasks, &events);
        assert_eq!([20, 29, 30, 99].map(|time| at(&cgroups, 11, time)), ["/a", "/a", "/a/b", "/a/b"]);
        assert_eq!(
            [29, 30].map(|time| at(&cgroups, 12, time)),
            ["/a", "/a/b"],
            "a thread is with its process"
        );
        assert_eq!(at(&cgroups, 13, 40), "/a/b", "the child of a thread");
        assert_eq!(at(&cgroups, 14, 50), "/late", "no event shows where it started");
        assert_eq!([59, 60].map(|time| at(&cgroups, 15, time)), ["/a", "/"]);
        assert_eq!(at(&cgroups, 99, 1), "?");
        assert_eq!([11, 12].map(|pid| cgroups.same_until(pid, 29)), [30; 2]);
        assert_eq!([11, 13].map(|pid| cgroups.same_until(pid, 40)), [u64::MAX; 2]);
    }

    #[test]
    fn a_condition_is_met_by_a_parent() {
        let paths = |path: &'static str| with_parents(path).collect::<Vec<_>>();
        assert_eq!(paths("/a/b/c"), ["/", "/a", "/a/b", "/a/b/c"]);
        assert_eq!(paths("/"), ["/"]);
    }
}
