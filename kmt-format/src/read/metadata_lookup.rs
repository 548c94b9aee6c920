//! Lookups in metadata: the name, thread group and cgroup of a task at a time, the source lines of an address.

use super::Metadata;
use crate::tables::{CgroupRecord, SourceLine};

impl Metadata<'_> {
    /// Name of task `pid` at `time`, in the clock's unit, as the file's table of tasks has it.
    ///
    /// Of the rows with that `pid` and a name: the one with the latest time that is not after `time`, and of several
    /// with that time the last one in the file. If all of them are later, the earliest: a task's first name also holds
    /// before it was noted. `None` if there is no row. Task 0 has a name only if the file gives it one.
    pub fn comm(&self, pid: i32, time: u64) -> Option<&[u8]> {
        let row = self.comms.find(pid, time, || {
            let named = (0u32..).zip(&self.tasks).filter(|(_, task)| !task.comm.is_empty());
            named.map(|(row, task)| (task.pid, task.time, row))
        })?;
        self.tasks.get(row).map(|task| task.comm.as_ref())
    }

    /// Thread group id of task `pid` at `time`, found as its name is; `None` if the file does not have it.
    pub fn tgid(&self, pid: i32, time: u64) -> Option<i32> {
        let row = self.tgids.find(pid, time, || {
            let grouped = (0u32..).zip(&self.tasks).filter(|(_, task)| task.tgid != 0);
            grouped.map(|(row, task)| (task.pid, task.time, row))
        })?;
        self.tasks.get(row).map(|task| task.tgid)
    }

    /// Cgroup of task `pid` at `time` in that hierarchy, 0 for version 2, found as the task's name is; `None` if the
    /// file does not have it.
    pub fn cgroup(&self, pid: i32, hierarchy: u32, time: u64) -> Option<&CgroupRecord<'_>> {
        let row = self.in_cgroups.find((pid, hierarchy), time, || {
            let with_path = (0u32..).zip(&self.cgroups).filter(|(_, cgroup)| !cgroup.path.is_empty());
            with_path.map(|(row, cgroup)| ((cgroup.pid, cgroup.hierarchy), cgroup.time, row))
        })?;
        self.cgroups.get(row)
    }

    /// Functions and source lines of that address, the innermost first: the rows of the last chunk that has some.
    pub fn lines_at(&self, address: u64) -> impl Iterator<Item = &SourceLine<'_>> {
        self.line_index.at(&self.lines, address)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::super::TaskRecord;
    use super::*;

    #[test]
    fn a_name_holds_from_its_row_on_and_the_first_one_before() {
        let row = |pid, time, comm: &'static str| TaskRecord {
            time,
            pid,
            tgid: 0,
            comm: Cow::Borrowed(comm.as_bytes()),
        };
        let rows =
            [(7, 0, "sh"), (8, 50, "late"), (7, 200, "tail"), (7, 100, "cat"), (7, 100, "tac"), (7, 150, "")];
        let tasks = rows.map(|(pid, time, comm)| row(pid, time, comm)).to_vec();
        let metadata = Metadata { tasks, ..Metadata::default() };
        let at = |pid, time| metadata.comm(pid, time).map(|n| String::from_utf8_lossy(n).into_owned());
        assert_eq!(at(7, 99).as_deref(), Some("sh"));
        assert_eq!(at(7, 100).as_deref(), Some("tac"), "of one time the last row");
        assert_eq!(at(7, 199).as_deref(), Some("tac"), "rows without a name say nothing");
        assert_eq!(at(7, 1_000).as_deref(), Some("tail"));
        assert_eq!(at(8, 1).as_deref(), Some("late"));
        assert_eq!(at(9, 1), None);
        assert_eq!(at(-1, u64::MAX), None);
    }
}
