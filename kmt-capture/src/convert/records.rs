//! Records of inputs without sub-buffers into the file: events, their stacks, names of tasks, losses.

use std::collections::HashMap;

use kmt_format::Result;
use kmt_format::kernel::ByteOrder;
use kmt_format::write::{Loss, Task, Writer, WriterStats};

use super::driver::EventTotals;
use super::stacks::StackFormat;

/// Names of tasks that are written at once.
const TASKS_AT_ONCE: usize = 4096;

/// Conversion of records, in any order of CPUs.
#[derive(Debug)]
pub struct RecordConversion {
    /// Events that were written, without their stacks.
    pub events: u64,
    /// Losses that were written.
    pub lost: Loss,
    cpus: HashMap<u32, WriterStats>,
    tasks: Vec<Task>,
    stack: StackFormat,
    stack_record: Vec<u8>,
    order: ByteOrder,
}

impl RecordConversion {
    /// Of records in that byte order, with stacks of that format.
    pub fn new(stack: StackFormat, order: ByteOrder) -> Self {
        Self {
            events: 0,
            lost: Loss::default(),
            cpus: HashMap::new(),
            tasks: Vec::new(),
            stack,
            stack_record: Vec::new(),
            order,
        }
    }

    /// Writes an event.
    pub fn event(&mut self, writer: &mut Writer, cpu: u32, time: u64, record: &[u8]) -> Result<()> {
        writer.add_event(cpu, time, record)?;
        let stats = self.cpus.entry(cpu).or_default();
        stats.events += 1;
        stats.bytes += record.len() as u64;
        self.events += 1;
        Ok(())
    }

    /// Writes the stack of an event, of whose record `common` has the common fields. `frames` are 8 bytes each.
    pub fn stack(
        &mut self,
        writer: &mut Writer,
        cpu: u32,
        time: u64,
        common: &[u8],
        frames: &[u8],
    ) -> Result<()> {
        self.stack.record(&mut self.stack_record, common, frames, self.order);
        writer.add_event(cpu, time, &self.stack_record)?;
        self.cpus.entry(cpu).or_default().events += 1;
        Ok(())
    }

    /// Marks a loss before the next event of a CPU.
    pub fn lose(&mut self, writer: &mut Writer, cpu: u32, loss: Loss) -> Result<()> {
        self.lost = self.lost.and(loss);
        writer.add_loss(cpu, loss)
    }

    /// Adds the name of a task.
    pub fn task(&mut self, writer: &mut Writer, task: Task) -> Result<()> {
        self.tasks.push(task);
        if self.tasks.len() >= TASKS_AT_ONCE { self.flush_tasks(writer) } else { Ok(()) }
    }

    /// Writes the names of tasks that are not written yet.
    pub fn flush_tasks(&mut self, writer: &mut Writer) -> Result<()> {
        if self.tasks.is_empty() { Ok(()) } else { writer.add_tasks(&std::mem::take(&mut self.tasks)) }
    }

    /// Ends the chunks of all CPUs.
    pub fn end_cpus(&mut self, writer: &mut Writer) -> Result<EventTotals> {
        let mut cpus: Vec<(u32, WriterStats)> = self.cpus.drain().collect();
        cpus.sort_by_key(|(cpu, _)| *cpu);
        cpus.iter().try_for_each(|(cpu, _)| writer.end_cpu(*cpu))?;
        Ok(EventTotals { events: self.events, cpus, lost: self.lost })
    }
}
