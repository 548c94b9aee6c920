//! Reading a file that is still coming: from a pipe, a socket, or a file that grows. No I/O of its own.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use super::contents::{Contents, Taken};
use super::header::{HEADER_LEN_MAX, read_header};
use super::missing_schema::lacks_schema;
use super::walk::{Found, Step, Walker};
use super::{
    ChunkEvents, ChunkRef, Damage, EventChunk, FoldChunk, Header, Metadata, Schema, Stream, SymbolTable,
};
use crate::Limits;
use crate::error::{Error, Result};
use crate::limits::exceeded;
use crate::raw::{ALIGNMENT, ChunkKind};

/// An item found by an incremental reader.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Arrived {
    /// The file header; the first thing that arrives.
    Header(Header),
    /// A chunk without events. Its contents are in [`Incremental::metadata`], [`Incremental::schema`] and so on.
    Chunk(ChunkRef),
    /// Events of one CPU. Those of one CPU arrive in order; different CPUs' are not merged.
    Events(ChunkRef, EventChunk<'static>),
    /// The folded lives of an interval.
    Folded(ChunkRef, FoldChunk<'static>),
    /// Bytes that cannot be used.
    Damage(Damage),
}

/// A reader that is fed bytes in pieces of any size, and gives what has become whole.
///
/// It finds the same as [`Trace`](super::Trace) does in the whole file, however the input is cut: the same chunks,
/// events, damage and counts. Memory is one chunk and the metadata; event chunks whose classes have not come yet are
/// kept too, up to [`Limits::held_back`] bytes.
///
/// ```
/// use kmt_format::read::{Arrived, Incremental};
/// # let file = kmt_format::write::Writer::new(kmt_format::write::WriterOptions::new(kmt_format::kernel::ByteOrder::Big, 4).trace_uuid([7; 16]))?.finish()?;
/// let mut reader = Incremental::new();
/// for piece in file.chunks(100) {
///     reader.push(piece);
///     while let Some(arrived) = reader.next()? {
///         match arrived {
///             Arrived::Events(_, chunk) => {
///                 for event in reader.events(&chunk) {
///                     println!("{} {}", event.time(), event.class().name);
///                 }
///             }
///             Arrived::Damage(damage) => eprintln!("{}", damage.error),
///             _ => {}
///         }
///     }
/// }
/// reader.end();
/// while let Some(arrived) = reader.next()? {
///     println!("{arrived:?}");
/// }
/// assert!(reader.is_finished());
/// # Ok::<(), kmt_format::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Incremental {
    limits: Limits,
    /// Bytes not yet done with, from `start` on.
    buffer: Vec<u8>,
    start: usize,
    /// Offset in the file of the byte at `start`.
    offset: u64,
    is_all: bool,
    state: Option<State>,
}

#[derive(Debug)]
struct State {
    walker: Walker,
    contents: Contents<'static>,
    /// Items to return before the next step of the walk.
    next: VecDeque<Arrived>,
    /// Event chunks whose classes have not come yet, and those after them.
    held: VecDeque<(ChunkRef, Vec<u8>)>,
    held_len: u64,
    closed: bool,
}

impl Incremental {
    /// Starts at the first byte of a file, with the default [`Limits`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts at the first byte of a file, with other limits.
    pub fn with_limits(limits: Limits) -> Self {
        Self { limits, buffer: Vec::new(), start: 0, offset: 0, is_all: false, state: None }
    }

    /// Takes in more bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 && self.start >= self.buffer.len() / 2 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Ends the input. Further calls of [`Incremental::next`] return the rest.
    pub fn end(&mut self) {
        self.is_all = true;
    }

