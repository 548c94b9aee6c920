//! Names of tasks from naming events, for the table of tasks: readers look names up there.

use std::collections::HashMap;

use kmt_common::kmt_file::KmtFile;
use kmt_format::Result;
use kmt_format::kernel::ByteOrder;
use kmt_format::write::Task;

use crate::naming::NamingEvents;

/// Rows that are written at once.
const ROWS_AT_ONCE: usize = 4096;

/// Makes rows of the naming events of an input.
#[derive(Debug)]
pub struct EventNames {
    /// Of the formats that are known so far.
    pub events: NamingEvents,
    /// Time of the first naming event of each task, and the name before it.
    first: HashMap<i32, (u64, Option<Vec<u8>>)>,
    rows: Vec<Task>,
}

impl EventNames {
    /// Of an input with these formats: system, place, text.
    pub fn new(formats: &[(String, String, String)], order: ByteOrder, long_size: usize) -> Self {
        let mut events = NamingEvents::new(order, long_size);
        formats.iter().for_each(|(system, _, text)| events.add(system, text));
        Self { events, first: HashMap::new(), rows: Vec::new() }
    }

    /// Looks at the record of an event.
    #[inline]
    pub fn see(&mut self, time: u64, record: &[u8]) {
        // Idle tasks have the id 0 and a name for each CPU.
        let Some(named) = self.events.read(record).filter(|named| named.pid != 0) else { return };
        let pid = named.pid;
        let first = self.first.entry(pid).or_insert((u64::MAX, None));
        if time < first.0 {
            *first = (time, named.old);
        }
        // The group of a thread is known to saved_tgids alone.
        let tgid = if named.is_thread == Some(false) { pid } else { 0 };
        self.rows.push(Task::new(pid, named.comm).tgid(tgid).since(time));
    }

    /// Writes the rows if there are many.
    pub fn write_if_many(&mut self, file: &mut KmtFile) -> Result<()> {
        if self.rows.len() >= ROWS_AT_ONCE { self.write(file) } else { Ok(()) }
    }

    fn write(&mut self, file: &mut KmtFile) -> Result<()> {
        if self.rows.is_empty() { Ok(()) } else { file.writer.add_tasks(&std::mem::take(&mut self.rows)) }
    }

    /// Writes the rows that are left, and the names that tasks had before their first event: saved_cmdlines has
    /// later ones, without a time.
    pub fn finish(&mut self, file: &mut KmtFile) -> Result<()> {
        let mut before: Vec<(i32, Vec<u8>)> =
            self.first.drain().filter_map(|(pid, (_, old))| Some((pid, old?))).collect();
        before.sort();
        self.rows.extend(before.into_iter().map(|(pid, old)| Task::new(pid, old)));
        self.write(file)
    }
}
