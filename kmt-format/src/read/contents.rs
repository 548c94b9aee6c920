//! Contents of a file, gathered chunk by chunk: by the slice reader and the incremental reader alike.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::body::{Body, decoded};
use super::fold::{FoldChunk, FoldInfo};
use super::sub_buffers::SubBufferDecoder;
use super::symbols::SymbolChunk;
use super::{ChunkRef, Damage, EventChunk, EventsInfo, Header, Metadata, Schema, SymbolTable};
use crate::Limits;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::with_order;
use crate::limits::{Budget, within_at};
use crate::raw::{ChunkKind, chunk_flags};

/// The event chunks of one CPU, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stream {
    /// The chunks with what their heads say. An incremental reader keeps none of them.
    pub chunks: Vec<(ChunkRef, EventsInfo)>,
    /// Event chunks that the numbering shows to be missing.
    pub chunks_missing: u64,
    /// Events in them.
    pub events_missing: u64,
    /// Events in the chunks that are there.
    events: u64,
    /// Number that the next chunk should have.
    next_sequence: u64,
    /// Number that the next event should have.
    next_event: u64,
}

impl Stream {
    /// Events in the chunks that are there.
    pub fn event_count(&self) -> u64 {
        self.events
    }

    /// Number of the event after the last known one.
    pub(crate) fn last_event(&self) -> u64 {
        self.next_event
    }

    /// Adds a chunk; false if it is a duplicate or out of order.
    fn add(&mut self, chunk: &ChunkRef, info: &EventsInfo) -> bool {
        let Some(missing) = u64::from(chunk.sequence).checked_sub(self.next_sequence) else { return false };
        self.chunks_missing = self.chunks_missing.saturating_add(missing);
        let events_missing = info.first_event.saturating_sub(self.next_event);
        self.events_missing = self.events_missing.saturating_add(events_missing);
        self.next_sequence = u64::from(chunk.sequence) + 1;
        self.next_event = info.first_event.max(self.next_event).saturating_add(info.event_count.into());
        self.events = self.events.saturating_add(info.event_count.into());
        true
    }
}

/// Result of adding a chunk.
#[derive(Debug)]
pub(crate) enum Taken<'d> {
    /// A chunk of events: its head is in its stream, and the events are in these bytes.
    Events(Cow<'d, [u8]>),
    /// A chunk of folded lives: its head was added, and the rest is in these bytes.
    Folded(Cow<'d, [u8]>),
    /// Another chunk, whose contents were added.
    Other,
    /// A chunk that cannot be used; the damage is recorded.
    Damaged(Damage),
}

/// Everything but the events themselves.
#[derive(Debug, Clone)]
pub(crate) struct Contents<'d> {
    pub header: Header,
    pub limits: Limits,
    pub schema: Schema,
    pub metadata: Metadata<'d>,
    pub symbols: Option<SymbolTable<'d>>,
    pub streams: BTreeMap<u32, Stream>,
    /// Chunks of folded lives, by the numbers of their intervals.
    pub folds: Vec<(ChunkRef, FoldInfo)>,
    /// Number that the next interval should have.
    next_fold: u64,
    /// Intervals that the numbering shows to be missing.
    pub folds_missing: u64,
    pub damages: Vec<Damage>,
    pub damage_count: u64,
    pub chunk_count: u64,
    pub event_bytes: u64,
    pub unknown_kinds: BTreeMap<[u8; 4], u64>,
    pub finished: bool,
    /// Memory for everything but events.
    metadata_len: u64,
    /// Decoded length of event chunks.
    events_len: u64,
    /// True if body checksums are checked.
    pub verify: bool,
    /// Set once all event chunks were read and found sound: then they are not checked again.
    pub sound: OnceLock<()>,
    /// True if streams keep their chunks.
    keeps_chunks: bool,
    /// Made for the first chunk of sub-buffers.
    decoder: Option<Arc<SubBufferDecoder>>,
}

