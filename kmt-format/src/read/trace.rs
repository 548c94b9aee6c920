//! A whole file.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::contents::Contents;
use super::header::read_header;
use super::walk::{Found, Step, Walker};
use super::{
    ChunkRef, Damage, EventChunk, EventsInfo, FoldChunk, FoldInfo, Header, Metadata, Schema, Stream,
    SymbolTable,
};
use crate::Limits;
use crate::error::{Error, ErrorKind, Result};

/// A .kmt file in memory or mapped, opened for reading.
///
/// Opening walks over the chunk headers and reads schema, symbols and metadata; event chunks are checked and cast
/// when they are read. Damage is listed and skipped: everything undamaged can still be read. Memory is
/// one small entry a chunk, never in proportion to the events. Spec section "Reading".
#[derive(Debug, Clone)]
pub struct Trace<'d> {
    data: &'d [u8],
    contents: Contents<'d>,
    /// True if the heads of event chunks are known from the index alone.
    is_indexed: bool,
}

impl<'d> Trace<'d> {
    pub(super) fn walk(data: &'d [u8], limits: Limits) -> Result<Self> {
        let (header, header_damage) = read_header(data)?;
        let mut contents = Contents::new(header, header_damage, limits, true);
        let mut walker = Walker::new(&header, limits);
        loop {
            let rest = usize::try_from(walker.position()).ok().and_then(|at| data.get(at..));
            match walker.step(rest.unwrap_or_default(), true) {
                Step::Found(Found::Chunk(chunk)) => {
                    contents.chunk(&chunk, Cow::Borrowed(chunk.stored_in(data)))?;
                }
                Step::Found(Found::Torn) => {}
                Step::Found(Found::Damage(damage)) => contents.add_damage(damage),
                Step::NeedMore | Step::End => break,
            }
        }
        contents.close(data.len() as u64);
        Ok(Self { data, contents, is_indexed: false })
    }

    pub(super) fn from_index(data: &'d [u8], contents: Contents<'d>) -> Self {
        Self { data, contents, is_indexed: true }
    }

    pub(super) fn set_verify(&mut self, verify: bool) {
        self.contents.verify = verify;
    }

