//! A chunk of sub-buffers, kept as the kernel wrote them. Spec section "RAWP".

use zerocopy::IntoBytes;

use super::types::SubBufferSummary;
use crate::kernel::{ByteOrder, HeaderPage, with_order};
use crate::pack::{Summary, VERBATIM_EVENTS_MAX as EVENTS_MAX};
use crate::raw::SubBuffersHead;

/// The sub-buffers of one CPU that are being collected.
#[derive(Debug, Default)]
pub(super) struct SubBufferChunk {
    header: Option<HeaderPage>,
    bytes: Vec<u8>,
    count: u32,
    pub summary: Summary,
}

impl SubBufferChunk {
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of the chunk so far.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// True if the chunk must be closed before a sub-buffer with `events` events from `t_first` on.
    pub fn must_close_before(
        &self,
        header: &HeaderPage,
        len_max: usize,
        events: usize,
        t_first: u64,
    ) -> bool {
        self.count > 0
            && (self.header.as_ref() != Some(header)
                || self.bytes.len() + header.sub_buffer_len() > len_max
                || self.summary.record_count as usize + events > EVENTS_MAX
                || t_first < self.summary.t_last)
    }

    /// Adds a sub-buffer; `start` is the summary of a new chunk.
    pub fn push(&mut self, bytes: &[u8], header: &HeaderPage, found: &SubBufferSummary, start: Summary) {
        if self.count == 0 {
            self.summary = Summary { record_count: 0, classes: 0, ..start };
            self.header = Some(*header);
        }
        let end = self.bytes.len() + header.sub_buffer_len();
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(end, 0);
        self.count += 1;
        self.summary.record_count += found.events as u32;
        self.summary.classes |= found.classes;
        self.summary.t_last = found.times.map_or(self.summary.t_last, |(_, last)| last);
    }

    /// Frees the memory of an empty chunk.
    pub fn release_memory(&mut self) {
        if self.is_empty() {
            self.bytes = Vec::new();
        }
    }

    /// Appends the body; returns the length of the head. Empties the chunk. `class_limit` is one more than the highest
    /// number of a class that is defined.
    pub fn take_body(&mut self, order: ByteOrder, class_limit: usize, out: &mut Vec<u8>) -> usize {
        let head = with_order!(order, O => self.head::<O>(class_limit));
        out.extend_from_slice(&head);
        out.extend_from_slice(&self.bytes);
        self.bytes.clear();
        self.count = 0;
        head.len()
    }

    fn head<O: zerocopy::ByteOrder>(&self, class_limit: usize) -> Vec<u8> {
        let Summary { t_base, t_last, first_event, record_count, loss, classes } = self.summary;
        let header = self.header.unwrap_or(HeaderPage {
            timestamp_offset: 0,
            commit_offset: 8,
            commit_size: 8,
            data_offset: 16,
            data_size: 1,
        });
        let head = SubBuffersHead::<O> {
            head_len: (size_of::<SubBuffersHead<O>>() as u32).into(),
            loss_flags: loss.flags().into(),
            lost_events: loss.counted.into(),
            t_base: t_base.into(),
            t_last: t_last.into(),
            first_event: first_event.into(),
            record_count: record_count.into(),
            sub_buffer_len: (header.sub_buffer_len() as u32).into(),
            sub_buffer_count: self.count.into(),
            timestamp_offset: (header.timestamp_offset as u16).into(),
            commit_offset: (header.commit_offset as u16).into(),
            commit_size: (header.commit_size as u16).into(),
            data_offset: (header.data_offset as u16).into(),
            class_limit: (class_limit as u32).into(),
            classes: classes.into(),
        };
        head.as_bytes().to_vec()
    }
}
