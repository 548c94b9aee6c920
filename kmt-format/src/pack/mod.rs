//! Packing events into the body of an event chunk: for the writer, and for a reader of verbatim sub-buffers.

mod event_chunk;
mod interner;
mod plan;

pub(crate) use event_chunk::{ClassRepeats, EventChunkBuilder, Summary, class_bit};
pub(crate) use plan::{RecordPlan, ValuePlan};

/// Events of one chunk of verbatim sub-buffers at most, so that each may have a descriptor and a context of its own when
/// it is decoded.
pub(crate) const VERBATIM_EVENTS_MAX: usize = 60_000;

/// Bytes of records at which a chunk is closed, unless a writer is given another limit.
pub(crate) const CHUNK_LEN: usize = 1 << 20;

/// Layout of a body for storage.
pub(crate) struct BodyLayout {
    /// Bytes that stay as they are.
    pub prefix_len: usize,
    /// Position of the records after the prefix, for the filter.
    pub records: Option<crate::codec::FilteredRecords>,
    /// Summary; zeros for chunks without events.
    pub summary: Summary,
}

impl BodyLayout {
    /// A body without structure.
    pub fn plain() -> Self {
        Self { prefix_len: 0, records: None, summary: Summary::default() }
    }
}
