//! The .kmt format: kernel memory traces that can be read anywhere, in place, for a long time.
//!
//! A .kmt file holds the events of a Linux kernel's trace ring buffers and what it takes to understand them on
//! another machine: event classes with their `print fmt`, symbols, task names, the clock, counters, snapshots. It is
//! described byte by byte in `format-spec/spec.md`. This library has three faces:
//!
//! - [`kernel`]: what the *kernel* wrote. Sub-buffers of `trace_pipe_raw`, `format` files, `header_page`, kallsyms,
//!   of any version from 4.4 to 7.2, any word size, byte order and page size.
//! - [`schema`] and [`raw`]: what the *file* holds. Classes, fields and what they mean; kinds of chunks, flags, versions.
//! - [`write`](mod@write), [`read`] and [`edit`]: making files, using them, and making them anew. None of them does I/O.
//!
//! What to use for what:
//!
//! | you have | use |
//! |---|---|
//! | a file in memory or mapped | [`read::Trace`]: opens a slice, gives records in place, merges CPUs |
//! | a pipe, a socket, a file that grows | [`read::Incremental`]: fed pieces of any size, finds the same |
//! | a damaged or torn file, or another codec in mind | [`edit::Rewrite`] |
//! | sub-buffers of a kernel | [`kernel::SubBuffer`] to look into them, [`write::Writer`] to make a file of them |
//! | a finished file and more to add | [`write::Writer::append_to`] |
//!
//! Files may be stored with a codec ([`Compression`]); reading them needs no other calls. Zstandard is there with the feature
//! `zstd`, which links a C library; a file that needs it is refused chunk by chunk where it is not.
//!
//! [`print`](mod@print) renders any event through its own `print fmt`, also events that did not exist when this was built.
//!
//! Nothing here panics on file content, allocates in proportion to a file, or is `unsafe`. Errors say what, where, and
//! whose fault; [`Limits`] bounds what a file may ask for.
//!
//! # Versions
//!
//! The format and the library have versions of their own. Files: another major version is refused, a later minor one is
//! read (spec section "Versions"). The library follows semantic versioning: what is listed in `docs/public-api.txt` stays
//! as it is within a major version, and a minor version may add to it; enums that may grow are marked `non_exhaustive`
//! or are numbers with names ([`schema::Role`], [`raw::ChunkKind`]). No type of a dependency is in it. The oldest compiler
//! is Rust 1.85; a newer one is asked for in minor versions only.
//!
//! # Example
//!
//! `examples/` has a reader, a writer and a converter, each of one screen.
//!
//! ```
//! use kmt_format::kernel::ByteOrder;
//! use kmt_format::read::{Event, Trace};
//! use kmt_format::schema::Role;
//! use kmt_format::write::{Writer, WriterOptions};
//! use kmt_format::{Compression, Limits};
//!
//! // The format file of an event, as the traced kernel printed it.
//! let format = "name: kfree\nID: 458\nformat:\n\
//!     \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
//!     \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
//!     \tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;\n\
//!     \tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;\n\n\
//!     print fmt: \"call_site=%lx ptr=%p\", REC->call_site, REC->ptr\n";
//! let mut writer = Writer::new(WriterOptions::new(ByteOrder::Little, 8).align_u64(8).page_size(4096).trace_uuid(*b"an example trace"))?;
//! writer.add_format("kmem", format)?;
//! let mut record = vec![0; 24];
//! record[..2].copy_from_slice(&458u16.to_le_bytes());
//! record[16..].copy_from_slice(&0xffff_8880_1234_5000u64.to_le_bytes());
//! writer.event(1, 1_000_000, &record)?;
//! let file = writer.finish()?;
//!
//! let trace = Trace::open(&file)?;
//! assert_eq!(trace.event_count(), 1);
//! let mut merge = trace.merge();
//! let run = merge.next_run().expect("one event");
//! let event = Event::new(trace.schema(), run.chunk, run.range.start).expect("it is there");
//! assert_eq!((event.cpu(), event.time()), (1, 1_000_000));
//! assert_eq!(event.uint_with(Role::PTR), Some(0xffff_8880_1234_5000));
//! # Ok::<(), kmt_format::Error>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::todo
    )
)]

#[cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]
mod codec;
#[cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]
pub mod edit;
mod error;
#[cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]
pub mod kernel;
mod limits;
mod loss;
mod pack;
#[cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]
pub mod print;
pub mod raw;
#[cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]
pub mod read;
pub mod schema;
pub mod tables;
pub mod write;

pub use codec::Compression;
pub use error::{Error, ErrorKind, Fault, Result};
pub use limits::Limits;
pub use loss::Loss;
