//! Framing: chunks with their headers, checksums and codecs, the index of them, and the trailer.

use zerocopy::{IntoBytes, LittleEndian};

use super::frame::{ChunkId, Frame};
use super::rows::table_head;
use crate::codec::{self, Compression};
use crate::error::Result;
use crate::kernel::{ByteOrder, with_order};
use crate::pack::{BodyLayout, Summary};
use crate::raw::{ALIGNMENT, ChunkHeader, ChunkKind, IndexRow, Trailer};

/// Row of the index for a chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexEntry {
    pub offset: u64,
    pub header: [u8; ALIGNMENT],
    pub summary: Summary,
}

/// The file as it grows.
#[derive(Debug)]
pub(crate) struct Framer {
    pub order: ByteOrder,
    pub uuid: [u8; 16],
    pub compression: Compression,
    /// Codec of attached files. If there is one, keys, tasks, counters and classes are stored with LZ4.
    pub attachment_compression: Compression,
    pub out: Vec<u8>,
    pub file_len: u64,
    pub event_count: u64,
    pub event_bytes: u64,
    pub loose_sequence: u32,
    /// Lowest number that the next interval of folded lives may have.
    pub next_fold: u64,
    pub chunk_count: u64,
    /// Chunks that the index lists at most; none once there are more.
    pub index_rows_max: usize,
    pub index: Vec<IndexEntry>,
}

impl Framer {
    /// An empty file.
    pub fn start_of(order: ByteOrder, uuid: [u8; 16], compression: Compression) -> Self {
        Self {
            order,
            uuid,
            compression,
            attachment_compression: compression,
            out: Vec::new(),
            file_len: 0,
            event_count: 0,
            event_bytes: 0,
            loose_sequence: 0,
            next_fold: 0,
            chunk_count: 0,
            index_rows_max: usize::MAX,
            index: Vec::new(),
        }
    }

    /// Makes room for a header; the body is appended to `out` then, and [`Framer::frame`] makes a chunk of it.
    pub fn start(&mut self) -> usize {
        let start = self.out.len();
        self.out.resize(start + ALIGNMENT, 0);
        start
    }

    /// Writes a chunk of no CPU.
    pub fn loose_chunk(&mut self, kind: ChunkKind, flags: u8, body: &[u8]) -> Result<()> {
        let start = self.start();
        self.out.extend_from_slice(body);
        let id = self.loose_id(kind, flags);
        self.frame(start, id, &BodyLayout::plain())
    }

    fn loose_id(&mut self, kind: ChunkKind, flags: u8) -> ChunkId {
        let sequence = self.next_loose();
        ChunkId { kind, flags, stream: ChunkHeader::<LittleEndian>::NO_STREAM, sequence }
    }

    /// Number of the next chunk of no CPU.
    pub fn next_loose(&mut self) -> u32 {
        let sequence = self.loose_sequence;
        self.loose_sequence = self.loose_sequence.wrapping_add(1);
        sequence
    }

    fn compression_of(&self, kind: ChunkKind) -> Compression {
        match kind {
            ChunkKind::FILE | ChunkKind::FOLD => self.attachment_compression,
            _ if self.attachment_compression == self.compression => self.compression,
            ChunkKind::META | ChunkKind::TASKS | ChunkKind::STATS | ChunkKind::SCHEMA => Compression::Lz4,
            _ => self.compression,
        }
    }

    /// Length of a chunk of that body.
    pub fn len_of(&self, kind: ChunkKind, body: &[u8]) -> u64 {
        let encoded = match self.compression_of(kind) {
            Compression::None => None,
            compression => codec::encode(compression, body, None).ok().flatten(),
        };
        let len = encoded.map_or(body.len(), |stored| stored.bytes.len());
        (ALIGNMENT + len).next_multiple_of(ALIGNMENT) as u64
    }