impl<'d> Contents<'d> {
    pub fn new(header: Header, damage: Option<Error>, limits: Limits, keeps_chunks: bool) -> Self {
        let mut contents = Self {
            header,
            limits,
            schema: Schema::default(),
            metadata: Metadata::default(),
            symbols: None,
            streams: BTreeMap::new(),
            folds: Vec::new(),
            next_fold: 0,
            folds_missing: 0,
            damages: Vec::new(),
            damage_count: 0,
            chunk_count: 0,
            event_bytes: 0,
            unknown_kinds: BTreeMap::new(),
            finished: false,
            metadata_len: 0,
            events_len: 0,
            verify: true,
            sound: OnceLock::new(),
            keeps_chunks,
            decoder: None,
        };
        if let Some(error) = damage {
            contents.add_damage(Damage { offset: 0, len: header.header_len as u64, error });
        }
        contents
    }

    pub fn add_damage(&mut self, damage: Damage) {
        self.damage_count = self.damage_count.saturating_add(1);
        if self.damages.len() < self.limits.damages {
            self.damages.push(damage);
        }
    }

    /// Takes in a chunk, whose body and padding are `stored`.
    ///
    /// # Errors
    ///
    /// Returns an error if the file must be refused. A chunk that cannot be used is noted as damage.
    pub fn chunk(&mut self, chunk: &ChunkRef, stored: Cow<'d, [u8]>) -> Result<Taken<'d>> {
        self.begin(chunk)?;
        let used = match chunk.kind {
            ChunkKind::EVENTS | ChunkKind::SUB_BUFFERS => {
                let head = self.head(chunk, &stored);
                head.and_then(|info| self.add_events(chunk, info)).map(|()| Taken::Events(stored))
            }
            ChunkKind::FOLD => self.add_fold(chunk, &stored).map(|()| Taken::Folded(stored)),
            kind if kind.is_known() => self.other_chunk(chunk, stored).map(|()| Taken::Other),
            kind => {
                let count = self.unknown_kinds.entry(kind.0).or_default();
                *count = count.saturating_add(1);
                // Nothing is known of the body but its checksum.
                chunk.body(&stored).map(|_| Taken::Other)
            }
        };
        if let Err(error) = &used {
            if matches!(error.kind(), ErrorKind::LimitExceeded { name: "metadata", .. }) {
                return Err(error.clone());
            }
        }
        Ok(used.unwrap_or_else(|error| {
            let damage = Damage { offset: chunk.offset, len: chunk.total_len, error };
            self.add_damage(damage.clone());
            Taken::Damaged(damage)
        }))
    }

    /// Counts a chunk; refuses the file if it must be.
    fn begin(&mut self, chunk: &ChunkRef) -> Result<()> {
        self.chunk_count = self.chunk_count.saturating_add(1);
        within_at(chunk.offset, "chunks", "the number of chunks", self.chunk_count, self.limits.chunks)?;
        self.finished = chunk.kind == ChunkKind::TRAILER;
        // Only the last chunk can be the file's trailer.
        self.metadata.trailer = None;
        if !chunk.kind.is_known() && chunk.flags & chunk_flags::CRITICAL != 0 {
            return Err(Error::at(chunk.offset, ErrorKind::UnknownCriticalChunk { kind: chunk.kind.0 }));
        }
        let is_event_chunk = matches!(chunk.kind, ChunkKind::EVENTS | ChunkKind::SUB_BUFFERS);
        if is_event_chunk && chunk.raw_len <= self.limits.event_body_len {
            self.events_len = self.events_len.saturating_add(chunk.raw_len);
            let limit = self.limits.events_up_to(chunk.offset.saturating_add(chunk.total_len));
            within_at(
                chunk.offset,
                "events",
                "the decoded length of all event chunks",
                self.events_len,
                limit,
            )?;
        }
        Ok(())
    }

    /// Memory left for metadata after this chunk.
    fn budget(&self, chunk: &ChunkRef) -> Budget {
        let limit = self.limits.metadata_up_to(chunk.offset.saturating_add(chunk.total_len));
        Budget { used: self.metadata_len, limit }
    }

    /// Adds an event chunk by its index row.
    pub fn indexed_chunk(&mut self, chunk: &ChunkRef, info: EventsInfo) -> Result<()> {
        self.begin(chunk)?;
        if let Err(error) = self.add_events(chunk, info) {
            self.add_damage(Damage { offset: chunk.offset, len: chunk.total_len, error });
        }
        Ok(())
    }

    /// Fields of the head of an event chunk, whose prefix must be there and right.
    pub fn head(&self, chunk: &ChunkRef, stored: &[u8]) -> Result<EventsInfo> {
        EventChunk::head(chunk.prefix(stored)?, chunk, self.header.order)
    }

    /// Fields of the head of an event chunk that is not whole, or whose events cannot be read, after all checks for
    /// opening it but that of its sequence.
    pub fn head_alone(&self, chunk: &ChunkRef, stored: &[u8]) -> Result<EventsInfo> {
        let info = self.head(chunk, stored)?;
        self.check_event_chunk(chunk)?;
        Ok(info)
    }

    /// Checks the CPU and the lengths of an event chunk; returns the CPU.
    fn check_event_chunk(&self, chunk: &ChunkRef) -> Result<u32> {
        let bad = |what| Error::at(chunk.offset, ErrorKind::Malformed(what));
        let cpu = chunk.cpu.ok_or_else(|| bad("an event chunk belongs to no CPU"))?;
        let limited = |name, what, found, limit| within_at(chunk.offset, name, what, found, limit);
        let body_len = chunk.body_len.max(chunk.raw_len);
        let what = "the length of an event chunk's body";
        limited("event_body_len", what, body_len, self.limits.event_body_len)?;
        if !self.streams.contains_key(&cpu) {
            let count = (self.streams.len() as u64).saturating_add(1);
            limited("streams", "the number of CPUs", count, self.limits.streams.into())?;
        }
        Ok(cpu)
    }

    fn add_events(&mut self, chunk: &ChunkRef, info: EventsInfo) -> Result<()> {
        self.event_bytes = self.event_bytes.saturating_add(chunk.total_len);
        let bad = |what| Error::at(chunk.offset, ErrorKind::Malformed(what));
        let cpu = self.check_event_chunk(chunk)?;
        let stream = self.streams.entry(cpu).or_default();
        if !stream.add(chunk, &info) {
            return Err(bad("an event chunk is a duplicate or out of order"));
        }
        if self.keeps_chunks {
            stream.chunks.push((*chunk, info));
        }
        if chunk.kind == ChunkKind::SUB_BUFFERS && self.decoder.is_none() {
            let mut decoder = SubBufferDecoder::default();
            let mut budget = self.budget(chunk);
            let learnt = decoder.learn(&mut self.schema, self.header.long_size, &mut budget, chunk.offset);
            self.metadata_len = budget.used;
            learnt?;
            self.decoder = Some(Arc::new(decoder));
        }
        Ok(())
    }

    fn add_fold(&mut self, chunk: &ChunkRef, stored: &[u8]) -> Result<()> {
        let bad = |what| Error::at(chunk.offset, ErrorKind::Malformed(what));
        if !self.header.folded {
            return Err(bad("folded lives in a file whose header does not announce them"));
        }
        let info = FoldChunk::head(chunk.prefix(stored)?, chunk, &self.header)?;
        let missing = info.number.checked_sub(self.next_fold);
        let missing = missing.ok_or_else(|| bad("a chunk of folded lives is a duplicate or out of order"))?;
        let mut budget = self.budget(chunk);
        budget.take(size_of::<(ChunkRef, FoldInfo)>(), chunk.offset)?;
        self.metadata_len = budget.used;
        self.folds_missing = self.folds_missing.saturating_add(missing);
        self.next_fold = info.number.saturating_add(1);
        if self.keeps_chunks {
            self.folds.push((*chunk, info));
        }
        Ok(())
    }

    /// The folded lives of a chunk, whose body and padding are `stored`.
    pub fn fold<'s>(&self, chunk: &ChunkRef, stored: Cow<'s, [u8]>) -> Result<FoldChunk<'s>> {
        let body = decoded(chunk, stored, &self.header, &self.limits, self.verify, None)?;
        FoldChunk::parse(body.0, chunk, &self.header, &self.schema, &self.limits)
    }

    /// Takes in the head of a torn chunk; says whether it belongs into its stream.
    pub fn add_torn(&mut self, chunk: &ChunkRef, stored: &[u8]) -> Result<bool> {
        let info = self.head_alone(chunk, stored)?;
        let Some(cpu) = chunk.cpu else { return Ok(false) };
        Ok(self.streams.entry(cpu).or_default().add(chunk, &info))
    }

    /// Counts the events of a chunk that cannot be used among those that are missing.
    pub fn add_missing(&mut self, chunk: &ChunkRef, info: &EventsInfo) {
        let Some(cpu) = chunk.cpu else { return };
        let stream = self.streams.entry(cpu).or_default();
        let end = info.first_event.saturating_add(info.event_count.into());
        stream.next_event = stream.next_event.max(end);
    }

    /// Head of the chunk that was added last.
    pub fn last_info(&self, chunk: &ChunkRef) -> Option<EventsInfo> {
        self.streams.get(&chunk.cpu?)?.chunks.last().map(|(_, info)| *info)
    }

    fn other_chunk(&mut self, chunk: &ChunkRef, stored: Cow<'d, [u8]>) -> Result<()> {
        let mut budget = self.budget(chunk);
        let body = decoded(chunk, stored, &self.header, &self.limits, true, Some(&mut budget))?;
        let used = self.take_apart(chunk, body, &mut budget);
        self.metadata_len = budget.used;
        used
    }

    fn take_apart(&mut self, chunk: &ChunkRef, body: Body<'d>, budget: &mut Budget) -> Result<()> {
        let base = chunk.body_offset();
        let order = self.header.order;
        let metadata = &mut self.metadata;
        with_order!(order, O => match chunk.kind {
            ChunkKind::SCHEMA => self.classes(&body, base, budget),
            ChunkKind::CLOCK => metadata.add_clock::<O>(&body, base),
            ChunkKind::TASKS => metadata.add_tasks::<O>(&body, base, budget),
            ChunkKind::STATS => metadata.add_stats::<O>(&body, base, &self.limits),
            ChunkKind::TRAILER => metadata.add_trailer::<O>(&body, base),
            ChunkKind::META => metadata.add_pairs(&body, base, order, budget),
            ChunkKind::FILE => metadata.add_file::<O>(&body, base, budget),
            ChunkKind::LINES => metadata.add_lines::<O>(&body, base, budget),
            ChunkKind::CGROUPS => metadata.add_cgroups::<O>(&body, base, budget),
            ChunkKind::SUMS => metadata.add_sums::<O>(&body, base, budget),
            ChunkKind::SYMBOLS => {
                let symbols = SymbolChunk::parse(body.0, base, order)?;
                budget.take(symbols.memory(), base)?;
                self.symbols.get_or_insert_default().add(symbols);
                Ok(())
            }
            // The header's copy has been used where it was needed, and the index is a hint.
            _ => Ok(()),
        })
    }

    fn classes(&mut self, body: &[u8], base: u64, budget: &mut Budget) -> Result<()> {
        let (limits, long_size) = (&self.limits, self.header.long_size);
        with_order!(self.header.order, O => self.schema.add::<O>(body, base, long_size, limits, budget)?);
        if let Some(decoder) = &mut self.decoder {
            let decoder = Arc::make_mut(decoder);
            decoder.learn(&mut self.schema, self.header.long_size, budget, base)?;
        }
        Ok(())
    }

    /// The events of a chunk, whose body and padding are `stored`.
    pub fn events<'s>(&self, chunk: &ChunkRef, stored: Cow<'s, [u8]>) -> Result<EventChunk<'s>> {
        let is_sound = self.sound.get().is_some();
        let body = decoded(chunk, stored, &self.header, &self.limits, self.verify && !is_sound, None)?;
        if chunk.kind != ChunkKind::SUB_BUFFERS {
            let schema = Some(&self.schema).filter(|_| !is_sound);
            return EventChunk::parse(body.0, chunk, &self.header, schema, &self.limits, 0);
        }
        let bad =
            || Error::at(chunk.offset, ErrorKind::Malformed("a chunk of sub-buffers that was not opened"));
        let decoder = self.decoder.as_ref().ok_or_else(bad)?;
        decoder.decode(&body, chunk, &self.header, &self.schema, &self.limits)
    }

    /// Ends a file of `file_len` bytes: compares the trailer, if there is one.
    pub fn close(&mut self, file_len: u64) -> Option<Damage> {
        let trailer = self.metadata.trailer.filter(|_| self.finished);
        self.finished = trailer.is_some();
        let trailer = trailer?;
        let disagrees = trailer.file_len != file_len || u64::from(trailer.chunk_count) != self.chunk_count;
        if disagrees && self.damage_count == 0 {
            let what = "the trailer has other counts of chunks or bytes than the file";
            let error = Error::at(file_len, ErrorKind::Malformed(what));
            let damage = Damage { offset: file_len, len: 0, error };
            self.add_damage(damage.clone());
            return Some(damage);
        }
        None
    }
}
