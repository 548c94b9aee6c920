//! kmt-capture: turns a Linux kernel's trace ring buffers into .kmt files.
//!
//! The program is this library and ten lines of `main`; other tools and tests may call [`record::record`] and
//! [`convert::convert`].

// They panic where the stream cannot be written; `message!`, `tell!` and `Out` do not.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod build_id;
mod check;
mod clean;
pub mod cli;
#[cfg(feature = "convert")]
pub mod convert;
pub mod crash;
mod enumerators;
mod help;
mod mistakes;
mod naming;
pub use kmt_common::failure;
// Files of other tools and answers of other machines are hostile: as in kmt-format, their content never panics.
#[cfg(feature = "convert")]
#[cfg_attr(
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
pub mod import;
#[cfg(feature = "convert")]
mod input;
use kmt_common::output;
pub mod record;
#[cfg(feature = "convert")]
#[cfg_attr(
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
pub mod remote;
mod root;
mod snippet;
pub mod survivors;
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod test_support;
pub mod tracefs;
mod uuid;
mod watch;
mod zero_times;
