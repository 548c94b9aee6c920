//! kmt-analyze: explains where a Linux kernel's memory went, from a .kmt file.
//!
//! The program is [`cli`], and this library below it, for tools of one's own:
//!
//! - [`trace`]: an opened file, its losses, names and snapshots ([`trace::session::Session`]).
//! - [`stream`]: its events, decoded and in the order of time; what many have in common has a number.
//! - [`ledger`]: lives of slab objects and pages by exact rules ([`ledger::Receiver`] gets its events).
//! - [`collect`]: sums of one's choice ([`collect::Collector`]), each with a typed [`collect::Handle`].
//! - [`pass`]: one pass over the file ([`pass::selection::analyse_for`]), and its [`pass::Analysis`].
//! - [`reports`]: answers as rows of plain numbers ([`reports::report::Report`]).
//!
//! `examples/own_collector.rs` has a pass with two collectors and one of its own.
//!
//! **This interface is unstable**: until version 1.0 of the library any of it may change. The file format, the command
//! line and the JSON of reports are stable.

pub mod cli;
pub mod collect;
pub mod int_hash;
pub mod ledger;
pub mod pass;
pub mod reports;
pub mod stream;
pub mod trace;

mod analysis;
mod dump;
mod edit;
mod export;
#[doc(hidden)]
pub mod in_process;
mod limits;
mod render;
mod stdio;

pub use kmt_common::failure;
