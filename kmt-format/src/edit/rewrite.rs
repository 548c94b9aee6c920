//! A rewritten file: without damaged parts, with another codec if requested.

use std::collections::VecDeque;
use zerocopy::{ByteOrder as Order, FromBytes, LittleEndian};

use super::scan::Scan;
use crate::Limits;
use crate::codec::{Compression, records_behind};
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{ByteOrder, with_order};
use crate::pack::{BodyLayout, Summary};
use crate::raw::{ChunkKind, EventsHead, FoldHead, SubBuffersHead, chunk_flags};
use crate::read::recovering::{decoded, header_bytes};
use crate::read::{ChunkRef, Damage, EarlyEnd, EventsInfo};
use crate::write::framing::{ChunkId, Frame, Framer};
use crate::write::pairs_body;

/// Options of a rewrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RewriteOptions {
    /// Codec of bodies; `None`: as they are.
    pub compression: Option<Compression>,
}

impl RewriteOptions {
    /// Everything as it is.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the codec of bodies.
    #[must_use]
    pub fn compression(mut self, compression: impl Into<Option<Compression>>) -> Self {
        self.compression = compression.into();
        self
    }
}

/// Result of a rewrite.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Events that the new file holds.
    pub events: u64,
    /// Of those, events of a torn chunk, whose checksum could not be checked.
    pub events_unverified: u64,
    /// Events that the old file held once and the new one does not.
    pub events_missing: u64,
    /// True if `events_missing` is exact. Where the end of the file is missing, it is a minimum.
    pub missing_is_exact: bool,
    /// Chunks of unknown kinds left out, because they are not marked safe to copy.
    pub unknown_left_out: u64,
    /// Damaged places; the list ends at [`Limits::damages`] entries.
    pub damages: Vec<Damage>,
    /// Number of damaged places.
    pub damage_count: u64,
    /// True if the old file was finished.
    pub was_finished: bool,
    /// True if the recording ended unexpectedly: the old file was not finished, or made of one that was not.
    pub ended_early: bool,
}

impl Recovery {
    /// True if nothing was damaged or missing.
    pub fn is_sound(&self) -> bool {
        self.damage_count == 0 && self.events_missing == 0 && self.was_finished
    }
}

/// Writes a file again, chunk by chunk: what is damaged is left out, what is torn is used as far as it goes.
///
/// The new file is finished and sound. Its event chunks keep their numbers, so that readers count what is missing
/// between them. Spec section "Recovery".
///
/// ```
/// use kmt_format::edit::{Rewrite, RewriteOptions};
/// use kmt_format::{Compression, Limits, read::Trace};
/// # let file = kmt_format::example()?;
/// let torn = &file[..file.len() - 10];
/// let options = RewriteOptions::new().compression(Compression::Lz4);
/// let mut rewrite = Rewrite::new(torn, Limits::default(), options)?;
/// let mut whole = Vec::new();
/// while let Some(bytes) = rewrite.next_bytes()? {
///     whole.extend(bytes);
/// }
/// assert!(Trace::open(&whole)?.is_finished());
/// # Ok::<(), kmt_format::Error>(())
/// ```
pub struct Rewrite<'d> {
    pub(super) data: &'d [u8],
    pub(super) scan: Scan<'d>,
    framer: Framer,
    recode: bool,
    pub(super) todo: VecDeque<Job>,
    pub(super) recovery: Recovery,
}

/// A part of the new file.
pub(super) enum Job {
    Chunk(ChunkRef),
    Salvaged(ChunkRef, Vec<u8>, EventsInfo),
    Summary,
    Close,
}

impl core::fmt::Debug for Rewrite<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Rewrite").field("recovery", &self.recovery).finish_non_exhaustive()
    }
}

impl<'d> Rewrite<'d> {
    /// Scans a file; [`Rewrite::next_bytes`] makes the new one.
    ///
    /// # Errors
    ///
    /// Returns an error if there is neither a header nor its copy, or the file must be refused.
    pub fn new(data: &'d [u8], limits: Limits, options: RewriteOptions) -> Result<Self> {
        let compression = options.compression.unwrap_or_default();
        if !compression.is_available() {
            return Err(Error::new(ErrorKind::CodecNotBuilt { codec: "zstd" }));
        }
        let scan = Scan::new(data, limits)?;
        let header = &scan.contents.header;
        let framer = Framer::start_of(header.order, header.trace_uuid, compression);
        let mut rewrite = Self {
            data,
            framer,
            recode: options.compression.is_some(),
            todo: VecDeque::new(),
            recovery: Recovery::default(),
            scan,
        };
        rewrite.plan();
        let bytes = header_bytes(data).unwrap_or_default().to_vec();
        rewrite.framer.out.extend_from_slice(&bytes);
        rewrite.framer.file_len = bytes.len() as u64;
        rewrite.framer.loose_chunk(ChunkKind::HEADER_COPY, 0, &bytes)?;
        Ok(rewrite)
    }

