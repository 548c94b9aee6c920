//! Commands that write a new .kmt file from another one, or check one.

mod anonymize;
mod copy;
mod output_args;
mod recover;
mod slice;
mod symbolize;
mod verify;

pub use anonymize::{AnonymizeOptions, run as anonymize};
pub use output_args::OutputArgs;
pub use recover::run as recover;
pub use slice::{SliceOptions, run as slice};
pub use symbolize::run as symbolize;
pub use verify::run as verify;

// docs/json.schema.json is made of them.
#[cfg(test)]
pub use anonymize::AnonymizeRows;
#[cfg(test)]
pub use verify::VerifyRows;
