//! Events that name tasks: task_newtask and task_rename.

use kmt_format::kernel::{ByteOrder, EventFormat, Field, FieldKind};

/// `CLONE_THREAD`: the new task belongs to the thread group of the task that starts it.
const CLONE_THREAD: u64 = 0x0001_0000;

/// The events that name tasks, of a recording or an input.
#[derive(Debug)]
pub struct NamingEvents {
    order: ByteOrder,
    long_size: usize,
    /// By id; of several formats with one id the first, as in a file.
    all: Vec<Naming>,
    /// The lowest id, and the highest; the other way round while there is none.
    ids: (u16, u16),
}

/// Fields of an event that names a task.
#[derive(Debug)]
struct Naming {
    /// Id of the event.
    id: u16,
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
    /// Name of the task since the event.
    pub comm: Vec<u8>,
    /// Name of the task before the event.
    #[cfg_attr(not(feature = "convert"), allow(dead_code))] // A recorder has it in its table.
    pub old: Option<Vec<u8>>,
    /// True if it is new and a thread of the running task; `None`: it is not new.
    pub is_thread: Option<bool>,
}

impl NamingEvents {
    /// The events of system `task` that name tasks, and the field with the name.
    pub const EVENTS: [(&str, &str); 2] = [("task_newtask", "comm"), ("task_rename", "newcomm")];

    /// Of records of this kind; without events.
    pub fn new(order: ByteOrder, long_size: usize) -> Self {
        Self { order, long_size, all: Vec::new(), ids: (u16::MAX, 0) }
    }

    /// Adds the event of a format, if it names tasks.
    pub fn add(&mut self, system: &str, text: &str) {
        if system != "task" {
            return;
        }
        let Some(naming) = Naming::of(text, self.long_size) else { return };
        if let Err(at) = self.all.binary_search_by_key(&naming.id, |other| other.id) {
            self.all.insert(at, naming);
        }
        if let (Some(first), Some(last)) = (self.all.first(), self.all.last()) {
            self.ids = (first.id, last.id);
        }
    }

    /// Offset and size of the id of the running task in every event.
    pub fn current_at(&self) -> Option<(usize, usize)> {
        let current = &self.all.first()?.current;
        Some((current.offset as usize, current.size as usize))
    }

    /// Reads a record, if it is of a naming event.
    #[inline]
    pub fn read(&self, record: &[u8]) -> Option<Named> {
        let id = self.order.uint_at(record, 0, 2)? as u16;
        // For every event: the events that name tasks have neighbouring ids, and nearly no other has one of these.
        if id < self.ids.0 || id > self.ids.1 {
            return None;
        }
        let number = self.all.binary_search_by_key(&id, |naming| naming.id).ok()?;
        self.all.get(number)?.read(self.order, record)
    }
}

impl Naming {
    /// Fields in the text of a `format`, if its event names tasks.
    fn of(text: &str, long_size: usize) -> Option<Self> {
        let event = text.lines().find_map(|line| line.strip_prefix("name: "))?.trim();
        let (_, comm) = NamingEvents::EVENTS.iter().find(|(name, _)| *name == event)?;
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

    /// Reads a record of the event.
    fn read(&self, order: ByteOrder, record: &[u8]) -> Option<Named> {
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
