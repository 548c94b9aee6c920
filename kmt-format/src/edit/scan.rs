//! The chunks that a file still holds, however it was damaged. Spec section "Recovery".

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::Limits;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::ByteOrder;
use crate::raw::{ALIGNMENT, ChunkHeader, ChunkKind};
use crate::read::recovering::{Contents, Header, Taken, chunk_at, header_anywhere};
use crate::read::{ChunkRef, Damage, EventsInfo};

/// Result of a scan.
pub(super) struct Scan<'d> {
    pub contents: Contents<'d>,
    /// Chunks that can be used, in the order of the file. Event chunks are whole, but not yet read.
    pub chunks: Vec<ChunkRef>,
    /// The last event chunk, if its end is missing and its prefix is there.
    pub torn: Option<ChunkRef>,
    /// Event chunks that are not whole, but whose heads can be used.
    heads: Vec<ChunkRef>,
    /// Offsets of the chunks whose padding is missing or wrong.
    unpadded: BTreeSet<u64>,
}

/// A part of the file to be made.
pub(super) enum ScannedPiece {
    /// A chunk.
    Chunk(ChunkRef),
    /// The head of a chunk that cannot be used.
    Head(ChunkRef),
}

impl<'d> Scan<'d> {
    /// Looks through a file. Chunks may start anywhere: bytes lost or added on a wire shift what follows.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no header and no copy of it, or the file must be refused.
    pub fn new(data: &'d [u8], limits: Limits) -> Result<Self> {
        let (header, damage) = header_anywhere(data)?;
        let mut scan = Self {
            contents: Contents::new(header, damage, limits, true),
            chunks: Vec::new(),
            torn: None,
            heads: Vec::new(),
            unpadded: BTreeSet::new(),
        };
        let mut at = header.header_len.min(data.len());
        while at < data.len() {
            at = match scan.chunk(data, at)? {
                Ok(end) => end,
                Err(kind) => scan.skip(data, at, at.saturating_add(1), kind),
            };
        }
        scan.contents.close(data.len() as u64);
        Ok(scan)
    }

    /// Takes the chunk at `at` and returns where the next one starts, or says why there is none with all its bytes.
    ///
    /// A damaged chunk is none: bytes may be missing from it, and sound chunks have moved up into it.
    fn chunk(&mut self, data: &'d [u8], at: usize) -> Result<core::result::Result<usize, ErrorKind>> {
        let Some(chunk) = self.chunk_at(data, at) else { return Ok(Err(ErrorKind::NotAChunk)) };
        if let Err(kind) = chunk.check_lengths(&self.contents.limits) {
            return Ok(Err(kind));
        }
        let body_start = at.saturating_add(ALIGNMENT);
        let rest = data.get(body_start..).unwrap_or_default();
        let len = usize::try_from(chunk.total_len).unwrap_or(usize::MAX).saturating_sub(ALIGNMENT);
        let stored = rest.get(..len);
        let kind = match stored.map(|stored| chunk.body(stored)) {
            Some(Ok(_)) => {
                self.take(&chunk, Cow::Borrowed(stored.unwrap_or_default()))?;
                return Ok(Ok(body_start.saturating_add(len)));
            }
            Some(Err(error)) => error.kind().clone(),
            None => {
                let available = rest.len().saturating_add(ALIGNMENT) as u64;
                ErrorKind::Truncated { needed: chunk.total_len, available }
            }
        };
        if let Some(stored) = chunk.with_padding(rest) {
            self.unpadded.insert(chunk.offset);
            self.take(&chunk, Cow::Owned(stored))?;
            let body_end = body_start.saturating_add(chunk.body_len as usize);
            return Ok(Ok(self.skip(data, body_end, body_end, kind)));
        }
        self.keep_head(&chunk, rest, stored.is_none());
        Ok(Err(kind))
    }

    /// Takes a chunk whose body is right.
    fn take(&mut self, chunk: &ChunkRef, stored: Cow<'d, [u8]>) -> Result<()> {
        match self.contents.chunk(chunk, stored)? {
            Taken::Damaged(_) => {}
            Taken::Events(_) | Taken::Folded(_) | Taken::Other => self.chunks.push(*chunk),
        }
        Ok(())
    }

