//! Records of inputs without sub-buffers into the file: events, their stacks, names of tasks, losses.

use kmt_common::kmt_file::KmtFile;
use kmt_format::Result;
use kmt_format::kernel::ByteOrder;
use kmt_format::write::Task;

use super::stacks::StackFormat;

/// Names of tasks that are written at once.
const TASKS_AT_ONCE: usize = 4096;

/// Conversion of records, in any order of CPUs.
#[derive(Debug)]
pub struct RecordConversion {
    /// Events that were written, without their stacks.
    pub events: u64,
    tasks: Vec<Task>,
    stack: StackFormat,
    stack_record: Vec<u8>,
    order: ByteOrder,
}

impl RecordConversion {
    /// Of records in that byte order, with stacks of that format.
    pub fn new(stack: StackFormat, order: ByteOrder) -> Self {
        Self { events: 0, tasks: Vec::new(), stack, stack_record: Vec::new(), order }
    }

    /// Writes an event.
    pub fn event(&mut self, file: &mut KmtFile, cpu: u32, time: u64, record: &[u8]) -> Result<()> {
        file.event(cpu, time, record)?;
        self.events += 1;
        Ok(())
    }

    /// Writes the stack of an event, of whose record `common` has the common fields. `frames` are 8 bytes each.
    pub fn stack(
        &mut self,
        file: &mut KmtFile,
        cpu: u32,
        time: u64,
        common: &[u8],
        frames: &[u8],
    ) -> Result<()> {
        self.stack.record(&mut self.stack_record, common, frames, self.order);
        file.writer.add_event(cpu, time, &self.stack_record)?;
        file.stats(cpu).events += 1;
        Ok(())
    }

    /// Adds the name of a task.
    pub fn task(&mut self, file: &mut KmtFile, task: Task) -> Result<()> {
        self.tasks.push(task);
        if self.tasks.len() >= TASKS_AT_ONCE { self.flush_tasks(file) } else { Ok(()) }
    }

    /// Writes the names of tasks that are not written yet.
    pub fn flush_tasks(&mut self, file: &mut KmtFile) -> Result<()> {
        if self.tasks.is_empty() { Ok(()) } else { file.writer.add_tasks(&std::mem::take(&mut self.tasks)) }
    }
}
