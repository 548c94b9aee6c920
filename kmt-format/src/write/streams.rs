//! Streams of the file that is written: one for each CPU, with its open chunk, which is closed here.

use zerocopy::LittleEndian;

use super::Writer;
use super::frame::ChunkId;
use super::open_stream::OpenStream;
use crate::error::{Error, ErrorKind, Result};
use crate::pack::BodyLayout;
use crate::raw::{ChunkHeader, ChunkKind, chunk_flags};

/// Streams of one file at most: the readers' limit too.
const STREAMS_MAX: usize = 16_384;

impl Writer {
    /// Index of the stream of `cpu`.
    #[inline]
    pub(super) fn stream(&mut self, cpu: u32) -> Result<usize> {
        match self.streams.get(self.current) {
            Some((current, _)) if *current == cpu => Ok(self.current),
            _ => self.other_stream(cpu),
        }
    }

    fn other_stream(&mut self, cpu: u32) -> Result<usize> {
        if cpu == ChunkHeader::<LittleEndian>::NO_STREAM {
            return Err(Error::new(ErrorKind::Usage("the number of a CPU is out of range")));
        }
        if let Some(&index) = self.stream_of_cpu.get(&cpu) {
            self.current = index;
            return Ok(index);
        }
        if self.streams.len() >= STREAMS_MAX {
            return Err(Error::new(ErrorKind::Usage("more than 16,384 CPUs, the most that readers accept")));
        }
        self.current = self.streams.len();
        self.stream_of_cpu.insert(cpu, self.current);
        self.streams.push((cpu, OpenStream::new(&self.options, &self.limits)));
        Ok(self.current)
    }

    fn stream_known(&mut self, cpu: u32) -> Option<&mut OpenStream> {
        let index = *self.stream_of_cpu.get(&cpu)?;
        self.streams.get_mut(index).map(|(_, stream)| stream)
    }

    /// Closes the open chunk of `cpu`, if there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if the codec refuses it.
    pub fn flush(&mut self, cpu: u32) -> Result<()> {
        if self.stream_known(cpu).is_some_and(|s| !s.is_empty()) {
            self.close_chunk(cpu)?;
        }
        Ok(())
    }

    /// Closes the open chunk of `cpu`, where nothing more of it is expected: its memory is given back.
    ///
    /// # Errors
    ///
    /// Returns an error if the codec refuses it.
    pub fn end_cpu(&mut self, cpu: u32) -> Result<()> {
        self.flush(cpu)?;
        if let Some(stream) = self.stream_known(cpu) {
            stream.builder.release_memory();
            stream.sub_buffers.release_memory();
        }
        Ok(())
    }

    pub(super) fn close_chunk(&mut self, cpu: u32) -> Result<()> {
        self.write_schema()?;
        self.write_new_symbols()?;
        let index = self.stream_of_cpu.get(&cpu);
        let Some((_, stream)) = index.and_then(|&index| self.streams.get_mut(index)) else { return Ok(()) };
        let order = self.options.order;
        let class_limit = self.first_class.saturating_add(self.plans_written);
        let start = self.framer.start();
        let (kind, layout) = if stream.sub_buffers.is_empty() {
            let body = stream.builder.take_body(&mut self.framer.out);
            let Self { options, .. } = self;
            (ChunkKind::EVENTS, body.layout(order, options.long_size, options.compression))
        } else {
            let summary = stream.sub_buffers.summary;
            let prefix_len = stream.sub_buffers.take_body(order, class_limit, &mut self.framer.out);
            let events = summary.first_event.saturating_add(summary.record_count.into());
            stream.builder.continue_after(events, summary.t_last);
            (ChunkKind::SUB_BUFFERS, BodyLayout { prefix_len, records: None, summary })
        };
        let mut flags = chunk_flags::CRITICAL;
        if layout.summary.record_count > 0 {
            if stream.last_time.is_some_and(|last| layout.summary.t_base < last) {
                flags |= chunk_flags::TIME_REGRESSION;
            }
            stream.last_time = Some(layout.summary.t_last);
        }
        let sequence = stream.sequence;
        stream.sequence = stream.sequence.wrapping_add(1);
        self.framer.frame(start, ChunkId { kind, flags, stream: cpu, sequence }, &layout)
    }
}
