//! A whole file.

use std::collections::BTreeMap;
use zerocopy::{BigEndian, LittleEndian};

use super::header::read_header;
use super::walk::{Found, Walk};
use super::{ChunkRef, Damage, EventChunk, EventsInfo, Header, Merge, Metadata, Schema, SymbolTable};
use crate::Limits;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::ByteOrder;
use crate::raw::{ChunkKind, chunk_flags};

/// The event chunks of one CPU, in order.
#[derive(Debug, Clone, Default)]
pub struct Stream {
    /// The chunks with what their heads say.
    pub chunks: Vec<(ChunkRef, EventsInfo)>,
    /// Event chunks that the numbering shows to be missing.
    pub chunks_missing: u64,
    /// Events in them.
    pub events_missing: u64,
}

impl Stream {
    /// Events in the chunks that are there.
    pub fn event_count(&self) -> u64 {
        self.chunks.iter().map(|(_, info)| u64::from(info.event_count)).sum()
    }
}

/// A .kmt file in memory or mapped, opened for reading.
///
/// Opening walks over the chunk headers and reads schema, symbols and metadata; event chunks are checked and cast
/// when they are read. What is damaged is listed and passed over: everything undamaged can still be read. Memory is
/// one small entry a chunk, never in proportion to the events. Spec section "Reading".
#[derive(Debug, Clone)]
pub struct Trace<'d> {
    data: &'d [u8],
    header: Header,
    limits: Limits,
    schema: Schema,
    metadata: Metadata<'d>,
    symbols: Option<SymbolTable<'d>>,
    streams: BTreeMap<u32, Stream>,
    damages: Vec<Damage>,
    damage_count: u64,
    chunk_count: u64,
    event_bytes: u64,
    unknown_kinds: BTreeMap<[u8; 4], u64>,
    finished: bool,
}

impl<'d> Trace<'d> {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// Returns an error if this is no .kmt file, if its version, features or critical chunks are unknown, or if
    /// neither its header nor the header's copy can be used. Other damage is listed by [`Trace::damages`].
    pub fn open(data: &'d [u8], limits: Limits) -> Result<Self> {
        let (header, header_damage) = read_header(data)?;
        let mut trace = Self {
            data,
            header,
            limits,
            schema: Schema::default(),
            metadata: Metadata::default(),
            symbols: None,
            streams: BTreeMap::new(),
            damages: Vec::new(),
            damage_count: 0,
            chunk_count: 0,
            event_bytes: 0,
            unknown_kinds: BTreeMap::new(),
            finished: false,
        };
        if let Some(error) = header_damage {
            trace.note(Damage { offset: 0, len: header.header_len as u64, error });
        }
        for found in Walk::new(data, &header, limits) {
            match found {
                Found::Damage(damage) => trace.note(damage),
                Found::Chunk(chunk) => trace.chunk(chunk)?,
            }
        }
        trace.close();
        Ok(trace)
    }

    fn note(&mut self, damage: Damage) {
        self.damage_count += 1;
        if self.damages.len() < self.limits.damages {
            self.damages.push(damage);
        }
    }

    fn chunk(&mut self, chunk: ChunkRef) -> Result<()> {
        self.chunk_count += 1;
        if self.chunk_count > self.limits.chunks {
            let (found, limit) = (self.chunk_count, self.limits.chunks);
            return Err(Error::at(
                chunk.offset,
                ErrorKind::LimitExceeded { what: "the number of chunks", found, limit },
            ));
        }
        self.finished = chunk.kind == ChunkKind::TRAILER;
        if !chunk.kind.is_known() {
            if chunk.flags & chunk_flags::CRITICAL != 0 {
                return Err(Error::at(chunk.offset, ErrorKind::UnknownCriticalChunk { kind: chunk.kind.0 }));
            }
            *self.unknown_kinds.entry(chunk.kind.0).or_default() += 1;
            // Nothing is known of the body but its checksum.
            if let Err(error) = chunk.body(self.data) {
                self.note(Damage { offset: chunk.offset, len: chunk.total_len, error });
            }
            return Ok(());
        }
        if chunk.codec != 0 {
            return Err(Error::at(chunk.offset + 13, ErrorKind::UnknownCodec { codec: chunk.codec }));
        }
        let used = match chunk.kind {
            ChunkKind::EVENTS => self.event_chunk(chunk),
            _ => self.other_chunk(&chunk),
        };
        if let Err(error) = used {
            self.note(Damage { offset: chunk.offset, len: chunk.total_len, error });
        }
        Ok(())
    }

    fn event_chunk(&mut self, chunk: ChunkRef) -> Result<()> {
        self.event_bytes += chunk.total_len;
        let bad = |what| Error::at(chunk.offset, ErrorKind::Malformed(what));
        let cpu = chunk.cpu.ok_or_else(|| bad("an event chunk belongs to no CPU"))?;
        if chunk.body_len > self.limits.event_body_len {
            let (found, limit) = (chunk.body_len, self.limits.event_body_len);
            let what = "the length of an event chunk's body";
            return Err(Error::at(chunk.offset, ErrorKind::LimitExceeded { what, found, limit }));
        }
        let body = self.data.get(chunk.body_offset() as usize..).unwrap_or_default();
        let body = body.get(..chunk.body_len as usize).unwrap_or_default();
        let info = EventChunk::head(body, &chunk, self.header.order)?;
        if self.streams.len() >= self.limits.streams as usize && !self.streams.contains_key(&cpu) {
            let (found, limit) = (self.streams.len() as u64 + 1, u64::from(self.limits.streams));
            return Err(Error::at(
                chunk.offset,
                ErrorKind::LimitExceeded { what: "the number of CPUs", found, limit },
            ));
        }
        let stream = self.streams.entry(cpu).or_default();
        if stream.chunks.last().is_some_and(|(last, _)| chunk.sequence <= last.sequence) {
            return Err(bad("an event chunk stands here a second time, or out of order"));
        }
        stream.chunks.push((chunk, info));
        Ok(())
    }

