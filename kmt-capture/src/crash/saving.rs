//! The folder of a saved ring buffer: only root may read it, as it has addresses of the kernel and names of what ran.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use kmt_common::shell;

use crate::failure::{Failure, Result};

/// A folder that is filled.
#[derive(Debug)]
pub struct Saving {
    /// Where its files are.
    pub path: PathBuf,
}

impl Saving {
    /// Makes it.
    pub fn new(path: &Path) -> Result<Self> {
        match DirBuilder::new().mode(0o700).create(path) {
            // Files in the folder that holds it are not about that boot: `convert` looks for them no higher than here.
            Ok(()) => Ok(Self { path: path.join("tracefs") }),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(Failure::new(format!("{} already exists", path.display())).hint(format!(
                    "it may have the events of an earlier crash: `kmt-capture convert {}` converts them; then remove it",
                    shell::path(path)
                )))
            }
            Err(error) => Err(Failure::io("creating", path, &error)),
        }
    }

    /// A new file in it.
    pub fn create(&self, name: &str) -> Result<File> {
        let path = self.path.join(name);
        let failed = |e: &std::io::Error| Failure::io("creating", &path, e);
        let folder = path.parent().unwrap_or(&self.path);
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|e| failed(&e))?;
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(|e| failed(&e))
    }

    /// Writes a new file.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let failed = |e: &std::io::Error| Failure::io("writing", &self.path.join(name), e);
        self.create(name)?.write_all(bytes).map_err(|e| failed(&e))
    }

    /// Writes all of it to the disk.
    pub fn sync(&self) -> Result<()> {
        let synced = File::open(&self.path).and_then(|folder| Ok(rustix::fs::syncfs(&folder)?));
        synced.map_err(|e| Failure::io("syncing", &self.path, &e))
    }
}
