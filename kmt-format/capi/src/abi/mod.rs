//! The functions of `libkmt.h`.
//!
//! Pointers to objects are `Option<&T>`, `Option<Box<T>>` and the like, which C sees as pointers: that they are valid,
//! and not used by another thread at the same time where they are `*mut`, is a duty of the caller, documented in the header. NULL is
//! allowed everywhere. Functions with raw pointers are `unsafe`: strings end in NUL, and buffers have the size that is
//! passed with them. Every body runs inside `error::guarded`, so that no panic leaves Rust.

#![allow(clippy::missing_safety_doc, reason = "it would be repeated in the header, which documents it once")]

// The order of the header.
mod error;

mod trace;

mod events;

mod fields;

mod c_string;
mod constants;
mod text;

pub use constants::*;
pub use error::{kmt_error_code, kmt_error_text};
pub use events::*;
pub use fields::*;
pub use trace::*;
