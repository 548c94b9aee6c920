//! From event chunks to one stream of small, uniform operations in the kernel's order.
//!
//! Chunks are read and checked on other cores ([`load`]); their descriptors and contexts are interned once a chunk
//! ([`intern`]) and looked up for each event ([`decode`]); stacks are joined to their allocations ([`join`]); CPUs are
//! merged in runs ([`merge`]). The ledger, on another core, reads only [`Op`]s and the [`NewItems`] on items that they
//! number; nothing is shared.

pub mod decode;
pub mod gfp_flags;
pub mod intern;
pub mod join;
pub mod load;
pub mod merge;
pub mod op;
pub mod open_chunk;
pub mod pipe;
pub mod plan;
pub mod side_events;

pub use gfp_flags::GfpFlags;
pub use intern::{
    Api, FreeSite, Interner, Item, NO_GFP, NameId, NewItems, Origin, PageSite, Select, Site, known_gfp,
};
pub use join::StackOf;
pub use op::Op;
pub use plan::Interests;
pub use side_events::{SideEventKind, SideNumbers};
