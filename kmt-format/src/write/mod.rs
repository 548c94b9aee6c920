//! Writing files: events and metadata in, bytes out. No I/O.

mod event_chunk;
mod frame;
mod framer;
mod interner;
mod plan;
mod rows;
mod schema_chunk;
mod sub_buffers;
mod symbols_chunk;
mod tables;
mod types;
mod writer;

/// What decoding verbatim sub-buffers shares with writing them.
pub(crate) mod decoding {
    pub(crate) use super::event_chunk::{EventChunkBuilder, Habit, class_bit};
    pub(crate) use super::plan::ClassPlan;
    pub(crate) use super::sub_buffers::EVENTS_MAX;
}

/// What making files from files shares with writing them.
pub(crate) mod framing {
    pub(crate) use super::event_chunk::Summary;
    pub(crate) use super::frame::Frame;
    pub(crate) use super::framer::{BodyLayout, ChunkId, Framer, IndexEntry};
}

pub(crate) use rows::pairs_body;
pub use types::{Loss, StatsTaken, SubBufferSummary, Task, WriterLimits, WriterOptions, WriterStats};
pub use writer::Writer;
