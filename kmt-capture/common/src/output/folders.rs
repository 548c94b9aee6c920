//! Directories made for an output: those that stay empty are removed.

use std::fs;
use std::path::Path;

use rustix::fs::{Mode, mkdirat};

use super::dir_entry::DirEntry;
use crate::early_end::Unfinished;
use crate::failure::{Failure, Result};

/// Directories that did not exist before. When this is dropped, or a signal ends the program, the empty ones go.
#[derive(Debug)]
pub struct Folders {
    made: Vec<Unfinished>,
}

impl Folders {
    /// Makes a directory and those above it.
    pub fn make(path: &Path) -> Result<Self> {
        let mut folders = Self { made: Vec::new() };
        let mut missing: Vec<&Path> = path.ancestors().take_while(|p| !p.as_os_str().is_empty()).collect();
        missing.retain(|p| fs::symlink_metadata(p).is_err());
        for folder in missing.into_iter().rev() {
            let entry = DirEntry::of(folder)?;
            let made = Unfinished::make(&entry.dir, &entry.name, || {
                mkdirat(&entry.dir, &entry.name, Mode::from_raw_mode(0o777))
                    .map(|()| ((), None))
                    .map_err(|e| Failure::io("creating", folder, &e.into()))
            });
            match made {
                Ok(((), made)) => folders.made.push(made),
                // By another export at the same time.
                Err(_) if folder.is_dir() => {}
                Err(failure) => return Err(failure),
            }
        }
        if path.is_dir() {
            Ok(folders)
        } else {
            Err(Failure::new(format!("{} is not a directory", path.display())))
        }
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        // The deepest one first.
        while self.made.pop().is_some() {}
    }
}
