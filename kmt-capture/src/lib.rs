//! kmt-capture: turns a Linux kernel's trace ring buffers into .kmt files.
//!
//! The program is this library and ten lines of `main`; other tools and tests may call [`convert::convert`].

pub mod cli;
pub mod convert;
pub mod failure;
mod input;
mod output;
mod rewrite;
mod uuid;
