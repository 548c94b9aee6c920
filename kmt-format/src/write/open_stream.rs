//! The open chunk of a CPU: events that were added, or sub-buffers as the kernel wrote them, and where the chunk continues.

use super::sub_buffer_chunk::SubBufferChunk;
use super::types::{WriterLimits, WriterOptions};
use crate::pack::EventChunkBuilder;

/// What is open of a CPU: events or sub-buffers, or neither.
#[derive(Debug)]
pub(super) struct OpenStream {
    pub(super) builder: EventChunkBuilder,
    pub(super) sub_buffers: SubBufferChunk,
    /// Number of its next chunk.
    pub(super) sequence: u32,
    /// Time of its last event.
    pub(super) last_time: Option<u64>,
}

impl OpenStream {
    pub(super) fn new(options: &WriterOptions, limits: &WriterLimits) -> Self {
        Self {
            builder: EventChunkBuilder::new(options.order, options.long_size, limits.chunk_len),
            sub_buffers: SubBufferChunk::default(),
            sequence: 0,
            last_time: None,
        }
    }

    #[inline]
    pub(super) fn must_close_before(&self, time: u64) -> bool {
        self.builder.must_close_before(time) || !self.sub_buffers.is_empty()
    }

    pub(super) fn has_events(&self) -> bool {
        self.builder.record_count() > 0 || !self.sub_buffers.is_empty()
    }

    /// Bytes of what is open.
    pub(super) fn len_bytes(&self) -> usize {
        self.builder.len_bytes() + self.sub_buffers.len_bytes()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.builder.is_empty() && self.sub_buffers.is_empty()
    }
}
