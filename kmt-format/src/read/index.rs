//! Opening a finished file by its index: no walk, and event chunks are not read until they are needed.
//!
//! The index is a hint. The chunks it leads to are compared with its rows, also the chunks that a time window
//! passes over; a wrong index gives an error, never another answer. Spec section "INDX".

use std::borrow::Cow;
use zerocopy::ByteOrder as Order;

use super::cast::struct_at;
use super::contents::Contents;
use super::event_chunk::loss;
use super::header::read_header;
use super::metadata::rows;
use super::walk::chunk_at;
use super::{ChunkRef, EventsInfo, Header, Trace};
use crate::Limits;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::with_order;
use crate::raw::{ALIGNMENT, ChunkKind, IndexRow, Trailer};

/// Bytes of the chunk with the trailer.
const TRAILER_LEN: usize = 2 * ALIGNMENT;

impl<'d> Trace<'d> {
    /// Opens a file by its index; `None` if it has none that can be used, and [`Trace::open`] must walk.
    ///
    /// Chunks without events are read as ever. Event chunks are not read: their index rows are
    /// checked when they are read, merged, or passed over by a time window.
    ///
    /// # Errors
    ///
    /// Returns the errors that [`Trace::open`] returns.
    pub fn open_indexed(data: &'d [u8], limits: Limits) -> Result<Option<Self>> {
        let (header, None) = read_header(data)? else { return Ok(None) };
        let index = with_order!(header.order, O => index::<O>(data, &header));
        let Some(index) = index else { return Ok(None) };
        let mut contents = Contents::new(header, None, limits, true);
        for (chunk, info) in &index {
            let is_events = matches!(chunk.kind, ChunkKind::EVENTS | ChunkKind::SUB_BUFFERS);
            let is_there = is_events || at(data, chunk.offset, &header).as_ref() == Some(chunk);
            if !is_there || chunk.check_lengths(&limits).is_err() {
                return Ok(None);
            }
            if is_events {
                contents.indexed_chunk(chunk, *info)?;
            } else {
                contents.chunk(chunk, Cow::Borrowed(chunk.stored_in(data)))?;
            }
        }
        contents.close(data.len() as u64);
        if contents.damage_count > 0 || !contents.finished {
            return Ok(None);
        }
        Ok(Some(Self::from_index(data, contents)))
    }

    /// Compares the index row of an event chunk with the chunk.
    pub(super) fn check_index(&self, chunk: &ChunkRef, info: &EventsInfo) -> Result<()> {
        let mismatch = |what| Error::at(chunk.offset, ErrorKind::Index(what));
        if at(self.data(), chunk.offset, self.header()).as_ref() != Some(chunk) {
            return Err(mismatch("a row leads to another chunk or to none"));
        }
        let prefix = chunk.prefix(chunk.stored_in(self.data()))?;
        if super::EventChunk::head(prefix, chunk, self.header().order)? != *info {
            return Err(mismatch("a row differs from the head of its chunk"));
        }
        Ok(())
    }
}

fn at(data: &[u8], offset: u64, header: &Header) -> Option<ChunkRef> {
    let [a, b, c, d, ..] = header.trace_uuid;
    chunk_at(data.get(usize::try_from(offset).ok()?..)?, offset, [a, b, c, d], header.order)
}

/// The chunks of the file, the index and the trailer among them; `None` if the index cannot be right.
fn index<O: Order + 'static>(data: &[u8], header: &Header) -> Option<Vec<(ChunkRef, EventsInfo)>> {
    let trailer_at = data.len().checked_sub(TRAILER_LEN)? as u64;
    let trailer_chunk =
        at(data, trailer_at, header).filter(|c| c.kind == ChunkKind::TRAILER && c.codec == 0)?;
    let body = trailer_chunk.body(trailer_chunk.stored_in(data)).ok()?;
    let trailer = struct_at::<Trailer<O>>(body, 0, 0).ok()?;
    let index_offset = trailer.index_offset.get();
    let index_chunk =
        at(data, index_offset, header).filter(|c| c.kind == ChunkKind::INDEX && c.codec == 0)?;
    if index_offset.checked_add(index_chunk.total_len) != Some(trailer_at) {
        return None;
    }
    let body = index_chunk.body(index_chunk.stored_in(data)).ok()?;
    let (rows, ..) = rows::<O, IndexRow<O>>(body, 0).ok()?;
    let [a, b, c, d, ..] = header.trace_uuid;
    let mut out = Vec::with_capacity(rows.len());
    // The rows cover the file without gaps: no chunk can be left out.
    let mut next = header.header_len as u64;
    for row in rows.iter() {
        let offset = row.offset.get();
        let chunk = chunk_at(&row.header, offset, [a, b, c, d], header.order)?;
        if offset != next || chunk.total_len == 0 {
            return None;
        }
        next = offset.checked_add(chunk.total_len)?;
        let info = EventsInfo {
            loss: loss(row.loss_flags.get(), row.lost_events.get()),
            t_first: row.t_base.get(),
            t_last: row.t_last.get(),
            first_event: row.first_event.get(),
            event_count: row.record_count.get(),
            classes: row.classes.get(),
        };
        out.push((chunk, info));
    }
    if next != index_offset {
        return None;
    }
    out.extend([(index_chunk, EventsInfo::NONE), (trailer_chunk, EventsInfo::NONE)]);
    Some(out)
}
