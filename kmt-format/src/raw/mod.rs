//! The structures of a .kmt file as they lie on disk: layout only, no logic.
//!
//! Every structure is generic over the file's byte order and has alignment 1, so it can be cast in place on any host.
//! Field by field they are the tables of `format-spec/spec.md`; a test holds the two against each other.

mod chunk;
mod events;
mod header;
mod meta;
mod schema;
mod symbols;
mod trailer;

pub use chunk::{ChunkHeader, ChunkKind, chunk_flags, codecs, filters};
pub use events::{Epoch, EventsHead, Record32, Record64, SubBuffersHead, loss_flags};
pub use header::{BOM, FileHeader, HEADER_LEN, MAGIC, VERSION_MAJOR, VERSION_MINOR};
pub use meta::{ClockHead, StatsRow, TableHead, TaskRow, stats_present};
pub use schema::{ClassRow, FieldRow, SchemaHead, ShapeRow, SlotRow, StringRef};
pub use symbols::{SymbolOwnerRow, SymbolRow32, SymbolRow64, SymbolsHead};
pub use trailer::{IndexRow, Trailer};

/// Chunks, record arrays and the file header start at multiples of this many bytes.
pub const ALIGNMENT: usize = 64;
