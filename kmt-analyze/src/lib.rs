//! kmt-analyze: explains where a Linux kernel's memory went, from a .kmt file.
//!
//! The program is this library and ten lines of `main`.

mod analysis;
pub mod cli;
mod commands;
mod edit;
mod event_names;
mod export;
pub use kmt_common::failure;
#[doc(hidden)]
pub mod in_process;
mod limits;
mod open;
mod render;
mod stream;
mod time_range;
mod unknown;
