//! A chunk of sub-buffers, kept as the kernel wrote them. Spec section "RAWP".

use zerocopy::{BigEndian, IntoBytes, LittleEndian};

use super::event_chunk::Summary;
use crate::kernel::{ByteOrder, HeaderPage};
use crate::raw::SubBuffersHead;

/// Bytes of sub-buffers at which a chunk is closed.
const LEN_MAX: usize = 1 << 20;
/// Events of one chunk at most, so that each may have a descriptor and a context of its own when it is decoded.
pub(crate) const EVENTS_MAX: usize = 60_000;

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

    /// Whether the chunk has to be closed before a sub-buffer with so many events from `t_first` on.
    pub fn must_close_before(&self, header: &HeaderPage, events: usize, t_first: u64) -> bool {
        self.count > 0
            && (self.header.as_ref() != Some(header)
                || self.bytes.len() + header.sub_buffer_len() > LEN_MAX
                || self.summary.record_count as usize + events > EVENTS_MAX
                || t_first < self.summary.t_last)
    }

    /// Adds a sub-buffer; `start` is what the head of a new chunk says.
    pub fn push(&mut self, bytes: &[u8], header: &HeaderPage, events: u32, t_last: u64, start: Summary) {
        if self.count == 0 {
            self.summary = Summary { record_count: 0, ..start };
            self.header = Some(*header);
        }
        let end = self.bytes.len() + header.sub_buffer_len();
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(end, 0);
        self.count += 1;
        self.summary.record_count += events;
        self.summary.t_last = t_last;
    }

    /// Appends the body; returns the length of the head. Empties the chunk.
    pub fn take_body(&mut self, order: ByteOrder, out: &mut Vec<u8>) -> usize {
        let head = match order {
            ByteOrder::Little => self.head::<LittleEndian>(),
            ByteOrder::Big => self.head::<BigEndian>(),
        };
        out.extend_from_slice(&head);
        out.extend_from_slice(&self.bytes);
        self.bytes.clear();
        self.count = 0;
        head.len()
    }

    fn head<O: zerocopy::ByteOrder>(&self) -> Vec<u8> {
        let Summary { t_base, t_last, first_event, record_count, loss } = self.summary;
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
            reserved: 0.into(),
        };
        head.as_bytes().to_vec()
    }
}