    fn other_chunk(&mut self, chunk: &ChunkRef) -> Result<()> {
        let body = chunk.body(self.data)?;
        let base = chunk.body_offset();
        let Header { order, long_size, .. } = self.header;
        let metadata = &mut self.metadata;
        match (chunk.kind, order) {
            (ChunkKind::SCHEMA, ByteOrder::Little) => {
                self.schema.add::<LittleEndian>(body, base, &self.limits)
            }
            (ChunkKind::SCHEMA, ByteOrder::Big) => self.schema.add::<BigEndian>(body, base, &self.limits),
            (ChunkKind::CLOCK, ByteOrder::Little) => metadata.add_clock::<LittleEndian>(body, base),
            (ChunkKind::CLOCK, ByteOrder::Big) => metadata.add_clock::<BigEndian>(body, base),
            (ChunkKind::TASKS, ByteOrder::Little) => metadata.add_tasks::<LittleEndian>(body, base),
            (ChunkKind::TASKS, ByteOrder::Big) => metadata.add_tasks::<BigEndian>(body, base),
            (ChunkKind::STATS, ByteOrder::Little) => metadata.add_stats::<LittleEndian>(body, base),
            (ChunkKind::STATS, ByteOrder::Big) => metadata.add_stats::<BigEndian>(body, base),
            (ChunkKind::TRAILER, ByteOrder::Little) => metadata.add_trailer::<LittleEndian>(body, base),
            (ChunkKind::TRAILER, ByteOrder::Big) => metadata.add_trailer::<BigEndian>(body, base),
            (ChunkKind::META, _) => metadata.add_pairs(body, base, order),
            (ChunkKind::FILE, _) => metadata.add_file(body, base, order),
            (ChunkKind::SYMBOLS, _) => SymbolTable::parse(body, base, order, long_size).map(|table| {
                self.symbols = Some(table);
            }),
            _ => Ok(()),
        }
    }

    /// Finds chunks that are missing, and whether the file was finished.
    fn close(&mut self) {
        for stream in self.streams.values_mut() {
            let (mut sequence, mut events) = (0u64, 0u64);
            for (chunk, info) in &stream.chunks {
                let missing = u64::from(chunk.sequence).saturating_sub(sequence);
                stream.chunks_missing = stream.chunks_missing.saturating_add(missing);
                let events_missing = info.first_event.saturating_sub(events);
                stream.events_missing = stream.events_missing.saturating_add(events_missing);
                sequence = u64::from(chunk.sequence) + 1;
                events = info.first_event.max(events).saturating_add(info.event_count.into());
            }
        }
        let trailer = self.metadata.trailer.filter(|_| self.finished);
        self.finished = trailer.is_some();
        let Some(trailer) = trailer else { return };
        let missing_at_end = self.damage_count == 0
            && (trailer.file_len != self.data.len() as u64
                || u64::from(trailer.chunk_count) != self.chunk_count);
        if missing_at_end {
            let what = "the trailer counts other chunks or bytes than the file holds";
            let error = Error::new(ErrorKind::Malformed(what));
            self.note(Damage { offset: self.data.len() as u64, len: 0, error });
        }
    }

    /// The file header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Event classes and shapes.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Everything besides events, schema and symbols.
    pub fn metadata(&self) -> &Metadata<'d> {
        &self.metadata
    }

    /// The symbols of the traced kernel; `None` if the file has none.
    pub fn symbols(&self) -> Option<&SymbolTable<'d>> {
        self.symbols.as_ref()
    }

    /// The event chunks of each CPU.
    pub fn streams(&self) -> &BTreeMap<u32, Stream> {
        &self.streams
    }

    /// Damage found when opening; the list ends at [`Limits::damages`] entries.
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// Number of damaged places found when opening.
    pub fn damage_count(&self) -> u64 {
        self.damage_count
    }

    /// Whether the file ends in a trailer: whether its writer came to the end.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Events in all event chunks that are there.
    pub fn event_count(&self) -> u64 {
        self.streams.values().map(Stream::event_count).sum()
    }

    /// Bytes of all event chunks, headers and padding included.
    pub fn event_bytes(&self) -> u64 {
        self.event_bytes
    }

    /// Number of sound chunk headers.
    pub fn chunk_count(&self) -> u64 {
        self.chunk_count
    }

    /// Ancillary chunks of kinds that this library does not know, by kind.
    pub fn unknown_kinds(&self) -> &BTreeMap<[u8; 4], u64> {
        &self.unknown_kinds
    }

    /// Length of the file in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.data.len() as u64
    }

    /// Reads an event chunk.
    ///
    /// # Errors
    ///
    /// Returns an error if its checksum is wrong or anything in it is out of place.
    pub fn read(&self, chunk: &ChunkRef) -> Result<EventChunk<'d>> {
        let body = chunk.body(self.data)?;
        let Header { order, long_size, .. } = self.header;
        EventChunk::parse(body, chunk, order, long_size, &self.schema, &self.limits)
    }

    /// Merges the CPUs in the kernel's order; see [`Merge`].
    pub fn merge(&self) -> Merge<'_, 'd> {
        Merge::new(self, None)
    }

    /// The same for events whose time is within `first..=last`; chunks outside are not even looked at.
    pub fn merge_between(&self, first: u64, last: u64) -> Merge<'_, 'd> {
        Merge::new(self, Some((first, last)))
    }
}
