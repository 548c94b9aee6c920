//! Reading files: `Trace` over a byte slice, with records cast in place.

mod cast;
mod event;
mod event_chunk;
mod header;
mod merge;
mod metadata;
mod schema_table;
mod symbols;
mod trace;
mod walk;

pub use event::Event;
pub use event_chunk::{EventChunk, EventsInfo, Record, Records};
pub use header::Header;
pub use merge::{Gap, Merge, Run};
pub use metadata::{Attachment, CpuCounters, Metadata, TaskRecord, TrailerInfo, WriterCounters};
pub use schema_table::Schema;
pub use symbols::{Resolved, SymbolTable};
pub use trace::{Stream, Trace};
pub use walk::{ChunkRef, Damage};
