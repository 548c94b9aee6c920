//! What a writer is told, and what it tells.

use crate::codec::Compression;
use crate::kernel::ByteOrder;

/// What a file says of the target in its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// How bodies are stored. Targets use [`Compression::None`] or [`Compression::Lz4`].
    pub compression: Compression,
}

/// How much a writer keeps in memory. The defaults suit a host that converts; a small target asks for less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterLimits {
    /// Bytes of records, or of sub-buffers, at which a chunk is closed: 1 MiB. There is one open chunk for each CPU.
    /// No chunk has more than 65,536 records, and its heap is closed at four times these bytes.
    pub chunk_len: usize,
    /// Chunks that the index lists at most, at 136 bytes each in memory; a file of more chunks gets no index.
    pub index_rows: usize,
}

impl Default for WriterLimits {
    fn default() -> Self {
        Self { chunk_len: 1 << 20, index_rows: 1 << 20 }
    }
}

/// Events lost at one place of one CPU's stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loss {
    /// Events lost as the kernel counted them.
    pub counted: u64,
    /// At least one more was lost, and the kernel did not count.
    pub uncounted: bool,
    /// Part of the input was damaged here and could not be decoded.
    pub damaged_input: bool,
    /// These were overwritten by design: the buffer keeps the newest events only, and the recording begins here.
    pub overwritten: bool,
}

impl Loss {
    /// Both losses at one place.
    pub fn and(self, other: Self) -> Self {
        Self {
            counted: self.counted.saturating_add(other.counted),
            uncounted: self.uncounted | other.uncounted,
            damaged_input: self.damaged_input | other.damaged_input,
            overwritten: self.overwritten | other.overwritten,
        }
    }
}

/// A task's name, for [`Writer::tasks`](super::Writer::tasks).
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// When the kernel's counters were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatsTaken {
    /// Before the ring buffer was drained.
    Before,
    /// After.
    After,
}

/// What the writer's input of one CPU held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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

/// What a sub-buffer held that was kept verbatim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubBufferSummary {
    /// Events.
    pub events: u64,
    /// Discarded events and fillers.
    pub discarded: u64,
    /// What it told to be lost before its first event.
    pub loss: Loss,
    /// Times of the first and the last event.
    pub times: Option<(u64, u64)>,
    /// Whether the times never fall.
    pub(super) rises: bool,
    /// Bits of the classes of its events.
    pub(super) classes: u64,
}
