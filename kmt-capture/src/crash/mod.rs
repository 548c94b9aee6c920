//! `arm` and `collect`: the events before a crash, in a ring buffer that survives it.
//!
//! Since 6.12 the kernel can map a ring buffer to reserved memory, which keeps its content over a reboot (Documentation/trace/debugging.rst).
//! `arm` records into it and leaves, with a sidecar on disk of facts that the buffer does not keep: formats, addresses, clock, names of tasks.
//! `collect` at the next boot saves all of it to a folder before it changes anything, rebases the symbols, and converts the folder.

mod args;
mod arm;
#[cfg(feature = "convert")]
mod collect;
mod instance;
mod last_boot;
mod log;
mod rebase;
mod save;
mod saving;
mod sidecar;
mod system;

use std::path::{Path, PathBuf};

pub(crate) use args::{ArmArgs, CollectArgs};
pub use arm::{ArmOptions, arm};
#[cfg(feature = "convert")]
pub use collect::{CollectOptions, collect};
pub use save::{SaveOptions, Saved, save};
pub use system::System;

use crate::failure::{Failure, Result};
use sidecar::{LEN_MAX, Sidecar};

/// The sidecar, if the user names no other.
pub const SIDECAR: &str = "/var/lib/kmt/crash.armed";

/// Words for a buffer that was armed and came back empty.
const NOT_KEPT: &str =
    "was armed in an earlier boot, and has no events: its memory was not kept over the restart";

/// Words for a buffer whose sub-buffers the kernel counts wrongly.
const MISCOUNTED: &str = "this kernel counts the sub-buffers of a buffer of this size wrongly. Once it was read, the next restart loses its events";

/// Reads a sidecar; `None`: there is none.
fn read_sidecar(path: &Path) -> Result<Option<Sidecar>> {
    let len = match std::fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::io("reading", path, &error)),
    };
    if len > LEN_MAX {
        return Err(Failure::new(format!(
            "{} has {len} bytes: it is not a sidecar of `kmt-capture arm`",
            path.display()
        ))
        .hint("give the right file with --sidecar"));
    }
    let bytes = std::fs::read(path).map_err(|e| Failure::io("reading", path, &e))?;
    Sidecar::parse(&bytes, path).map(Some)
}

/// True if a boot before this one armed the buffer, and its events were not collected: `collect` and `arm --off` remove the sidecar.
fn is_of_earlier_boot(path: &Path, system: &System) -> bool {
    // A sidecar that cannot be read says nothing.
    let sidecar = read_sidecar(path).ok().flatten();
    sidecar.is_some_and(|sidecar| sidecar.boot_id != system.boot_id())
}

/// Path of the sidecar.
fn sidecar_path(given: Option<&Path>) -> PathBuf {
    given.map_or_else(|| PathBuf::from(SIDECAR), Path::to_owned)
}