    /// The next item; `None` if more bytes are needed, or after the end.
    ///
    /// # Errors
    ///
    /// Returns the errors that [`Trace::open`](super::Trace::open) returns: there is no going on then.
    #[allow(
        clippy::should_implement_trait,
        reason = "an iterator that ended continues here when more bytes arrive"
    )]
    pub fn next(&mut self) -> Result<Option<Arrived>> {
        if self.state.is_none() {
            return self.take_header();
        }
        loop {
            let Some(state) = &mut self.state else { return Ok(None) };
            if let Some(arrived) = state.next.pop_front() {
                return Ok(Some(arrived));
            }
            let rest = self.buffer.get(self.start..).unwrap_or_default();
            let position = state.walker.position();
            match state.walker.step(rest, self.is_all) {
                Step::Found(Found::Chunk(chunk)) => {
                    let len = usize::try_from(state.walker.position().saturating_sub(position))
                        .unwrap_or(usize::MAX);
                    let stored = rest.get(ALIGNMENT..len).unwrap_or_default().to_vec();
                    state.chunk(chunk, stored)?;
                }
                Step::Found(Found::Torn) => {}
                Step::Found(Found::Damage(damage)) => {
                    state.contents.add_damage(damage.clone());
                    state.next.push_back(Arrived::Damage(damage));
                }
                Step::NeedMore => {
                    self.forget();
                    return Ok(None);
                }
                Step::End if state.closed => return Ok(None),
                Step::End => state.close(),
            }
            self.forget();
        }
    }

    /// Lets go of the bytes that are done with.
    fn forget(&mut self) {
        let Some(state) = &self.state else { return };
        let done = usize::try_from(state.walker.position().saturating_sub(self.offset)).unwrap_or(usize::MAX);
        self.start = self.start.saturating_add(done).min(self.buffer.len());
        self.offset = state.walker.position();
    }

    fn take_header(&mut self) -> Result<Option<Arrived>> {
        let data = self.buffer.as_slice();
        // With enough bytes for any header and its copy the answer cannot change any more.
        let is_final = self.is_all || data.len() >= 2 * HEADER_LEN_MAX + 2 * ALIGNMENT;
        let (header, damage) = match read_header(data) {
            Ok((header, None)) => (header, None),
            Ok((header, damage)) if is_final => (header, damage),
            Err(error) if is_final => return Err(error),
            _ => return Ok(None),
        };
        let contents = Contents::new(header, damage, self.limits, false);
        let next = contents.damages.iter().cloned().map(Arrived::Damage).collect();
        let walker = Walker::new(&header, self.limits);
        let (held, held_len) = (VecDeque::new(), 0);
        self.state = Some(State { walker, contents, next, held, held_len, closed: false });
        self.forget();
        Ok(Some(Arrived::Header(header)))
    }

    fn contents(&self) -> Option<&Contents<'static>> {
        self.state.as_ref().map(|s| &s.contents)
    }

    /// The file header, once it has arrived.
    pub fn header(&self) -> Option<&Header> {
        self.contents().map(|c| &c.header)
    }

    /// Event classes and shapes so far.
    pub fn schema(&self) -> Option<&Schema> {
        self.contents().map(|c| &c.schema)
    }

    /// Everything except events, schema and symbols so far.
    pub fn metadata(&self) -> Option<&Metadata<'static>> {
        self.contents().map(|c| &c.metadata)
    }

    /// The events of a chunk that arrived, with their fields, and with the names of tasks and symbols that have come.
    pub fn events<'t>(&'t self, chunk: &'t EventChunk<'t>) -> ChunkEvents<'t> {
        ChunkEvents::of(chunk, self.contents())
    }

    /// The symbols of the traced kernel, if they have come.
    pub fn symbols(&self) -> Option<&SymbolTable<'static>> {
        self.contents().and_then(|c| c.symbols.as_ref())
    }

    /// Counts of each CPU so far; the lists of chunks are empty.
    pub fn streams(&self) -> Option<&BTreeMap<u32, Stream>> {
        self.contents().map(|c| &c.streams)
    }

    /// Intervals of folded lives that their numbers so far show to be missing.
    pub fn folds_missing(&self) -> u64 {
        self.contents().map_or(0, |c| c.folds_missing)
    }

    /// Damage so far, except that of event chunks' bodies; the list ends at [`Limits::damages`] entries.
    pub fn damages(&self) -> &[Damage] {
        self.contents().map_or(&[], |c| &c.damages)
    }

    /// Number of sound chunk headers so far.
    pub fn chunk_count(&self) -> u64 {
        self.contents().map_or(0, |c| c.chunk_count)
    }

    /// After the end: whether the file ends in a trailer.
    pub fn is_finished(&self) -> bool {
        self.state.as_ref().is_some_and(|s| s.closed && s.contents.finished)
    }
}

impl State {
    fn chunk(&mut self, chunk: ChunkRef, stored: Vec<u8>) -> Result<()> {
        let defined_before = self.contents.schema.defined_count();
        match self.contents.chunk(&chunk, Cow::Owned(stored))? {
            Taken::Damaged(damage) => self.next.push_back(Arrived::Damage(damage)),
            Taken::Events(stored) | Taken::Folded(stored) if self.held.is_empty() => {
                self.events(chunk, stored.into_owned());
            }
            Taken::Events(stored) | Taken::Folded(stored) => self.hold(chunk, stored.into_owned()),
            Taken::Other => {
                self.next.push_back(Arrived::Chunk(chunk));
                if self.contents.schema.defined_count() > defined_before {
                    self.try_again();
                }
            }
        }
        Ok(())
    }

    /// Reads a chunk of events or of folded lives, or keeps it until its classes come.
    fn events(&mut self, chunk: ChunkRef, stored: Vec<u8>) {
        let bytes = Cow::Borrowed(stored.as_slice());
        let arrived = if chunk.kind == ChunkKind::FOLD {
            let folded = self.contents.fold(&chunk, bytes);
            folded.map(|folded| Arrived::Folded(chunk, folded.into_owned()))
        } else {
            let events = self.contents.events(&chunk, bytes);
            events.map(|events| Arrived::Events(chunk, events.into_owned()))
        };
        match arrived {
            Ok(arrived) => self.next.push_back(arrived),
            Err(error) if lacks_schema(&error) && !self.closed => self.hold(chunk, stored),
            Err(error) => self.cannot_be_used(chunk, error),
        }
    }

    fn hold(&mut self, chunk: ChunkRef, stored: Vec<u8>) {
        let held = self.held_len.saturating_add(stored.len() as u64);
        if held > self.contents.limits.held_back {
            let what = "the length of event chunks without their classes";
            let kind = exceeded("held_back", what, held, self.contents.limits.held_back);
            return self.cannot_be_used(chunk, Error::at(chunk.offset, kind));
        }
        self.held_len = held;
        self.held.push_back((chunk, stored));
    }

    fn cannot_be_used(&mut self, chunk: ChunkRef, error: Error) {
        let damage = Damage { offset: chunk.offset, len: chunk.total_len, error };
        self.next.push_back(Arrived::Damage(damage));
    }

    /// More classes are known, or the input has ended.
    fn try_again(&mut self) {
        self.held_len = 0;
        let mut waiting = core::mem::take(&mut self.held);
        while let Some((chunk, stored)) = waiting.pop_front() {
            if self.held.is_empty() { self.events(chunk, stored) } else { self.hold(chunk, stored) }
        }
    }

    fn close(&mut self) {
        self.closed = true;
        self.try_again();
        let damage = self.contents.close(self.walker.position());
        self.next.extend(damage.map(Arrived::Damage));
    }
}
