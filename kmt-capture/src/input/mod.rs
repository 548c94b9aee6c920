//! Input files of conversions.

mod budget;
mod directory;
mod folder;
mod limits;
mod raw;
mod target;

pub use budget::{Budget, too_large};
pub use directory::{CpuFiles, Directory, STATE, build_ids, timed_snapshots};
pub use folder::Folder;
pub use limits::{Kind, Limits};
pub use target::Target;
