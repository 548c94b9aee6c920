//! Commands that make another .kmt file of one, or look whether one is whole.

mod anonymize;
mod copy;
mod recover;
mod slice;
mod verify;

pub use anonymize::{Audience, Options as AnonymizeOptions, run as anonymize};
pub use kmt_common::compress::Compress;
pub use recover::run as recover;
pub use slice::{Options as SliceOptions, run as slice};
pub use verify::run as verify;
