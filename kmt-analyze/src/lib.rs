//! kmt-analyze: explains where a Linux kernel's memory went, from a .kmt file.
//!
//! The program is [`cli`]; the library below it is for your own tools:
//!
//! - [`open`]: a file, mapped or in memory, and a [`Session`](open::Session) of it: losses, names, snapshots.
//! - [`pass`]: one pass over its events by a [`Request`](pass::Request), and its [`Analysis`](pass::Analysis).
//! - [`collect`]: collectors of a pass, each with a typed [`Handle`](collect::Handle), and the interface for your own.
//! - [`reports`]: reports as rows of plain numbers and as screens; several, and your own collectors, share a pass
//!   ([`reports::collect`]).
//!
//! `examples/own_collector.rs` runs a pass with two collectors and one of its own.
//!
//! **This interface is unstable**: until version 1.0 of the library any of it may change. The file format, the command
//! line and the JSON of reports are stable.

// They panic where the stream cannot be written; `message!`, `tell!` and `Out` do not.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

pub mod cli;
pub mod collect;
mod int_hash;
mod ledger;
pub mod pass;
mod render;
pub mod reports;
mod source;
mod stream;
mod trace;

mod allocinfo;
mod balance;
mod built;
mod chart;
mod dump;
mod edit;
mod env;
mod export;
mod files;
#[cfg(feature = "dwarf")]
mod footprint;
mod html;
mod limits;
mod slab_copies;
mod sort_rows;

pub use kmt_common::failure;

/// Opened files.
pub mod open {
    pub use crate::trace::open::{bytes, trace};
    pub use crate::trace::session::Session;
}

#[doc(hidden)]
pub mod in_process {
    //! Runs command lines in this process, on files in memory, and captures their output: for fuzz targets and tests. Not a
    //! public API.

    use crate::cli;
    use crate::env::Env;
    use crate::failure::Outcome;
    use crate::files::InMemory;
    use crate::pass::condition::Condition;

    /// Result of a command line.
    #[derive(Debug)]
    pub struct CommandResult {
        /// Outcome, or the message of the failure.
        pub ended: Result<Outcome, String>,
        /// Captured standard output.
        pub written: Vec<u8>,
    }

    /// Runs a command line, without the name of the program, on files in memory.
    pub fn run(args: &[&str], files: &[(&str, &[u8])]) -> CommandResult {
        let files = files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
        let memory = InMemory::new(files);
        let ended = cli::run_line(args.iter().copied(), Env::in_memory(memory.clone()));
        CommandResult { ended: ended.map_err(|failure| failure.to_string()), written: memory.take_written() }
    }

    /// True if a text is a valid condition for `--where`.
    pub fn is_condition(text: &str) -> bool {
        Condition::parse(text).is_ok()
    }
}
