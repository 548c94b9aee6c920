//! Options, inputs and results of a writer.

use std::hash::{BuildHasher, RandomState};

use crate::Loss;
use crate::codec::Compression;
use crate::error::Error;
use crate::kernel::ByteOrder;
use crate::pack::CHUNK_LEN;

/// The target, for the file header, and the codec of bodies.
///
/// ```
/// use kmt_format::Compression;
/// use kmt_format::kernel::ByteOrder;
/// use kmt_format::write::WriterOptions;
///
/// let options = WriterOptions::new(ByteOrder::Little, 8).page_size(4096).compression(Compression::Lz4);
/// assert_eq!((options.page_size, options.align_u64), (Some(4096), None));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterOptions {
    /// Byte order of the traced kernel, and so of the file.
    pub order: ByteOrder,
    /// Size of the traced kernel's `long` in bytes: 4 or 8.
    pub long_size: usize,
    /// Alignment of u64 in the traced kernel's structures; `None` if not known.
    pub align_u64: Option<u8>,
    /// Page size of the target in bytes; `None` if not known.
    pub page_size: Option<u64>,
    /// Identifies the trace. Chunks carry its first four bytes, so traces of one set of files should differ in them.
    pub trace_uuid: [u8; 16],
    /// Codec of bodies. Targets use [`Compression::None`] or [`Compression::Lz4`].
    pub compression: Compression,
    /// True if lives may be folded ([`Writer::add_fold`](super::Writer::add_fold)): readers that do not know of it refuse the
    /// file.
    pub folded: bool,
}

impl WriterOptions {
    /// For a kernel of that byte order, whose `long` has `long_size` bytes, 4 or 8. The rest is unknown, bodies are
    /// stored as they are, and `trace_uuid` is drawn at random.
    #[must_use]
    pub fn new(order: ByteOrder, long_size: usize) -> Self {
        let compression = Compression::None;
        Self {
            order,
            long_size,
            align_u64: None,
            page_size: None,
            trace_uuid: drawn(),
            compression,
            folded: false,
        }
    }

    /// Sets the alignment of u64 in the traced kernel's structures, in bytes.
    #[must_use]
    pub fn align_u64(mut self, bytes: impl Into<Option<u8>>) -> Self {
        self.align_u64 = bytes.into();
        self
    }

    /// Sets the page size of the target, in bytes.
    #[must_use]
    pub fn page_size(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.page_size = bytes.into();
        self
    }

    /// Sets the identity of the trace: the same input then gives the same file.
    #[must_use]
    pub fn trace_uuid(mut self, uuid: [u8; 16]) -> Self {
        self.trace_uuid = uuid;
        self
    }

    /// Sets the codec of bodies.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Sets whether lives may be folded.
    #[must_use]
    pub fn folded(mut self, folded: bool) -> Self {
        self.folded = folded;
        self
    }
}

/// Random bytes, of the seeds that the standard library draws for its hash tables.
fn drawn() -> [u8; 16] {
    let number = || RandomState::new().hash_one(0u8);
    let (low, high) = (u128::from(number()), u128::from(number()));
    (high << 64 | low).to_le_bytes()
}

/// Limits on a writer's memory. The defaults suit a host that converts; a small target needs less.
///
/// ```
/// use kmt_format::write::WriterLimits;
///
/// const SMALL: WriterLimits = WriterLimits::new().chunk_len(128 << 10).index_rows(8_192);
/// assert_eq!(SMALL.chunk_len, 131_072);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterLimits {
    /// Bytes of records, or of sub-buffers, at which a chunk is closed: 1 MiB. There is one open chunk for each CPU.
    /// No chunk has more than 65,536 records, and its heap is closed at four times these bytes.
    pub chunk_len: usize,
    /// Chunks that the index lists at most, at 136 bytes each in memory; a file of more chunks gets no index.
    pub index_rows: usize,
}

impl Default for WriterLimits {
    fn default() -> Self {
        Self::new()
    }
}

