//! From a chunk as it is stored to its body: checksum, codec, filter.

use std::borrow::Cow;
use zerocopy::{ByteOrder as Order, FromBytes};

use super::{ChunkRef, Header};
use crate::Limits;
use crate::codec::{self, Encoded, FilteredRecords};
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::with_order;
use crate::limits::{Budget, within_at};
use crate::raw::{ChunkKind, EventsHead};

/// The body of a chunk. `stored` is body and padding; `verify` selects the check of the checksum. `budget` is charged for
/// an encoded body.
pub(crate) fn decoded<'d>(
    chunk: &ChunkRef,
    stored: Cow<'d, [u8]>,
    header: &Header,
    limits: &Limits,
    verify: bool,
    budget: Option<&mut Budget>,
) -> Result<Body<'d>> {
    if verify {
        chunk.body(&stored)?;
    }
    let body = Body(Body(stored).part(0, chunk.body_len).unwrap_or_default());
    let bad = |what| Error::at(chunk.offset, ErrorKind::Malformed(what));
    let is_plain = matches!(chunk.kind, ChunkKind::HEADER_COPY | ChunkKind::INDEX | ChunkKind::TRAILER);
    if is_plain && chunk.codec != 0 {
        return Err(bad("a chunk has a codec, which its kind does not allow"));
    }
    if chunk.codec == 0 {
        return if chunk.raw_len == chunk.body_len {
            Ok(body)
        } else {
            Err(bad("a body without a codec has two different lengths"))
        };
    }
    let (name, what, limit) = match chunk.kind {
        ChunkKind::EVENTS | ChunkKind::SUB_BUFFERS => {
            ("event_body_len", "the decoded length of an event chunk", limits.event_body_len)
        }
        _ => ("decoded_len", "the decoded length of a chunk", limits.chunk_len.min(limits.decoded_len)),
    };
    within_at(chunk.offset, name, what, chunk.raw_len, limit)?;
    let encoded = Encoded {
        codec: chunk.codec,
        stored: &body,
        prefix_len: chunk.prefix_len as usize,
        raw_len: chunk.raw_len as usize,
        offset: chunk.offset,
        has_records: chunk.kind == ChunkKind::EVENTS,
    };
    let reserve = |len| budget.map_or(Ok(()), |budget| budget.take(len, chunk.offset));
    let records = |prefix: &[u8]| match chunk.kind {
        ChunkKind::EVENTS => with_order!(header.order, O => records_of::<O>(prefix, header)),
        _ => None,
    };
    codec::decode(encoded, reserve, records).map(|bytes| Body(Cow::Owned(bytes)))
}

/// Position of the records, by the head in the prefix of an event chunk.
fn records_of<O: Order>(prefix: &[u8], header: &Header) -> Option<FilteredRecords> {
    let (head, _) = EventsHead::<O>::ref_from_prefix(prefix).ok()?;
    let (offset, count) = (head.records_offset.get() as usize, head.record_count.get() as usize);
    codec::records_behind(prefix.len(), offset, count, header.long_size.saturating_add(8), header.order)
}

/// A decoded body: borrowed from the file where it is stored as it is.
#[derive(Debug)]
pub(crate) struct Body<'d>(pub Cow<'d, [u8]>);

impl core::ops::Deref for Body<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl<'d> Body<'d> {
    /// Part of the body, borrowed where the body is.
    pub fn part(&self, start: usize, len: u64) -> Option<Cow<'d, [u8]>> {
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        Some(match &self.0 {
            Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(start..end)?),
            Cow::Owned(bytes) => Cow::Owned(bytes.get(start..end)?.to_vec()),
        })
    }

    /// Part of the body that is text.
    pub fn text_part(&self, start: usize, len: u64) -> Option<Cow<'d, str>> {
        match self.part(start, len)? {
            Cow::Borrowed(bytes) => core::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
        }
    }
}
