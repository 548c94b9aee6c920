//! Writing files: events and metadata in, bytes out. No I/O.

mod event_chunk;
mod frame;
mod interner;
mod plan;
mod rows;
mod schema_chunk;
mod symbols_chunk;
mod writer;

pub use writer::{Loss, StatsTaken, Task, Writer, WriterOptions, WriterStats};
