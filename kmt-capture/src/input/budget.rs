//! Bytes read of a directory, and the error above the limit.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;

use super::limits::{Kind, Limits};
use crate::failure::{Failure, Result};

/// Bytes that may be read of a directory and of the files beside it.
#[derive(Debug)]
pub struct Budget {
    /// Those of single files too.
    pub limits: Limits,
    used: Cell<u64>,
}

impl Budget {
    /// All of it.
    pub fn new(limits: Limits) -> Rc<Self> {
        Rc::new(Self { limits, used: Cell::new(0) })
    }

    /// Takes `bytes` of it for a file.
    pub(super) fn take(&self, path: &Path, bytes: u64) -> Result<()> {
        self.used.set(self.used.get().saturating_add(bytes));
        if self.used.get() > self.limits.directory {
            return Err(too_large(path, self.used.get(), &self.limits, Kind::Directory));
        }
        Ok(())
    }
}

/// A file, or all of them, above a limit.
pub fn too_large(path: &Path, bytes: u64, limits: &Limits, kind: Kind) -> Failure {
    let what = match kind {
        Kind::Directory => "bytes with the other files of its directory",
        Kind::Raw => "bytes with those of the CPUs before it",
        _ => "bytes",
    };
    Failure::new(format!(
        "{} has {bytes} {what}, more than the limit of {}",
        path.display(),
        limits.of(kind, 0)
    ))
    .hint(format!("if that size is correct, --limit {kind}=SIZE raises the limit"))
}
