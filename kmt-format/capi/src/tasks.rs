//! Names of tasks over time.

use kmt_format::read::{Metadata, TaskRecord};

/// The rows of the table of tasks that name one, by task and time.
#[derive(Debug)]
pub(crate) struct TaskNames {
    /// Numbers of rows, sorted by pid, then time, then place in the file.
    order: Vec<u32>,
}

impl TaskNames {
    pub fn of(metadata: &Metadata<'_>) -> Self {
        let is_named = |&row: &u32| rows(metadata).get(row as usize).is_some_and(|t| !t.comm.is_empty());
        let mut order: Vec<u32> = (0..rows(metadata).len()).filter_map(|r| u32::try_from(r).ok()).collect();
        order.retain(is_named);
        order.sort_by_key(|&row| key(metadata, row));
        Self { order }
    }

    /// The name of a task at a time; before its first name that one.
    ///
    /// The table does not tell since when the oldest name of a task holds. Of names since the same time the last holds.
    pub fn at<'m>(&self, metadata: &'m Metadata<'_>, pid: i32, time: u64) -> Option<&'m [u8]> {
        let after = self.order.partition_point(|&row| key(metadata, row) <= (pid, time));
        let last_before = after.checked_sub(1).filter(|&at| self.key_at(metadata, at).0 == pid);
        let at = last_before.or_else(|| {
            let first = self.key_at(metadata, after);
            let end = self.order.partition_point(|&row| key(metadata, row) <= first);
            end.checked_sub(1).filter(|_| first.0 == pid)
        })?;
        Some(rows(metadata).get(*self.order.get(at)? as usize)?.comm.as_ref())
    }

    fn key_at(&self, metadata: &Metadata<'_>, at: usize) -> (i32, u64) {
        self.order.get(at).map_or((i32::MIN, 0), |&row| key(metadata, row))
    }
}

fn rows<'m, 'd>(metadata: &'m Metadata<'d>) -> &'m [TaskRecord<'d>] {
    &metadata.tasks
}

fn key(metadata: &Metadata<'_>, row: u32) -> (i32, u64) {
    rows(metadata).get(row as usize).map_or((i32::MIN, 0), |task| (task.pid, task.time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_holds_until_the_next_one() {
        let task =
            |time, pid, comm: &'static str| TaskRecord { time, pid, tgid: 0, comm: comm.as_bytes().into() };
        let tasks = vec![
            task(50, 8, "late"),
            task(100, 7, "cat"),
            task(0, 7, "old"),
            task(0, 7, "sh"),
            task(200, 7, ""),
            task(50, 8, "later"),
        ];
        let metadata = Metadata { tasks, ..Metadata::default() };
        let names = TaskNames::of(&metadata);
        let at = |pid, time| names.at(&metadata, pid, time).map(|n| String::from_utf8_lossy(n).into_owned());
        assert_eq!(at(7, 99).as_deref(), Some("sh"), "of names since the same time the last");
        assert_eq!(at(7, 100).as_deref(), Some("cat"));
        assert_eq!(at(7, 1_000).as_deref(), Some("cat"), "an empty name is none");
        assert_eq!(at(8, 1).as_deref(), Some("later"), "the first name also before its time");
        assert_eq!((at(6, 0), at(9, 1)), (None, None));
    }
}
