//! The numbers of a .kmt file: kinds, flags, versions; and, for this library's own use, its structures as they lie on disk.
//!
//! Every structure is generic over the file's byte order and has alignment 1, so it can be cast in place on any host.
//! Field by field they are the tables of `format-spec/spec.md`; a test holds the two against each other.

mod chunk;
mod events;
mod fold;
mod header;
mod meta;
mod schema;
mod symbols;
mod tables;
mod trailer;

pub use chunk::{ChunkKind, chunk_flags, codecs, filters};
pub use events::loss_flags;
pub use fold::fold_flags;
pub use header::{BOM, HEADER_LEN, MAGIC, VERSION_MAJOR, VERSION_MINOR, incompatible};
pub use meta::{attachment_flags, stats_present};

pub(crate) use chunk::ChunkHeader;
pub(crate) use events::{Epoch, EventsHead, Record32, Record64, SubBuffersHead};
pub(crate) use fold::{FoldBin, FoldCpu, FoldHead, FoldRow, NULL_FREES};
pub(crate) use header::FileHeader;
pub(crate) use meta::{AttachmentHead, ClockHead, MetaHead, PairHead, StatsRow, TableHead, TaskRow};
pub(crate) use schema::{ClassRow, FieldRow, SchemaHead, ShapeRow, SlotRow, StringRef};
pub(crate) use symbols::{
    OWNER_FOLLOWS, SYMBOL_NAME_MAX, SYMBOLS_IN_BLOCK_MAX, SymbolBlockRow, SymbolOwnerRow, SymbolsHead,
};
pub(crate) use tables::{CgroupRow, LineRow, SumsRow};
pub(crate) use trailer::{IndexRow, Trailer};

/// Chunks, record arrays and the file header start at multiples of this many bytes.
pub const ALIGNMENT: usize = 64;

#[cfg(test)]
mod tests;
