//! Reading files: `Trace` over a byte slice, with records cast in place.

mod body;
mod builder;
mod cast;
mod contents;
mod duplicates;
mod early_end;
mod event;
mod event_chunk;
mod events;
mod fold;
mod fold_events;
mod header;
mod incremental;
mod index;
mod joined;
mod lines;
mod merge;
mod metadata;
mod metadata_lookup;
mod missing_schema;
mod records;
mod resolved;
mod schema_table;
mod since;
mod sub_buffers;
mod symbols;
mod tables;
mod trace;
mod value;
mod walk;

pub use builder::TraceBuilder;
pub use contents::Stream;
pub use duplicates::DuplicateKmallocs;
pub use early_end::EarlyEnd;
pub use event::{Event, Stack};
pub use event_chunk::{EventChunk, EventsInfo};
pub use events::{ChunkEvents, Events, Item, Items};
pub use fold::{FoldChunk, FoldInfo, FoldedLives};
pub use header::Header;
pub use incremental::{Arrived, Incremental};
pub use joined::{LEVEL_FLAGS, StackJoiner};
pub use merge::{Gap, Merge, Run};
pub use metadata::{Attachment, CpuCounters, Metadata, TaskRecord, TrailerInfo, WriterCounters};
pub use records::{Record, Records};
pub use schema_table::Schema;
pub(crate) use symbols::SymbolChunk;
pub use symbols::{Resolved, SymbolEntry, SymbolTable};
pub use trace::Trace;
pub use value::{FieldKey, Value};
pub use walk::{ChunkRef, Damage};

/// Parts of reading that recovery uses.
pub(crate) mod recovering {
    pub(crate) use super::body::decoded;
    pub(crate) use super::contents::{Contents, Taken};
    pub(crate) use super::header::{Header, header_bytes, read_header as header_anywhere};
    pub(crate) use super::walk::{Found, Step, Walker, chunk_at};
}
