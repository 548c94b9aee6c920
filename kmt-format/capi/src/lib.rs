//! libkmt: `.kmt` files read from C.
//!
//! - [`owned`] has traces that own their bytes and events that own their trace. Rust programs use `kmt_format::read`
//!   instead; the Python package is built on this module.
//! - `abi` has the functions of `include/libkmt.h`, which cbindgen makes of it.
//!
//! `docs/c.md` is the manual. `unsafe` is here, each with its argument, and not in kmt-format.

#[cfg(feature = "abi")]
pub mod abi;
mod bytes;
pub mod owned;

pub use bytes::OpenError;
