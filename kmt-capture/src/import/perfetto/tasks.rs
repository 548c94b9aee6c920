//! Names of tasks that events have: each name of a task is shown once.

use std::collections::HashMap;

use super::wire::{Message, Value};

/// Names of tasks so far.
#[derive(Debug)]
pub struct TaskNames {
    last: HashMap<i32, Option<(Vec<u8>, i32)>>,
    most: u64,
    /// Tasks beyond the limit.
    pub left_out: u64,
}

impl TaskNames {
    /// None yet, and at most `most`.
    pub fn new(most: u64) -> Self {
        Self { last: HashMap::new(), most, left_out: 0 }
    }

    /// True if a task has a name.
    pub fn has(&self, pid: i32) -> bool {
        self.last.contains_key(&pid)
    }

    /// True if the name of a task is another one than before.
    pub fn is_new(&mut self, pid: i32, comm: &[u8], tgid: i32) -> bool {
        // Idle tasks have the id 0 and a name for each CPU.
        if pid == 0 || comm.is_empty() {
            return false;
        }
        let had = self.last.get(&pid);
        if had
            .is_some_and(|had| had.as_ref().is_some_and(|(had, t)| had == comm && (*t == tgid || tgid == 0)))
        {
            return false;
        }
        let has_room = had.is_some() || self.has_room();
        if has_room {
            self.last.insert(pid, Some((comm.to_vec(), tgid)));
        }
        has_room
    }

    fn has_room(&mut self) -> bool {
        let has_room = (self.last.len() as u64) < self.most;
        self.left_out += u64::from(!has_room);
        has_room
    }

    /// Notes the task of task_newtask and task_rename, whose records have its name.
    pub fn note_naming(&mut self, number: u32, message: Message<'_>) {
        const NAMING: [u32; 2] = [235, 236];
        if !NAMING.contains(&number) {
            return;
        }
        let pid = message.fields().flatten().filter(|f| f.number == 1).find_map(|f| match f.value {
            Value::Number(pid) => Some(pid as i32),
            _ => None,
        });
        let Some(pid) = pid else { return };
        if self.last.contains_key(&pid) || self.has_room() {
            // A name that comes after it is a new one.
            self.last.insert(pid, None);
        }
    }
}
