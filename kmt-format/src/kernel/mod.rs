//! Data of the kernel: sub-buffers of the ring buffer and the text files that describe them.
//!
//! Nothing here assumes a page size, word size, byte order, field offset or event id: all of them come from the
//! traced kernel's own `events/header_page` and `format` files and from the bytes. Version remarks name the kernel
//! sources in which a fact was read (kernel/trace/ring_buffer.c, kernel/trace/trace_output.c and neighbours).

mod clock;
mod cmdlines;
mod event_format;
mod header_page;
mod kallsyms;
mod modules;
mod order;
mod order_vote;
mod page_size;
mod stats;
mod subbuffer;
mod version;

pub use clock::{ClockUnit, TraceClock};
pub use cmdlines::{TaskName, parse_saved_cmdlines, parse_saved_tgids};
pub(crate) use event_format::FIELDS_END_MAX;
pub use event_format::{EventFormat, Field, FieldKind};
pub use header_page::HeaderPage;
pub use kallsyms::{KernelSymbols, Symbol, SymbolOwner, parse_kallsyms};
pub(crate) use modules::by_name as modules_by_name;
pub use modules::{Module, parse_modules};
pub use order::ByteOrder;
pub(crate) use order::{unused_bits, with_order};
pub use order_vote::{OrderVote, vote_byte_order};
pub use page_size::page_size_from_snapshots;
pub use stats::CpuStats;
pub use subbuffer::{Missed, SubBuffer, SubBufferItem, SubBufferItems};
pub use version::{KernelVersion, Uname};
