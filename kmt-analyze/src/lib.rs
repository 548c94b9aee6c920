//! kmt-analyze: explains where a Linux kernel's memory went, from a .kmt file.
//!
//! The program is this library and ten lines of `main`.

mod analysis;
pub mod cli;
mod collect;
mod dump;
mod edit;
mod export;
pub use kmt_common::failure;
#[doc(hidden)]
pub mod in_process;
mod int_hash;
mod ledger;
mod limits;
mod pass;
mod render;
mod reports;
mod stdio;
mod stream;
mod trace;
