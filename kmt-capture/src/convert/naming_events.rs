//! Names of tasks from naming events, for the table of tasks: readers look names up there.

use std::collections::HashMap;

use kmt_common::kmt_file::KmtFile;
use kmt_format::Result;
use kmt_format::kernel::ByteOrder;
use kmt_format::write::Task;

use crate::naming::Naming;

/// Rows that are written at once.
const ROWS_AT_ONCE: usize = 4096;

/// Makes rows of the naming events of an input.
#[derive(Debug)]
pub struct NamingEvents {
    order: ByteOrder,
    /// By id; of several formats with one id the first, as in the file.
    all: Vec<Naming>,
    /// Time of the first naming event of each task, and the name before it.
    first: HashMap<i32, (u64, Option<Vec<u8>>)>,
    rows: Vec<Task>,
}

impl NamingEvents {
    /// Of an input with these formats: system, place, text.
    pub fn new(formats: &[(String, String, String)], order: ByteOrder, long_size: usize) -> Self {
        let mut all: Vec<Naming> =
            formats.iter().filter_map(|(system, _, text)| naming(system, text, long_size)).collect();
        all.sort_by_key(|naming| naming.id);
        all.dedup_by_key(|naming| naming.id);
        Self { order, all, first: HashMap::new(), rows: Vec::new() }
    }

    /// Adds a format that was found after events of others; its id is its own.
    pub fn add(&mut self, system: &str, text: &str, long_size: usize) {
        if let Some(naming) = naming(system, text, long_size) {
            let at = self.all.partition_point(|other| other.id < naming.id);
            self.all.insert(at, naming);
        }
    }

    /// Looks at the record of an event.
    #[inline]
    pub fn see(&mut self, time: u64, record: &[u8]) {
        if self.all.is_empty() {
            return;
        }
        let id = self.order.uint_at(record, 0, 2).unwrap_or(0);
        if let Ok(number) = self.all.binary_search_by_key(&id, |naming| naming.id.into()) {
            self.name(number, time, record);
        }
    }

    fn name(&mut self, number: usize, time: u64, record: &[u8]) -> Option<()> {
        let named = self.all.get(number)?.read(self.order, record)?;
        let pid = named.pid;
        // Idle tasks have the id 0 and a name for each CPU.
        if pid == 0 {
            return None;
        }
        let first = self.first.entry(pid).or_insert((u64::MAX, None));
        if time < first.0 {
            *first = (time, named.old);
        }
        // The group of a thread is known to saved_tgids alone.
        let tgid = if named.is_thread == Some(false) { pid } else { 0 };
        self.rows.push(Task::new(pid, named.comm).tgid(tgid).since(time));
        Some(())
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

/// The naming event of a format, if it is one.
fn naming(system: &str, text: &str, long_size: usize) -> Option<Naming> {
    if system != "task" {
        return None;
    }
    let event = text.lines().find_map(|line| line.strip_prefix("name: "))?.trim();
    let (_, comm) = Naming::EVENTS.iter().find(|(name, _)| *name == event)?;
    Naming::of(text, comm, long_size)
}
