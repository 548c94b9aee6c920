//! Kernel memory traces: what the kernel's ring buffer holds, what a .kmt file holds, and how to read and write it.
#![forbid(unsafe_code)]
mod error;
pub mod kernel;
mod limits;
pub mod print;
pub mod raw;
pub mod read;
pub mod schema;
pub mod write;
pub use error::{Error, ErrorKind, Fault, Result};
pub use limits::Limits;
