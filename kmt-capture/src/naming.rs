//! Events that name tasks: task_newtask and task_rename.

use kmt_format::kernel::{ByteOrder, EventFormat, Field, FieldKind};

/// `CLONE_THREAD`: the new task belongs to the thread group of the task that starts it.
const CLONE_THREAD: u64 = 0x0001_0000;

/// Fields of an event that names a task.
#[derive(Debug)]
pub struct Naming {
    /// Id of the event.
    pub id: u16,
    task: Option<Field>,
    current: Field,
    comm: Field,
    old: Option<Field>,
    clone_flags: Option<Field>,
}

/// A naming event.
#[derive(Debug)]
pub struct Named {
    /// Task.
    pub pid: i32,
    /// Running task.
    pub current: i32,
    /// Its name since the event.
    pub comm: Vec<u8>,
    /// Its name before.
    #[cfg_attr(not(feature = "convert"), allow(dead_code))] // A recorder has it in its table.
    pub old: Option<Vec<u8>>,
    /// True if it is new and a thread of the running task; `None`: it is not new.
    pub is_thread: Option<bool>,
}

impl Naming {
    /// The events of system `task` that name tasks, and the field with the name.
    pub const EVENTS: [(&str, &str); 2] = [("task_newtask", "comm"), ("task_rename", "newcomm")];

    /// Fields in the text of a `format`; `comm` is the field with the name.
    pub fn of(text: &str, comm: &str, long_size: usize) -> Option<Self> {
        let format = EventFormat::parse(text, long_size).ok()?;
        let field = |name: &str| format.fields.iter().find(|f| f.name == name).cloned();
        Some(Self {
            id: format.id,
            task: field("pid"),
            current: field("common_pid")?,
            comm: field(comm)?,
            old: field("oldcomm"),
            clone_flags: field("clone_flags"),
        })
    }

    /// Offset and size of the id of the running task in every event.
    pub fn current_at(&self) -> (usize, usize) {
        (self.current.offset as usize, self.current.size as usize)
    }

    /// Reads a record of the event.
    pub fn read(&self, order: ByteOrder, record: &[u8]) -> Option<Named> {
        let number = |field: &Field| order.uint_at(record, field.offset as usize, field.size as usize);
        let current = number(&self.current)? as i32;
        // task_rename lost its pid in 6.14 or so: only the running task is renamed then.
        let pid = self.task.as_ref().and_then(number).map_or(current, |pid| pid as i32);
        let clone_flags = self.clone_flags.as_ref().and_then(number);
        Some(Named {
            pid,
            current,
            comm: text(order, record, &self.comm)?,
            old: self.old.as_ref().and_then(|old| text(order, record, old)),
            is_thread: clone_flags.map(|flags| flags & CLONE_THREAD != 0),
        })
    }
}

/// A text of a record, to its first NUL.
fn text(order: ByteOrder, record: &[u8], field: &Field) -> Option<Vec<u8>> {
    let (mut start, mut len) = (field.offset as usize, field.size as usize);
    if field.kind == FieldKind::DataLoc {
        let data_loc = order.uint_at(record, start, 4)? as usize;
        (start, len) = (data_loc & 0xffff, data_loc >> 16);
    }
    let text = record.get(start..start.checked_add(len)?)?;
    Some(text.split(|&b| b == 0).next().unwrap_or_default().to_vec())
}