    /// Notes an event chunk that is not whole, if its head can be used.
    fn keep_head(&mut self, chunk: &ChunkRef, rest: &[u8], is_torn: bool) {
        if !matches!(chunk.kind, ChunkKind::EVENTS | ChunkKind::SUB_BUFFERS) {
            return;
        }
        if self.contents.head_alone(chunk, rest).is_err() {
            return;
        }
        if is_torn {
            self.torn = Some(*chunk);
        }
        self.heads.push(*chunk);
    }

    /// Passes over bytes from `from` on that are no chunk; returns where the next one starts, at `at` or after it.
    fn skip(&mut self, data: &[u8], from: usize, mut at: usize, kind: ErrorKind) -> usize {
        let sync = ChunkHeader::<zerocopy::LE>::SYNC;
        let mut end = data.len();
        while let Some(found) =
            data.get(at..).and_then(|rest| rest.windows(sync.len()).position(|w| w == sync))
        {
            at = at.saturating_add(found);
            if self.chunk_at(data, at).is_some() {
                end = at;
                break;
            }
            at = at.saturating_add(1);
        }
        let error = Error::at(from as u64, kind);
        self.contents.add_damage(Damage { offset: from as u64, len: end.saturating_sub(from) as u64, error });
        end
    }

    fn chunk_at(&self, data: &[u8], at: usize) -> Option<ChunkRef> {
        let Header { trace_uuid: [a, b, c, d, ..], order, .. } = self.contents.header;
        chunk_at(data.get(at..)?, at as u64, [a, b, c, d], order)
    }

    /// Parts of the new file, in the order of the old one. The sequences of a CPU rise.
    pub fn pieces(&mut self) -> Vec<ScannedPiece> {
        let chunks = core::mem::take(&mut self.chunks);
        let mut pieces: Vec<(u64, ScannedPiece)> =
            chunks.into_iter().map(|c| (c.offset, ScannedPiece::Chunk(c))).collect();
        let mut last = BTreeMap::new();
        for chunk in core::mem::take(&mut self.heads) {
            let Some(cpu) = chunk.cpu.filter(|_| self.is_between(&chunk)) else { continue };
            if last.get(&cpu).is_none_or(|&last| last < chunk.sequence) {
                last.insert(cpu, chunk.sequence);
                pieces.push((chunk.offset, ScannedPiece::Head(chunk)));
            }
        }
        pieces.sort_by_key(|&(offset, _)| offset);
        pieces.into_iter().map(|(_, piece)| piece).collect()
    }

    /// True if the sequence of a chunk that cannot be used is between those of the chunks around it.
    fn is_between(&self, chunk: &ChunkRef) -> bool {
        let stream = chunk.cpu.and_then(|cpu| self.contents.streams.get(&cpu));
        let chunks = stream.map_or(&[][..], |stream| &stream.chunks);
        let index = chunks.partition_point(|(other, _)| other.offset < chunk.offset);
        let before = index.checked_sub(1).and_then(|index| chunks.get(index));
        let behind = match (chunks.get(index), &self.torn) {
            (Some((behind, _)), _) => Some(behind),
            (None, torn) => torn.as_ref().filter(|torn| torn.cpu == chunk.cpu),
        };
        before.is_none_or(|(before, _)| before.sequence < chunk.sequence)
            && behind.is_none_or(|behind| chunk.sequence < behind.sequence)
    }

    /// Body and padding of a chunk that was taken.
    pub fn stored(&self, data: &'d [u8], chunk: &ChunkRef) -> Cow<'d, [u8]> {
        if !self.unpadded.contains(&chunk.offset) {
            return Cow::Borrowed(chunk.stored_in(data));
        }
        let start = usize::try_from(chunk.body_offset()).unwrap_or(usize::MAX);
        let rest = data.get(start..).unwrap_or_default();
        Cow::Owned(chunk.with_padding(rest).unwrap_or_default())
    }

    /// Fields of the head of an event chunk that was taken.
    pub fn info_of(&self, chunk: &ChunkRef) -> Option<EventsInfo> {
        let chunks = &self.contents.streams.get(&chunk.cpu?)?.chunks;
        let index = chunks.binary_search_by_key(&chunk.offset, |(c, _)| c.offset).ok()?;
        chunks.get(index).map(|(_, info)| *info)
    }

    /// Byte order of the file.
    pub fn order(&self) -> ByteOrder {
        self.contents.header.order
    }
}
