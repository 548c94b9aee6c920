//! Where events come from.

mod directory;
mod target;

pub use directory::{CpuFiles, Directory, STATE, timed_snapshots};
pub use target::{Target, read_up_to};
