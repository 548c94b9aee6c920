//! The .kmt format: kernel memory traces that can be read anywhere, in place, for a long time.
//!
//! A .kmt file holds the events of a Linux kernel's trace ring buffers and what it takes to understand them on
//! another machine: event classes with their `print fmt`, symbols, task names, the clock, counters, snapshots. It is
//! described byte by byte in `format-spec/spec.md`.
//!
//! # A whole program
//!
//! It prints the events of a file as the kernel does, those of all CPUs in the kernel's order:
//!
//! ```no_run
//! use kmt_format::{print::Printer, read::Trace};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let path = std::env::args().nth(1).ok_or("usage: print FILE.kmt")?;
//!     let file = std::fs::read(path)?;
//!     let trace = Trace::open(&file)?;
//!     let mut printer = Printer::new(&trace);
//!     for event in trace.events()? {
//!         print!("{:>16} [{:03}] {}", event.time(), event.cpu(), printer.text(&event));
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # Reading a trace
//!
//! [`Trace::open`](read::Trace::open) takes the bytes of a file, in memory or mapped.
//! [`Trace::events`](read::Trace::events) gives its events, those of all CPUs merged in the kernel's order. A field is selected
//! by its name or by its [role](schema::Role), which is the same for all kernel versions:
//!
//! ```
//! use kmt_format::read::Trace;
//! use kmt_format::schema::{Meaning, Role};
//!
//! # let file = kmt_format::example()?;
//! // let file = std::fs::read("trace.kmt")?;
//! let trace = Trace::open(&file)?;
//! let mut waste = 0;
//! for event in trace.events()? {
//!     if event.meaning() == Meaning::KMALLOC {
//!         waste += event.field(Role::BYTES_ALLOC)?.as_u64()? - event.field("bytes_req")?.as_u64()?;
//!     }
//! }
//! assert_eq!(waste, 30);
//! # Ok::<(), kmt_format::Error>(())
//! ```
//!
//! Meanings are constants of [`Meaning`](schema::Meaning):
//!
//! | constant | events |
//! |---|---|
//! | [`KMALLOC`](schema::Meaning::KMALLOC) | kmalloc, kmalloc_node |
//! | [`KFREE`](schema::Meaning::KFREE) | kfree |
//! | [`CACHE_ALLOC`](schema::Meaning::CACHE_ALLOC) | kmem_cache_alloc, kmem_cache_alloc_node |
//! | [`CACHE_FREE`](schema::Meaning::CACHE_FREE) | kmem_cache_free |
//! | [`PAGE_ALLOC`](schema::Meaning::PAGE_ALLOC) | mm_page_alloc |
//! | [`PAGE_FREE`](schema::Meaning::PAGE_FREE) | mm_page_free |
//! | [`PAGE_FREE_BATCHED`](schema::Meaning::PAGE_FREE_BATCHED) | mm_page_free_batched, which comes beside mm_page_free: not another free |
//! | [`RSS_STAT`](schema::Meaning::RSS_STAT) | rss_stat |
//! | [`KERNEL_STACK`](schema::Meaning::KERNEL_STACK) | kernel_stack: the call chain of another event |
//! | [`FREE_RCU`](schema::Meaning::FREE_RCU) | kvfree_call_rcu, a probe on that function |
//! | [`OTHER`](schema::Meaning::OTHER) | all others, by `event.class().name` |
//!
//! Roles are constants of [`Role`](schema::Role):
//!
//! | constant | field |
//! |---|---|
//! | [`PTR`](schema::Role::PTR) | address of the slab object; 0 if the allocation failed |
//! | [`CALL_SITE`](schema::Role::CALL_SITE) | return address of the caller |
//! | [`BYTES_REQ`](schema::Role::BYTES_REQ) | bytes requested |
//! | [`BYTES_ALLOC`](schema::Role::BYTES_ALLOC) | bytes handed out |
//! | [`GFP_FLAGS`](schema::Role::GFP_FLAGS) | allocation flags of the traced kernel |
//! | [`NODE`](schema::Role::NODE) | NUMA node requested |
//! | [`CACHE_NAME`](schema::Role::CACHE_NAME) | name of the cache |
//! | [`ACCOUNTED`](schema::Role::ACCOUNTED) | memory-cgroup accounting was requested |
//! | [`PFN`](schema::Role::PFN) | page frame number |
//! | [`ORDER`](schema::Role::ORDER) | log2 of the number of pages |
//! | [`MIGRATETYPE`](schema::Role::MIGRATETYPE) | migrate type requested |
//! | [`RSS_SIZE`](schema::Role::RSS_SIZE) | size, of rss_stat |
//! | [`STACK`](schema::Role::STACK) | return addresses, innermost first |
//! | [`STACK_DEPTH`](schema::Role::STACK_DEPTH) | number of return addresses |
//! | [`ENTRY_TIME`](schema::Role::ENTRY_TIME) | time when a traced function was entered |
//! | [`RETURN_TIME`](schema::Role::RETURN_TIME) | time when it returned |
//! | [`RCU_HEAD`](schema::Role::RCU_HEAD) | address of the `rcu_head` passed to kvfree_call_rcu |
//! | [`RCU_OBJECT`](schema::Role::RCU_OBJECT) | address of its object, or the offset of the `rcu_head` in it |
//! | [`EVENT_ID`](schema::Role::EVENT_ID) | common_type |
//! | [`FLAGS`](schema::Role::FLAGS) | common_flags |
//! | [`PREEMPT_COUNT`](schema::Role::PREEMPT_COUNT) | common_preempt_count |
//! | [`PID`](schema::Role::PID) | common_pid: the thread that was running |
//! | [`NONE`](schema::Role::NONE) | all others, by name |
//!
//! Both are open sets: later versions may add to them, and a class or field that has none is still there, with its names.
//!
//! Kernels 6.10 and later report one large kmalloc twice: [`DuplicateKmallocs`](read::DuplicateKmallocs) finds the second event,
//! so that a sum counts each allocation once.
//!
//! # Who and where
//!
//! ```
//! use kmt_format::read::Trace;
//! use kmt_format::schema::Role;
//!
//! # let file = kmt_format::example()?;
//! let trace = Trace::open(&file)?;
//! let event = trace.events()?.next().expect("the first event");
//! assert_eq!((event.cpu(), event.time(), event.pid()), (0, 1_000, 77));
//! assert_eq!(event.comm(), Some(&b"cat"[..]));
//! let symbol = event.symbol(Role::CALL_SITE).expect("a symbol");
//! assert_eq!(symbol.to_string(), "alloc_file+0x10/0x100");
//! # Ok::<(), kmt_format::Error>(())
//! ```
//!
//! Call chains are events of their own (`ftrace:kernel_stack`): [`Event::stack`](read::Event::stack) gives the addresses, and
//! [`StackJoiner`](read::StackJoiner) finds the event that each belongs to. [`PrintEnv`](print::PrintEnv) and
//! [`EventText`](print::EventText) print any event as the kernel does, through its own `print fmt`.
//!
//! # What is missing
//!
//! A ring buffer can lose events, and a file can be damaged. [`Trace::events`](read::Trace::events) refuses a damaged file, so
//! that a sum over it is a sum over everything in the file. [`Trace::items`](read::Trace::items) gives what there is, and
//! reports in the same stream where events are missing:
//!
//! ```
//! use kmt_format::read::{Item, Trace};
//!
//! # let file = kmt_format::example()?;
//! let trace = Trace::open(&file)?;
//! let (mut events, mut missing) = (0, 0);
//! for item in trace.items() {
//!     match item {
//!         Item::Event(_) => events += 1,
//!         Item::Loss(gap) => missing += gap.counted(),
//!         _ => {}
//!     }
//! }
//! assert_eq!((events, missing), (4, 7));
//! # Ok::<(), kmt_format::Error>(())
//! ```
//!
//! [`edit::Rewrite`] makes a sound file of what a damaged one still holds.
//!
//! # Everything else in the file
//!
//! [`Trace::metadata`](read::Trace::metadata) has the clock, keys and values, attached files, names of tasks and the kernel's
//! counters; [`Trace::symbols`](read::Trace::symbols) the symbols, [`Trace::schema`](read::Trace::schema) the event classes:
//!
//! ```
//! # let file = kmt_format::example()?;
//! let trace = kmt_format::read::Trace::open(&file)?;
//! assert_eq!(trace.metadata().text("kernel.release"), Some("6.12.0"));
//! assert_eq!(trace.metadata().comm(77, 2_000), Some(&b"cat"[..]));
//! let names: Vec<&str> = trace.schema().classes().map(|(_, class)| class.name.as_str()).collect();
//! assert_eq!(names, ["kmalloc", "kernel_stack"]);
//! # Ok::<(), kmt_format::Error>(())
//! ```
//!
//! # Writing a trace
//!
//! [`Writer`](write::Writer) takes the kernel's `format` files and its records, and does no I/O: [`Writer::take`](write::Writer::take)
//! hands out the bytes that are ready.
//!
//! ```
//! use kmt_format::kernel::ByteOrder;
//! use kmt_format::read::Trace;
//! use kmt_format::schema::Role;
//! use kmt_format::write::{Writer, WriterOptions};
//!
//! // The format file of an event, as the traced kernel printed it.
//! let format = "name: kfree\nID: 458\nformat:\n\
//!     \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
//!     \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
//!     \tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;\n\
//!     \tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;\n\n\
//!     print fmt: \"call_site=%lx ptr=%p\", REC->call_site, REC->ptr\n";
//! let mut writer = Writer::new(WriterOptions::new(ByteOrder::Little, 8))?;
//! let id = writer.add_format("kmem", format)?;
//! let mut record = vec![0; 24];
//! record[..2].copy_from_slice(&id.to_le_bytes());
//! record[16..].copy_from_slice(&0xffff_8880_1234_5000u64.to_le_bytes());
//! writer.add_event(1, 1_000_000, &record)?;
//! let file = writer.finish()?;
//!
//! let trace = Trace::open(&file)?;
//! let event = trace.events()?.next().expect("one event");
//! assert_eq!((event.cpu(), event.time()), (1, 1_000_000));
//! assert_eq!(event.field(Role::PTR)?.as_u64()?, 0xffff_8880_1234_5000);
//! # Ok::<(), kmt_format::Error>(())
//! ```
//!
//! A converter has whole sub-buffers of a kernel: [`Writer::add_sub_buffer`](write::Writer::add_sub_buffer) takes one with its events and
//! its loss. `examples/` has a reader, a writer and a converter, each of one screen.
//!
//! # What to use for what
//!
//! | you have | use |
//! |---|---|
//! | a file in memory or mapped | [`read::Trace`]: opens a slice, gives records in place, merges CPUs |
//! | other limits, or a large file with an index | [`read::TraceBuilder`] |
//! | a pipe, a socket, a file that grows | [`read::Incremental`]: fed pieces of any size, finds the same |
//! | need for more speed | [`read::Merge`]: runs of records of one CPU, in order |
//! | a damaged or torn file, or another codec in mind | [`edit::Rewrite`] |
//! | sub-buffers of a kernel | [`kernel::SubBuffer`] to look into them, [`write::Writer`] to make a file of them |
//! | a finished file and more to add | [`write::Writer::append_to`] |
//!
//! [`kernel`] has what the *kernel* wrote (any version from 4.4 to 7.2, any word size, byte order and page size), [`schema`] and
//! [`raw`] what the *file* holds, [`write`](mod@write), [`read`] and [`edit`] make files, use them, and rewrite them. None of
//! them does I/O.
//!
//! Files may be stored with a codec ([`Compression`]); reading them needs no other calls. Zstandard is there with the feature
//! `zstd`, which links a C library; a file that needs it is refused chunk by chunk where it is not.
//!
//! Nothing here panics on file content, allocates in proportion to a file, or is `unsafe`. Errors have a kind, an offset and
//! a cause ([`Error`], [`Fault`]); [`Limits`] bounds the memory and the counts of a file.
//!
//! # Versions
//!
//! The format and the library have versions of their own. Files: another major version is refused, a later minor one is
//! read (spec section "Versions"). The library follows semantic versioning: what is listed in `docs/public-api.txt` stays
//! as it is within a major version, and a minor version may add to it. Structs and enums that may grow are
//! `non_exhaustive`, or numbers with names ([`schema::Role`], [`raw::ChunkKind`]): make them with their constructors and
//! setters. No type of a dependency is in the public API. The oldest compiler is Rust 1.85; a newer one is required in minor
//! versions only.
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
mod example;
pub mod fold;
#[cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]
pub mod kernel;
mod limits;
mod loss;
mod pack;
#[cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]
pub mod print;
#[cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]
mod print_fmt;
pub mod raw;
#[cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]
pub mod read;
pub mod schema;
pub mod tables;
pub mod write;

pub use codec::Compression;
pub use error::{Error, ErrorKind, Fault, Result};
#[doc(hidden)]
pub use example::example;
pub use limits::Limits;
pub use loss::Loss;