impl WriterLimits {
    /// The default ones.
    #[must_use]
    pub const fn new() -> Self {
        Self { chunk_len: CHUNK_LEN, index_rows: 1 << 20 }
    }

    /// Sets the bytes of records, or of sub-buffers, at which a chunk is closed.
    #[must_use]
    pub const fn chunk_len(mut self, bytes: usize) -> Self {
        self.chunk_len = bytes;
        self
    }

    /// Sets the maximum number of chunks in the index.
    #[must_use]
    pub const fn index_rows(mut self, rows: usize) -> Self {
        self.index_rows = rows;
        self
    }
}

/// A task's name, for [`Writer::add_tasks`](super::Writer::add_tasks).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Task {
    /// Since when, in the clock's unit; 0 if not known.
    pub time: u64,
    /// Thread id.
    pub pid: i32,
    /// Thread group id; 0 if not known.
    pub tgid: i32,
    /// Name; what is beyond 16 bytes is cut.
    pub comm: Vec<u8>,
}

impl Task {
    /// A task of unknown thread group, whose name has held since an unknown time.
    #[must_use]
    pub fn new(pid: i32, comm: impl Into<Vec<u8>>) -> Self {
        Self { time: 0, pid, tgid: 0, comm: comm.into() }
    }

    /// Sets the thread group id.
    #[must_use]
    pub fn tgid(mut self, tgid: i32) -> Self {
        self.tgid = tgid;
        self
    }

    /// Sets since when the name holds, in the clock's unit.
    #[must_use]
    pub fn since(mut self, time: u64) -> Self {
        self.time = time;
        self
    }
}

/// When the kernel's counters were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatsTaken {
    /// Before the ring buffer was drained.
    Before,
    /// After.
    After,
}

/// Counts of the writer's input of one CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterStats {
    /// Events written.
    pub events: u64,
    /// Bytes of input.
    pub bytes: u64,
    /// Sub-buffers read.
    pub sub_buffers: u64,
    /// Sub-buffers that could not be decoded to their end.
    pub sub_buffers_damaged: u64,
    /// Discarded events and fillers passed over.
    pub discarded: u64,
}

impl WriterStats {
    /// These counts without events that are not in the file.
    #[must_use]
    pub fn without(mut self, events: u64) -> Self {
        self.events = self.events.saturating_sub(events);
        self
    }

    /// Counts a sub-buffer of that length, and its contents.
    pub fn add(&mut self, sub_buffer_len: usize, found: &SubBufferSummary) {
        self.bytes += sub_buffer_len as u64;
        self.sub_buffers += 1;
        self.sub_buffers_damaged += u64::from(found.damage.is_some());
        self.events += found.events;
        self.discarded += found.discarded;
    }
}

/// Form of a sub-buffer in a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keep {
    /// As events: a third of the bytes.
    #[default]
    Decoded,
    /// As the kernel wrote it: hardly any work on the target. [`read::Trace`](crate::read::Trace) decodes it.
    Verbatim,
}

/// A part of a sub-buffer, for [`Writer::decode_sub_buffer`](super::Writer::decode_sub_buffer).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubBufferPart<'s> {
    /// Events that are missing here.
    Loss(Loss),
    /// An event: its time, and its record.
    Event(u64, &'s [u8]),
}

/// Contents of a sub-buffer that was added.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
#[non_exhaustive]
pub struct SubBufferSummary {
    /// Events.
    pub events: u64,
    /// Discarded events and fillers.
    pub discarded: u64,
    /// Events lost before its first event, and [damaged input](Loss::damaged_input) if it has damage.
    pub loss: Loss,
    /// Why it could not be decoded to its end; the offset is in the sub-buffer. What comes before is in the file.
    pub damage: Option<Error>,
    /// Times of the first and the last event.
    pub times: Option<(u64, u64)>,
    /// True if the times never decrease.
    pub(super) times_ascend: bool,
    /// Bits of the classes of its events.
    pub(super) classes: u64,
}
