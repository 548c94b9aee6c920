//! A .kmt file that is being written: the writer of its chunks, the output that gets them, and totals of its events.

use std::collections::BTreeMap;

use kmt_format::kernel::HeaderPage;
use kmt_format::write::{Keep, Loss, SubBufferSummary, Writer, WriterStats};

use crate::failure::Result;
use crate::output::Output;

/// Size from which finished chunks are handed to the output, in bytes.
pub const WRITE_LEN: usize = 1 << 20;

/// Destination of the chunks.
pub trait ChunkOutput {
    /// Appends whole chunks.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;

    /// Completes the file.
    fn finish(self) -> Result<()>;
}

impl ChunkOutput for Output {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.write(bytes)
    }

    fn finish(self) -> Result<()> {
        self.finish()
    }
}

/// A file that is being written.
#[derive(Debug)]
pub struct KmtFile<O = Output> {
    /// Makes chunks.
    pub writer: Writer,
    /// Gets the chunks.
    pub output: O,
    /// Counts of the events that were added, by CPU.
    pub cpus: BTreeMap<u32, WriterStats>,
    /// Sum of the losses that were added, and of those that sub-buffers are marked with.
    pub lost: Loss,
    /// Events in the chunks that the output has.
    pub events_written: u64,
}

impl<O: ChunkOutput> KmtFile<O> {
    /// A file without events.
    pub fn new(writer: Writer, output: O) -> Self {
        Self { writer, output, cpus: BTreeMap::new(), lost: Loss::default(), events_written: 0 }
    }

    /// Counts of a CPU, which gets a row in the file.
    pub fn stats(&mut self, cpu: u32) -> &mut WriterStats {
        self.cpus.entry(cpu).or_default()
    }

    /// Number of events that were added.
    pub fn events(&self) -> u64 {
        self.cpus.values().map(|stats| stats.events).sum()
    }

    /// Adds an event, and counts it.
    pub fn event(&mut self, cpu: u32, time: u64, record: &[u8]) -> kmt_format::Result<()> {
        self.writer.add_event(cpu, time, record)?;
        let stats = self.stats(cpu);
        stats.events += 1;
        stats.bytes += record.len() as u64;
        Ok(())
    }

    /// Adds a sub-buffer, and counts its events and its loss: [`Writer::add_sub_buffer`].
    pub fn sub_buffer(
        &mut self,
        cpu: u32,
        bytes: &[u8],
        layout: &HeaderPage,
        keep: Keep,
        see: impl FnMut(u64, &[u8]) -> bool,
    ) -> kmt_format::Result<SubBufferSummary> {
        let found = self.writer.add_sub_buffer(cpu, bytes, layout, keep, see)?;
        self.stats(cpu).add(bytes.len(), &found);
        self.lost = self.lost.and(found.loss);
        Ok(found)
    }

    /// Adds a loss before the next event of a CPU, and counts it.
    pub fn lose(&mut self, cpu: u32, loss: Loss) -> kmt_format::Result<()> {
        self.lost = self.lost.and(loss);
        self.writer.add_loss(cpu, loss)
    }

    /// Adds the loss of an event of a CPU that is in the input and cannot be read: unlike what the kernel lost before the
    /// first event, it is of the recorded time.
    pub fn lose_unreadable(&mut self, cpu: u32) -> kmt_format::Result<()> {
        self.lost = self.lost.and(Loss::counted(1));
        self.writer.add_loss(cpu, Loss::counted(1).and(Loss::damaged_input()))
    }

    /// Writes all finished chunks.
    pub fn write(&mut self) -> Result<()> {
        if self.writer.pending_len() > 0 {
            self.output.write(self.writer.pending())?;
            self.writer.clear_pending();
            self.events_written = self.writer.events_closed();
        }
        Ok(())
    }

    /// Writes finished chunks if there are many of them.
    pub fn write_if_large(&mut self) -> Result<()> {
        if self.writer.pending_len() >= WRITE_LEN { self.write() } else { Ok(()) }
    }

    /// Ends the chunks of the CPUs that have events.
    pub fn end_cpus(&mut self) -> kmt_format::Result<()> {
        self.cpus.keys().try_for_each(|&cpu| self.writer.end_cpu(cpu))
    }

    /// Adds the counts of all CPUs to the file.
    pub fn add_totals(&mut self) -> kmt_format::Result<()> {
        let rows: Vec<(u32, WriterStats)> = self.cpus.iter().map(|(&cpu, &stats)| (cpu, stats)).collect();
        self.writer.add_writer_stats(&rows)
    }

    /// Writes what is left, and completes the file.
    pub fn finish(mut self) -> Result<()> {
        self.output.write(&self.writer.finish()?)?;
        self.output.finish()
    }
}
