//! Processes and threads, as the recorder found them in /proc.

use std::collections::BTreeMap;

use super::super::cursor::Result;
use super::wire::{Message, Value};

/// Bytes of a name: the kernel has no longer ones.
pub const COMM_MAX: usize = 15;

/// A process or a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Thread group; 0 if unknown.
    pub tgid: i32,
    /// Name, if known.
    pub comm: Option<Vec<u8>>,
    /// Name of the program in the arguments: only a hint at the name of the task.
    pub program: Option<Vec<u8>>,
}

/// Tasks that are being read.
pub struct Tree<'s> {
    /// By id.
    pub tasks: &'s mut BTreeMap<i32, Process>,
    /// Tasks beyond the limit.
    pub left_out: &'s mut u64,
}

impl Tree<'_> {
    /// Reads a tree; of a task that comes again, the first names are kept.
    pub fn read(mut self, message: Message<'_>, most: u64) -> Result<()> {
        for field in message.fields() {
            let field = field?;
            match (field.number, field.message()) {
                (1, Some(row)) => self.process(row, most)?,
                (2, Some(row)) => self.thread(row, most)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn process(&mut self, row: Message<'_>, most: u64) -> Result<()> {
        const KTHREADD: u64 = 2;
        let (mut pid, mut parent, mut is_comm) = (0, None, false);
        let mut command = None;
        for field in row.fields() {
            let field = field?;
            match (field.number, field.value) {
                (1, Value::Number(number)) => pid = number as i32,
                (2, Value::Number(number)) => parent = Some(number),
                (3, Value::Message(word)) => command = command.or(Some(word.bytes())),
                (8 | 9, Value::Number(truth)) => is_comm |= truth != 0,
                _ => {}
            }
        }
        is_comm |= parent == Some(KTHREADD) || u64::try_from(pid) == Ok(KTHREADD);
        let Some(task) = self.task(pid, most) else { return Ok(()) };
        task.tgid = pid;
        let Some(command) = command.filter(|command| !command.is_empty()) else { return Ok(()) };
        let cut = |name: &[u8]| name.get(..name.len().min(COMM_MAX)).unwrap_or_default().to_vec();
        if is_comm {
            task.comm.get_or_insert_with(|| cut(command));
        } else {
            let word = command.split(|&b| b == b' ' || b == 0).next().unwrap_or_default();
            let base = word.rsplit(|&b| b == b'/').next().unwrap_or_default();
            task.program.get_or_insert_with(|| cut(base));
        }
        Ok(())
    }

    fn thread(&mut self, row: Message<'_>, most: u64) -> Result<()> {
        let (mut tid, mut tgid, mut name) = (0, 0, None);
        for field in row.fields() {
            let field = field?;
            match (field.number, field.value) {
                (1, Value::Number(number)) => tid = number as i32,
                (2, Value::Message(word)) => name = Some(word.bytes()),
                (3, Value::Number(number)) => tgid = number as i32,
                _ => {}
            }
        }
        let Some(task) = self.task(tid, most) else { return Ok(()) };
        if tgid > 0 {
            task.tgid = tgid;
        }
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            let name = name.get(..name.len().min(COMM_MAX)).unwrap_or_default();
            task.comm.get_or_insert_with(|| name.to_vec());
        }
        Ok(())
    }

    fn task(&mut self, pid: i32, most: u64) -> Option<&mut Process> {
        // Idle tasks have the id 0 and a name for each CPU.
        if pid <= 0 {
            return None;
        }
        if self.tasks.len() as u64 >= most && !self.tasks.contains_key(&pid) {
            *self.left_out += 1;
            return None;
        }
        Some(self.tasks.entry(pid).or_default())
    }
}
