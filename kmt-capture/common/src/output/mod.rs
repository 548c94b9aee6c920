//! The output file: complete under its name, or absent.

mod dir_entry;
mod folders;
mod special;
mod target;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;

use rustix::fs::Mode;

use self::dir_entry::{DirEntry, sync_file};
pub use self::folders::Folders;
use self::special::{write_all, write_slowly};
pub use self::target::Target;
use self::target::already_there;
use crate::early_end::{FileId, Unfinished};
use crate::failure::{Failure, Outcome, Result};
use crate::text::size;

/// Prints a text to standard output. A closed pipe is not a failure.
pub fn print(text: &[u8]) -> Result<Outcome> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("writing to standard output: {error}")))
        }
        _ => Ok(Outcome::Done),
    }
}

/// Reports a file that was written, its size, and a use of it. Standard output, pipes and devices are not reported.
pub fn report_written(path: &Path, next: &str) {
    let Ok(metadata) = path.metadata() else { return };
    if metadata.is_file() && path != Path::new("-") {
        crate::tell!("{}: {}; {next}", path.display(), size(metadata.len()));
    } else if metadata.is_dir() {
        crate::tell!("{}: {next}", path.display());
    }
}

/// A file being written. It gets its name in [`Output::finish`]; before that it has another, and is removed when
/// this is dropped or a signal ends the program.
#[derive(Debug)]
pub struct Output {
    target: Target,
    file: File,
    /// `None` for standard output, pipes and devices.
    part: Option<PartFile>,
    /// Bytes written.
    len: u64,
}

/// The file under the name that it has until it is complete.
#[derive(Debug)]
struct PartFile {
    /// Name of the complete file.
    entry: DirEntry,
    temporary: DirEntry,
    id: FileId,
    /// `None` for a recording: it stays, unless nothing is in it.
    removal: Option<Unfinished>,
}

/// The name of an unfinished file.
#[derive(Debug, Clone)]
pub struct PartName {
    entry: DirEntry,
    id: FileId,
}

impl PartName {
    /// Path of the file, if it still leads to it.
    pub fn path(&self) -> Option<&Path> {
        self.entry.is(self.id).then_some(self.entry.path.as_path())
    }
}

impl Output {
    /// A binary output, which is removed if it is not finished: [`Target::open_binary`].
    pub fn create(path: &Path, force: bool) -> Result<Self> {
        Target { path: path.to_owned(), force }.open_binary()
    }

    /// A recording: [`Target::record`].
    pub fn record(path: &Path, force: bool) -> Result<Self> {
        Target { path: path.to_owned(), force }.record()
    }

    /// A recording under a name that the user did not give: [`Target::record_new`].
    pub fn record_new(path: &Path) -> Result<Self> {
        Target { path: path.to_owned(), force: false }.record_new()
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.try_write(bytes).map_err(|e| self.failed_to_write(&e))
    }

    /// Appends bytes; returns the error of the system.
    pub fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = write_all(&mut self.file, bytes);
        self.count(bytes, written)
    }

    /// Appends whole chunks, unless the reader does not read and `give_up` returns true. Where it fails, a file ends
    /// with the chunk before them.
    pub fn write_unless(&mut self, bytes: &[u8], give_up: &mut dyn FnMut() -> bool) -> Result<()> {
        let written = match &self.part {
            Some(_) => write_all(&mut self.file, bytes),
            None => write_slowly(&mut self.file, bytes, give_up),
        };
        self.count(bytes, written).map_err(|e| self.failed_to_write(&e))
    }

    fn count(&mut self, bytes: &[u8], written: io::Result<()>) -> io::Result<()> {
        match (&written, &self.part) {
            (Ok(()), _) => self.len += bytes.len() as u64,
            (Err(_), Some(_)) => {
                let _ = self.file.set_len(self.len);
            }
            _ => {}
        }
        written
    }

    /// Takes off what a file has after its first `len` bytes. Pipes and devices cannot take anything back.
    pub fn cut(&mut self, len: u64) -> Result<()> {
        if self.part.is_some() && len < self.len {
            self.file.set_len(len).map_err(|e| self.failed_to_write(&e))?;
            self.file.seek(io::SeekFrom::Start(len)).map_err(|e| self.failed_to_write(&e))?;
            self.len = len;
        }
        Ok(())
    }

    /// Bytes written.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Path of the bytes until the file is finished; `None` for pipes and devices.
    pub fn unfinished(&self) -> Option<&Path> {
        self.part.as_ref().map(|part| part.temporary.path.as_path())
    }

    /// The name of the bytes until the file is finished, to be looked at after it.
    pub fn part_name(&self) -> Option<PartName> {
        let part = self.part.as_ref()?;
        Some(PartName { entry: part.temporary.clone(), id: part.id })
    }

    /// Fails if another process has removed the unfinished file, or put another one in its place.
    pub fn check_name(&self) -> Result<()> {
        match self.part_name().filter(|part| part.path().is_none()) {
            Some(part) => Err(Failure::new(format!(
                "another process removed or replaced {}, to which this process writes",
                part.entry.path.display()
            ))
            .hint("write to a directory that only you can write to")),
            None => Ok(()),
        }
    }

    /// The open file, for writers that want it as their own. What they write is not counted.
    pub fn file(&self) -> Result<File> {
        self.file.try_clone().map_err(|e| Failure::io("opening", &self.target.path, &e))
    }

    /// A failure to write, with what can be done about it.
    pub fn failed_to_write(&self, error: &io::Error) -> Failure {
        let failure = Failure::io("writing", &self.target.path, error);
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                failure.hint("free some space, or choose another file system with -o")
            }
            io::ErrorKind::FileTooLarge => {
                failure.hint("raise the limit on the size of files (ulimit -f), or write to a pipe with -o -")
            }
            io::ErrorKind::Interrupted => failure.hint(
                "the reader of the pipe does not read; the bytes that it received form a readable file",
            ),
            _ => failure,
        }
    }

    /// Lets every user read the file. Standard output, pipes and devices stay as they are.
    pub fn make_public(&self) -> Result<()> {
        if self.part.is_none() {
            return Ok(());
        }
        let changed = rustix::fs::fchmod(&self.file, Mode::from_raw_mode(0o644));
        changed.map_err(|e| Failure::io("changing the mode of", &self.target.path, &e.into()))
    }

    /// Removes what was written to a file.
    pub fn discard(mut self) {
        self.len = 0;
    }

    /// Gives the file its name, once its content is on the disk.
    pub fn finish(mut self) -> Result<()> {
        let Some(part) = &mut self.part else { return Ok(()) };
        let synced = sync_file(&self.file);
        let removal = part.removal.take();
        let PartFile { entry, temporary, id, .. } = part;
        let name = || temporary.rename(&self.file, *id, &entry.name, self.target.force);
        let named = match (synced, removal) {
            (Err(error), removal) => {
                drop(removal);
                return Err(self.failed_to_write(&error));
            }
            (Ok(()), Some(removal)) => removal.finish_with(name),
            (Ok(()), None) => name(),
        };
        match named {
            Ok(()) => {
                let synced =
                    entry.sync().map_err(|e| Failure::io("syncing the directory of", &entry.path, &e));
                self.part = None;
                synced
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(already_there(&self.target.path))
            }
            Err(error) => Err(Failure::io("renaming", &self.target.path, &error)),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // A recording without events is not usable; another file is removed by its `Unfinished`.
        if let Some(PartFile { temporary, id, removal: None, .. }) =
            self.part.as_ref().filter(|_| self.len == 0)
        {
            temporary.remove(*id);
        }
    }
}