    pub(super) fn contents(&self) -> &Contents<'d> {
        &self.contents
    }

    pub(crate) fn data(&self) -> &'d [u8] {
        self.data
    }

    /// The file header.
    pub fn header(&self) -> &Header {
        &self.contents.header
    }

    /// Event classes and shapes.
    pub fn schema(&self) -> &Schema {
        &self.contents.schema
    }

    /// Everything except events, schema and symbols.
    pub fn metadata(&self) -> &Metadata<'d> {
        &self.contents.metadata
    }

    /// The symbols of the traced kernel; `None` if the file has none.
    pub fn symbols(&self) -> Option<&SymbolTable<'d>> {
        self.contents.symbols.as_ref()
    }

    /// The event chunks of each CPU.
    pub fn streams(&self) -> &BTreeMap<u32, Stream> {
        &self.contents.streams
    }

    /// The chunks of folded lives, one for each interval, in their order.
    pub fn folds(&self) -> &[(ChunkRef, FoldInfo)] {
        &self.contents.folds
    }

    /// Intervals of folded lives that their numbers show to be missing.
    pub fn folds_missing(&self) -> u64 {
        self.contents.folds_missing
    }

    /// Reads a chunk of folded lives.
    ///
    /// # Errors
    ///
    /// Returns an error if its checksum is wrong or anything in it is out of place.
    pub fn read_fold(&self, chunk: &ChunkRef) -> Result<FoldChunk<'d>> {
        self.contents.fold(chunk, Cow::Borrowed(chunk.stored_in(self.data)))
    }

    /// Events that the file has as sums, with their stacks, and whether this is exact: else an interval is missing or cannot
    /// be read, or the file is not finished. Each chunk of folded lives is read.
    pub fn folded_event_count(&self) -> (u64, bool) {
        let (mut count, mut is_exact) = (0u64, self.folds_missing() == 0 && self.is_finished());
        for (chunk, _) in self.folds() {
            match self.read_fold(chunk) {
                Ok(fold) => count = count.saturating_add(fold.info().events),
                Err(_) => is_exact = false,
            }
        }
        (count, is_exact && self.damage_count() == 0)
    }

    /// Damage found when opening; the list ends at [`Limits::damages`] entries.
    pub fn damages(&self) -> &[Damage] {
        &self.contents.damages
    }

    /// Number of damaged places found when opening.
    pub fn damage_count(&self) -> u64 {
        self.contents.damage_count
    }

    /// True if the file ends in a trailer: its writer finished it.
    pub fn is_finished(&self) -> bool {
        self.contents.finished
    }

    /// Events in all event chunks that are there.
    pub fn event_count(&self) -> u64 {
        self.contents.streams.values().map(Stream::event_count).fold(0, u64::saturating_add)
    }

    /// Bytes of all event chunks, headers and padding included.
    pub fn event_bytes(&self) -> u64 {
        self.contents.event_bytes
    }

    /// Number of sound chunk headers.
    pub fn chunk_count(&self) -> u64 {
        self.contents.chunk_count
    }

    /// Ancillary chunks of kinds that this library does not know, by kind.
    pub fn unknown_kinds(&self) -> &BTreeMap<[u8; 4], u64> {
        &self.contents.unknown_kinds
    }

    /// Length of the file in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.data.len() as u64
    }

    /// All sound chunks, in the order of the file. This walks over the file again.
    pub fn chunks(&self) -> impl Iterator<Item = ChunkRef> + use<'d> {
        let (data, mut walker) = (self.data, Walker::new(self.header(), self.contents.limits));
        core::iter::from_fn(move || {
            loop {
                let rest = usize::try_from(walker.position()).ok().and_then(|at| data.get(at..));
                match walker.step(rest.unwrap_or_default(), true) {
                    Step::Found(Found::Chunk(chunk)) => return Some(chunk),
                    Step::Found(_) => {}
                    Step::NeedMore | Step::End => return None,
                }
            }
        })
    }

    /// Reads an event chunk; sub-buffers that were kept verbatim are decoded.
    ///
    /// # Errors
    ///
    /// Returns an error if its checksum is wrong or anything in it is out of place.
    pub fn read(&self, chunk: &ChunkRef) -> Result<EventChunk<'d>> {
        if self.is_indexed {
            let chunks = chunk.cpu.and_then(|cpu| self.streams().get(&cpu)).map_or(&[][..], |s| &s.chunks);
            let index = chunks.binary_search_by_key(&chunk.offset, |(c, _)| c.offset).ok();
            if let Some((_, info)) = index.and_then(|index| chunks.get(index)) {
                self.check_index(chunk, info)?;
            }
        }
        self.contents.events(chunk, Cow::Borrowed(chunk.stored_in(self.data)))
    }

    /// Compares the head of a chunk with its index row, unless the head was read when opening.
    pub(super) fn check_head(&self, chunk: &ChunkRef, info: &EventsInfo) -> Result<()> {
        if self.is_indexed { self.check_index(chunk, info) } else { Ok(()) }
    }

    /// Reads and checks every event chunk: then nothing of what the file holds is damaged. Chunks that its numbering shows
    /// to be missing are gaps ([`Trace::items`]), no damage.
    ///
    /// A sound file is not checked again. This takes as long as reading all events once; memory is one chunk.
    ///
    /// ```
    /// use kmt_format::read::Trace;
    /// # let mut file = kmt_format::example()?;
    /// assert!(Trace::open(&file)?.check().is_ok());
    /// # let trace = Trace::open(&file)?;
    /// # let chunk = trace.streams()[&0].chunks[0].0;
    /// # let last = (chunk.body_offset() + chunk.body_len) as usize - 1;
    /// file[last] ^= 1; // in the body of an event chunk
    /// let error = Trace::open(&file)?.check().unwrap_err();
    /// assert_eq!(error.code(), "checksum");
    /// # Ok::<(), kmt_format::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the first damage, also if it was found when opening.
    pub fn check(&self) -> Result<()> {
        if self.contents.sound.get().is_some() {
            return Ok(());
        }
        if self.damage_count() > 0 {
            let first = self.damages().first().map(|damage| damage.error.clone());
            return Err(first.unwrap_or_else(|| Error::new(ErrorKind::Malformed("the file is damaged"))));
        }
        for (chunk, _) in self.streams().values().flat_map(|stream| &stream.chunks) {
            self.read(chunk)?;
        }
        for (chunk, _) in self.folds() {
            self.read_fold(chunk)?;
        }
        self.contents.sound.get_or_init(|| ());
        Ok(())
    }
}