    /// Makes a chunk of the body at the end of `out`, after room for its header at `start`.
    pub fn frame(&mut self, start: usize, id: ChunkId, layout: &BodyLayout) -> Result<()> {
        let body_start = start + ALIGNMENT;
        let raw_len = self.out.len() - body_start;
        let rest_start = body_start + layout.prefix_len;
        let compression = self.compression_of(id.kind);
        let may_encode = compression != Compression::None
            && ![ChunkKind::HEADER_COPY, ChunkKind::INDEX, ChunkKind::TRAILER].contains(&id.kind);
        let mut codec = 0;
        if may_encode {
            let rest = self.out.get(rest_start..).unwrap_or_default();
            if let Some(stored) = codec::encode(compression, rest, layout.records.as_ref())? {
                codec = stored.codec;
                self.out.truncate(rest_start);
                self.out.extend_from_slice(&stored.bytes);
            }
        }
        let body_len = self.out.len() - body_start;
        let total_len = (ALIGNMENT + body_len).next_multiple_of(ALIGNMENT);
        self.out.resize(start + total_len, 0);
        let prefix = self.out.get(body_start..rest_start).unwrap_or_default();
        let frame = Frame {
            id,
            codec,
            total_len,
            body_len,
            raw_len,
            body_crc: crc32fast::hash(self.out.get(body_start..).unwrap_or_default()),
            prefix_len: layout.prefix_len,
            prefix_crc: crc32fast::hash(prefix),
        };
        self.seal(start, &frame, layout.summary);
        Ok(())
    }

    /// Appends a chunk whose stored body is known already.
    pub fn stored_chunk(&mut self, frame: &Frame, stored: &[u8], summary: Summary) {
        let start = self.start();
        self.out.extend_from_slice(stored);
        self.out.resize(start + frame.total_len, 0);
        self.seal(start, frame, summary);
    }

    fn seal(&mut self, start: usize, frame: &Frame, summary: Summary) {
        let header = with_order!(self.order, O => frame.header::<O>(self.uuid));
        if let Some(place) = self.out.get_mut(start..start + ALIGNMENT) {
            place.copy_from_slice(&header);
        }
        let total_len = frame.total_len as u64;
        let id = frame.id;
        self.chunk_count += 1;
        if self.index.len() < self.index_rows_max {
            self.index.push(IndexEntry { offset: self.file_len, header, summary });
        }
        self.file_len += total_len;
        if matches!(id.kind, ChunkKind::EVENTS | ChunkKind::SUB_BUFFERS) {
            self.event_count += u64::from(summary.record_count);
            self.event_bytes += total_len;
        }
    }

    /// Bytes of the index and the trailer, if the file had one more chunk.
    pub fn closing_len(&self) -> u64 {
        let rows = self.index.len() as u64 + 1;
        let index = if self.index.len() as u64 == self.chunk_count { 256 + rows * 112 } else { 0 };
        index + 128
    }

    /// Writes the index and the trailer.
    pub fn close(&mut self) -> Result<()> {
        let mut index_offset = 0;
        if self.index.len() as u64 == self.chunk_count {
            index_offset = self.file_len;
            let index = with_order!(self.order, O => self.index_body::<O>());
            self.loose_chunk(ChunkKind::INDEX, 0, &index)?;
        }
        let trailer = with_order!(self.order, O => self.trailer::<O>(index_offset));
        self.loose_chunk(ChunkKind::TRAILER, 0, &trailer)
    }

    fn trailer<O: zerocopy::ByteOrder>(&self, index_offset: u64) -> Vec<u8> {
        let total_len = (ALIGNMENT + size_of::<Trailer<O>>()).next_multiple_of(ALIGNMENT) as u64;
        let trailer = Trailer::<O> {
            head_len: (size_of::<Trailer<O>>() as u32).into(),
            chunk_count: (self.chunk_count as u32 + 1).into(),
            file_len: (self.file_len + total_len).into(),
            event_count: self.event_count.into(),
            event_bytes: self.event_bytes.into(),
            index_offset: index_offset.into(),
        };
        trailer.as_bytes().to_vec()
    }

    fn index_body<O: zerocopy::ByteOrder>(&self) -> Vec<u8> {
        let mut out = table_head::<O, IndexRow<O>>(self.index.len(), 0);
        for entry in &self.index {
            let Summary { t_base, t_last, first_event, record_count, loss, classes } = entry.summary;
            let row = IndexRow::<O> {
                offset: entry.offset.into(),
                t_base: t_base.into(),
                t_last: t_last.into(),
                first_event: first_event.into(),
                lost_events: loss.counted.into(),
                record_count: record_count.into(),
                loss_flags: loss.flags().into(),
                classes: classes.into(),
                header: entry.header,
            };
            out.extend_from_slice(row.as_bytes());
        }
        out
    }
}
