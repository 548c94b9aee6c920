//! A directory made by others, with a limit on the bytes that are read from it.

use std::fs::File;
use std::io::Read;
use std::ops::Deref;
use std::path::Path;
use std::rc::Rc;

use kmt_common::folder;
use rustix::fs::{SeekFrom, seek};

use super::budget::{Budget, too_large};
use super::limits::{Kind, Limits};
use crate::failure::{Failure, Result};

/// A directory, opened.
#[derive(Debug)]
pub struct Folder {
    folder: folder::Folder,
    budget: Rc<Budget>,
}

impl Deref for Folder {
    type Target = folder::Folder;

    fn deref(&self) -> &folder::Folder {
        &self.folder
    }
}

impl Folder {
    /// A directory that the user named.
    pub fn open(path: &Path, budget: &Rc<Budget>) -> Result<Self> {
        Ok(Self { folder: folder::Folder::open(path)?, budget: budget.clone() })
    }

    /// The directory that holds it, also if its path leads elsewhere meanwhile; `path` is what messages call it.
    pub fn parent(&self, path: &Path) -> Result<Self> {
        Ok(Self { folder: self.folder.parent(path)?, budget: self.budget.clone() })
    }

    /// A directory below it; `None` if there is none.
    pub fn folder(&self, name: &str) -> Result<Option<Self>> {
        let folder = self.folder.folder(name)?;
        Ok(folder.map(|folder| Self { folder, budget: self.budget.clone() }))
    }

    /// The content of a regular file below it.
    pub fn read(&self, name: &str, kind: Kind) -> Result<Option<Vec<u8>>> {
        let Some((file, len)) = self.file(name)? else { return Ok(None) };
        let path = self.path.join(name);
        let limits = &self.budget.limits;
        let limit = limits.of(kind, 0);
        if len > limit {
            return Err(too_large(&path, len, limits, kind));
        }
        self.budget.take(&path, len)?;
        if holes_len(&file, len) > HOLES_MAX {
            return Err(Failure::new(format!(
                "{} is not text: it has holes of more than 1 MiB",
                path.display()
            ))
            .hint("the copy is incomplete: copy the file again, or remove it"));
        }
        // At once: a buffer that grows with the file takes twice as much meanwhile.
        let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or(0));
        // It may grow, and files of /proc have no size.
        let read = file.take(limit.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|e| Failure::io("reading", &path, &e))?;
        if bytes.len() as u64 > limit {
            return Err(too_large(&path, bytes.len() as u64, limits, kind));
        }
        self.budget.take(&path, (bytes.len() as u64).saturating_sub(len))?;
        Ok(Some(bytes))
    }

    /// The first bytes of a regular file.
    pub fn start(&self, name: &str, len: u64) -> Result<Option<(File, Vec<u8>)>> {
        use std::io::Seek;
        let Some((mut file, _)) = self.file(name)? else { return Ok(None) };
        let path = self.path.join(name);
        let mut bytes = Vec::new();
        let read = (&file).take(len).read_to_end(&mut bytes).and_then(|_| file.rewind());
        read.map_err(|e| Failure::io("reading", &path, &e))?;
        Ok(Some((file, bytes)))
    }

    /// Limits of its files.
    pub fn limits(&self) -> &Limits {
        &self.budget.limits
    }
}

/// Bytes of holes in a text that is read. Holes take no disk, but memory.
const HOLES_MAX: u64 = 1 << 20;

/// Length of all holes of a file of that length; 0 where the file system has none.
fn holes_len(file: &File, len: u64) -> u64 {
    let (mut at, mut holes) = (0, 0u64);
    while at < len && holes <= HOLES_MAX {
        let Ok(start) = seek(file, SeekFrom::Hole(at)) else { break };
        let end = seek(file, SeekFrom::Data(start)).unwrap_or(len).min(len);
        if end <= start {
            break;
        }
        holes = holes.saturating_add(end - start);
        at = end;
    }
    // The reader begins at the start. What cannot be sought has no holes.
    let _ = seek(file, SeekFrom::Start(0));
    holes
}
