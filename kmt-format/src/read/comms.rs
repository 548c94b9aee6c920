//! Which row of the task table names a task at a time.

use core::cmp::Reverse;
use std::sync::OnceLock;

use super::Metadata;

/// Rows of the table by task and time, made when they are first needed.
#[derive(Debug, Clone, Default)]
pub(super) struct CommIndex(OnceLock<Vec<(i32, u64, u32)>>);

impl CommIndex {
    /// Forgets everything: there are more rows.
    pub fn clear(&mut self) {
        self.0.take();
    }
}

/// It follows from the rows alone.
impl PartialEq for CommIndex {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for CommIndex {}

impl Metadata<'_> {
    /// Name of task `pid` at `time`, in the clock's unit, as the file's table of tasks has it.
    ///
    /// Of the rows with that `pid` and a name: the one with the latest time that is not after `time`, and of several
    /// with that time the last one in the file. If all of them are later, the earliest: a task's first name also holds
    /// before it was noted. `None` if there is no row. Task 0 has a name only if the file gives it one.
    pub fn comm(&self, pid: i32, time: u64) -> Option<&[u8]> {
        let rows = self.comms.0.get_or_init(|| self.rows_by_task());
        let after = rows.partition_point(|&(p, since, _)| (p, since) <= (pid, time));
        let of_pid = |index: usize| rows.get(index).filter(|(p, ..)| *p == pid);
        let (.., row) = after.checked_sub(1).and_then(of_pid).or_else(|| of_pid(after))?;
        self.tasks.get(*row as usize).map(|task| task.comm.as_ref())
    }

    /// Of rows with one task and time the last one.
    fn rows_by_task(&self) -> Vec<(i32, u64, u32)> {
        let named = self.tasks.iter().enumerate().filter(|(_, task)| !task.comm.is_empty());
        let mut rows: Vec<(i32, u64, u32)> =
            named.map(|(row, task)| (task.pid, task.time, row as u32)).collect();
        rows.sort_unstable_by_key(|&(pid, time, row)| (pid, time, Reverse(row)));
        rows.dedup_by_key(|&mut (pid, time, _)| (pid, time));
        rows
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