    /// Events of the old file, kept and lost.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// More bytes of the new file; `None` after its end.
    ///
    /// # Errors
    ///
    /// Returns an error if the codec refuses a chunk.
    pub fn next_bytes(&mut self) -> Result<Option<Vec<u8>>> {
        let Some(job) = self.todo.pop_front() else {
            return Ok(Some(core::mem::take(&mut self.framer.out)).filter(|out| !out.is_empty()));
        };
        match job {
            Job::Chunk(chunk) => self.copy(&chunk)?,
            // A new head or fewer records: the checksum does not cover what the target wrote.
            Job::Salvaged(chunk, body, info) => {
                let id = ChunkId { flags: chunk.flags | chunk_flags::UNVERIFIED, ..self.id_of(&chunk) };
                self.encode(id, &body, info)?;
            }
            Job::Summary => self.write_summary()?,
            Job::Close => self.framer.close()?,
        }
        Ok(Some(core::mem::take(&mut self.framer.out)))
    }

    /// Writes a summary of the recovery into the new file.
    fn write_summary(&mut self) -> Result<()> {
        let recovery = &self.recovery;
        let text = format!(
            "{} damaged places, {}{} events missing, {} unverified",
            recovery.damage_count,
            if recovery.missing_is_exact { "" } else { "at least " },
            recovery.events_missing,
            recovery.events_unverified,
        );
        let end = (!recovery.was_finished).then(|| EarlyEnd::of(&self.scan.contents)).flatten();
        let end = end.map(|end| end.to_text());
        let mut pairs = vec![("recovery", text.as_bytes())];
        pairs.extend(end.as_ref().map(|end| (EarlyEnd::KEY, end.as_bytes())));
        let body = pairs_body(self.scan.order(), &pairs);
        self.framer.loose_chunk(ChunkKind::META, chunk_flags::SAFE_TO_COPY, &body)
    }

    fn id_of(&self, chunk: &ChunkRef) -> ChunkId {
        let stream = chunk.cpu.unwrap_or(u32::MAX);
        ChunkId { kind: chunk.kind, flags: chunk.flags, stream, sequence: chunk.sequence }
    }

    fn copy(&mut self, chunk: &ChunkRef) -> Result<()> {
        let stored = self.scan.stored(self.data, chunk);
        let contents = &self.scan.contents;
        let info = self.scan.info_of(chunk);
        let mut id = self.id_of(chunk);
        if chunk.cpu.is_none() {
            id.sequence = self.framer.loose_sequence;
            self.framer.loose_sequence = id.sequence.wrapping_add(1);
        }
        if self.recode && chunk.kind.is_known() {
            let body = decoded(chunk, stored, &contents.header, &contents.limits, false, None)?;
            return self.encode(id, &body, info.unwrap_or(EventsInfo::NONE));
        }
        let frame = frame_of(chunk, id);
        self.framer.stored_chunk(&frame, &stored, summary(&info.unwrap_or(EventsInfo::NONE)));
        Ok(())
    }

    fn encode(&mut self, id: ChunkId, body: &[u8], info: EventsInfo) -> Result<()> {
        let (order, long_size) = (self.scan.order(), self.scan.contents.header.long_size);
        let is_plain = self.framer.compression == Compression::None;
        let layout = match id.kind {
            ChunkKind::EVENTS => {
                with_order!(order, O => events_layout::<O>(body, is_plain, long_size, order))
            }
            ChunkKind::SUB_BUFFERS => {
                let head_len = order.uint_at(body, 0, 4).unwrap_or(0) as usize;
                let prefix_len = head_len.max(size_of::<SubBuffersHead<LittleEndian>>()).min(body.len());
                Some(BodyLayout { prefix_len, ..BodyLayout::plain() })
            }
            ChunkKind::FOLD => {
                let prefix_len = size_of::<FoldHead<LittleEndian>>().min(body.len());
                Some(BodyLayout { prefix_len, ..BodyLayout::plain() })
            }
            _ => None,
        };
        let layout = BodyLayout { summary: summary(&info), ..layout.unwrap_or_else(BodyLayout::plain) };
        let start = self.framer.start();
        self.framer.out.extend_from_slice(body);
        self.framer.frame(start, id, &layout)
    }
}

/// The prefix is all before the records where they come last; with a codec, the head.
fn events_layout<O: Order>(
    body: &[u8],
    is_plain: bool,
    long_size: usize,
    order: ByteOrder,
) -> Option<BodyLayout> {
    let (head, _) = EventsHead::<O>::ref_from_prefix(body).ok()?;
    let head_len = head.head_len.get() as usize;
    let (offset, count) = (head.records_offset.get() as usize, head.record_count.get() as usize);
    let stride = long_size.saturating_add(8);
    let is_last = offset.checked_add(count.checked_mul(stride)?)? == body.len() && offset >= head_len;
    let prefix_len = if is_plain && is_last { offset } else { head_len };
    let records = records_behind(prefix_len, offset, count, stride, order);
    Some(BodyLayout { prefix_len, records, ..BodyLayout::plain() })
}

pub(super) fn summary(info: &EventsInfo) -> Summary {
    Summary {
        t_base: info.t_first,
        t_last: info.t_last,
        first_event: info.first_event,
        record_count: info.event_count,
        loss: info.loss,
        classes: info.classes,
    }
}

/// The frame of a chunk that is copied as it is stored.
pub(super) fn frame_of(chunk: &ChunkRef, id: ChunkId) -> Frame {
    Frame {
        id,
        codec: chunk.codec,
        total_len: chunk.total_len as usize,
        body_len: chunk.body_len as usize,
        raw_len: chunk.raw_len as usize,
        body_crc: chunk.body_crc,
        prefix_len: chunk.prefix_len as usize,
        prefix_crc: chunk.prefix_crc,
    }
}
