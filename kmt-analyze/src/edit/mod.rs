//! Commands that write a new .kmt file from another one, or check one.

mod anonymize;
mod copy;
mod recover;
mod slice;
mod symbolize;
mod verify;

pub use anonymize::{AnonymizeOptions, Audience, run as anonymize};
pub use kmt_common::compress::Compress;
pub use recover::run as recover;
pub use slice::{SliceOptions, run as slice};
pub use symbolize::run as symbolize;
pub use verify::run as verify;

// docs/json.md is checked against them.
#[cfg(test)]
pub use anonymize::AnonymizeRows;
#[cfg(test)]
pub use verify::VerifyRows;
