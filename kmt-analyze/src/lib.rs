//! kmt-analyze: explains where a Linux kernel's memory went, from a .kmt file.
//!
//! The program is [`cli`]; the library below it is for your own tools:
//!
//! - [`trace`]: an opened file, its losses, names and snapshots ([`trace::session::Session`]).
//! - [`stream`]: its events, decoded and in time order; common properties are numbered.
//! - [`ledger`]: lives of slab objects and pages by exact rules ([`ledger::Receiver`] gets its events).
//! - [`collect`]: more sums ([`collect::Collector`]), each with a typed [`collect::Handle`].
//! - [`pass`]: one pass over the file ([`pass::run`]), and its [`pass::Analysis`].
//! - [`render`]: screens that fit a terminal ([`render::screen::Screen`]).
//! - [`reports`]: reports as rows of plain numbers ([`reports::report::Report`]); several reports and your own collectors
//!   share a pass ([`reports::run::collect`]).
//!
//! A [`trace::session::Session`] is of bytes in memory or of a mapped file ([`trace::open`]).
//! `examples/own_collector.rs` runs a pass with two collectors and one of its own.
//!
//! **This interface is unstable**: until version 1.0 of the library any of it may change. The file format, the command
//! line and the JSON of reports are stable.

// They panic where the stream cannot be written; `message!`, `tell!` and `Out` do not.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

pub mod cli;
pub mod collect;
pub mod int_hash;
pub mod ledger;
pub mod pass;
pub mod render;
pub mod reports;
pub mod stream;
pub mod trace;

mod chart;
mod dump;
mod edit;
mod export;
mod html;
#[doc(hidden)]
pub mod in_process;
mod limits;
mod stdio;

pub use kmt_common::failure;
