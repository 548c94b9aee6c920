//! Writing metadata: clock, keys, files, tasks, counters.

use super::Writer;
use super::rows::{clock_head, file_body, pairs_body, stats_body, tasks_body, writer_stats_body};
use super::types::{StatsTaken, Task, WriterStats};
use crate::error::Result;
use crate::kernel::{CpuStats, TraceClock, with_order};
use crate::raw::{ChunkKind, chunk_flags};

impl Writer {
    /// Writes the trace clock.
    ///
    /// # Errors
    ///
    /// Returns an error if the codec refuses it.
    pub fn add_clock(&mut self, clock: &TraceClock) -> Result<()> {
        let mut body = with_order!(self.options.order, O => clock_head::<O>(clock));
        body.extend_from_slice(clock.name.as_bytes());
        self.framer.loose_chunk(ChunkKind::CLOCK, chunk_flags::CRITICAL, &body)
    }

    /// Writes keys and values; values may be any bytes. See the registry for well-known keys.
    ///
    /// # Errors
    ///
    /// Returns an error if the codec refuses it.
    pub fn add_metadata(&mut self, pairs: &[(&str, &[u8])]) -> Result<()> {
        let body = pairs_body(self.options.order, pairs);
        self.framer.loose_chunk(ChunkKind::META, chunk_flags::SAFE_TO_COPY, &body)
    }

    /// Writes a file of the target, verbatim.
    ///
    /// # Errors
    ///
    /// Returns an error if the codec refuses it.
    pub fn add_file(&mut self, name: &str, contents: &[u8]) -> Result<()> {
        self.file_body(name, contents, None)
    }

    /// Writes a file of the target, verbatim, that was read between these times of the trace clock, if they are known.
    ///
    /// # Errors
    ///
    /// Returns an error if the codec refuses it.
    pub fn add_file_at(
        &mut self,
        name: &str,
        contents: &[u8],
        times: impl Into<Option<(u64, u64)>>,
    ) -> Result<()> {
        self.file_body(name, contents, times.into())
    }

    fn file_body(&mut self, name: &str, contents: &[u8], times: Option<(u64, u64)>) -> Result<()> {
        let body = with_order!(self.options.order, O => file_body::<O>(name, contents, times));
        self.copyable_chunk(ChunkKind::FILE, &body)
    }

    /// Writes a chunk of no CPU that a tool may keep without knowing its kind.
    pub(super) fn copyable_chunk(&mut self, kind: ChunkKind, body: &[u8]) -> Result<()> {
        self.framer.loose_chunk(kind, chunk_flags::SAFE_TO_COPY, body)
    }

    /// Writes names of tasks.
    ///
    /// # Errors
    ///
    /// Returns an error if the codec refuses it.
    pub fn add_tasks(&mut self, tasks: &[Task]) -> Result<()> {
        let body = with_order!(self.options.order, O => tasks_body::<O>(tasks));
        self.framer.loose_chunk(ChunkKind::TASKS, chunk_flags::SAFE_TO_COPY, &body)
    }

    /// Writes the kernel's own counters for each CPU.
    ///
    /// # Errors
    ///
    /// Returns an error if the codec refuses it.
    pub fn add_stats(&mut self, taken: StatsTaken, stats: &[(u32, CpuStats)]) -> Result<()> {
        let taken = if taken == StatsTaken::Before { 0 } else { 1 };
        let rows = with_order!(self.options.order, O => stats_body::<O>(taken, stats));
        self.framer.loose_chunk(ChunkKind::STATS, chunk_flags::SAFE_TO_COPY, &rows)
    }

    /// Writes counts of the input of each CPU.
    ///
    /// # Errors
    ///
    /// Returns an error if the codec refuses it.
    pub fn add_writer_stats(&mut self, stats: &[(u32, WriterStats)]) -> Result<()> {
        let rows = with_order!(self.options.order, O => writer_stats_body::<O>(stats));
        self.framer.loose_chunk(ChunkKind::STATS, chunk_flags::SAFE_TO_COPY, &rows)
    }
}
