//! Writing files: events and metadata in, bytes out. No I/O.

mod classes;
mod fold;
mod frame;
mod framer;
mod metadata;
mod next_file;
mod open_stream;
mod rows;
mod schema_chunk;
mod streams;
mod sub_buffer_chunk;
mod sub_buffers;
mod symbols;
mod symbols_chunk;
mod tables;
mod types;
mod unknown_ids;
mod used_code;
mod writer;

/// Rows of folded lives of one interval at most.
pub use fold::ROWS_MAX as FOLD_ROWS_MAX;

/// Framing, for files that are made from files.
pub(crate) mod framing {
    pub(crate) use super::frame::{ChunkId, Frame};
    pub(crate) use super::framer::{Framer, IndexEntry};
}

pub use crate::Loss;
pub(crate) use rows::pairs_body;
pub use types::{
    Keep, StatsTaken, SubBufferPart, SubBufferSummary, Task, WriterLimits, WriterOptions, WriterStats,
};
pub use writer::Writer;
