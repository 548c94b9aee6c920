//! The output file: complete under its name, or not there at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// A file being written. It gets its name in [`Output::finish`]; before that it has another, and is removed when
/// this is dropped.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    temporary: Option<PathBuf>,
    force: bool,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    File(File),
    Stdout(io::Stdout),
}

impl Output {
    /// Opens the output, before any work is done. `-` is standard output.
    ///
    /// New files are created with mode 0600, since they hold kernel addresses and names of what ran, and never
    /// through a symbolic link. Devices and pipes are written to as they are.
    pub fn create(path: &Path, force: bool) -> Result<Self> {
        let output = |temporary, sink| Self { path: path.to_owned(), temporary, force, sink };
        if path == Path::new("-") {
            if io::stdout().is_terminal() {
                return Err(Failure::new("standard output is a terminal, and a .kmt file is binary")
                    .hint("redirect it, or give a file name with -o"));
            }
            return Ok(output(None, Sink::Stdout(io::stdout())));
        }
        if let Ok(existing) = fs::symlink_metadata(path) {
            let kind = existing.file_type();
            if !kind.is_file() && !kind.is_symlink() && !kind.is_dir() {
                let file = OpenOptions::new()
                    .write(true)
                    .open(path)
                    .map_err(|e| Failure::io("opening", path, &e))?;
                return Ok(output(None, Sink::File(file)));
            }
            if kind.is_dir() {
                return Err(Failure::new(format!("{} is a directory", path.display()))
                    .hint("give a file name with -o"));
            }
            if !force {
                return Err(already_there(path));
            }
        }
        let temporary = temporary_name(path);
        let file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary).map_err(|e| {
                Failure::io("creating", &temporary, &e).hint("choose a directory that you may write to")
            })?;
        Ok(output(Some(temporary), Sink::File(file)))
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let result = match &mut self.sink {
            Sink::File(file) => file.write_all(bytes),
            Sink::Stdout(stdout) => stdout.write_all(bytes),
        };
        result.map_err(|e| self.failed_to_write(&e))
    }

    fn failed_to_write(&self, error: &io::Error) -> Failure {
        let failure = Failure::io("writing", &self.path, error);
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                failure.hint("nothing was left behind; make room, or choose another file system with -o")
            }
            _ => failure,
        }
    }

    /// Gives the file its name.
    pub fn finish(mut self) -> Result<()> {
        match &mut self.sink {
            Sink::File(file) => file.flush(),
            Sink::Stdout(stdout) => stdout.flush(),
        }
        .map_err(|e| self.failed_to_write(&e))?;
        let Some(temporary) = self.temporary.clone() else { return Ok(()) };
        let named = if self.force { fs::rename(&temporary, &self.path) } else { self.link(&temporary) };
        match named {
            Ok(()) => {
                self.temporary = None;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(already_there(&self.path)),
            Err(error) => Err(Failure::io("naming", &self.path, &error)),
        }
    }

    /// A link never replaces a file that came up meanwhile; file systems without links get a plain rename.
    fn link(&self, temporary: &Path) -> io::Result<()> {
        match fs::hard_link(temporary, &self.path) {
            Ok(()) => fs::remove_file(temporary),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            Err(_) if fs::symlink_metadata(&self.path).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(temporary, &self.path),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = fs::remove_file(temporary);
        }
    }
}

fn already_there(path: &Path) -> Failure {
    Failure::new(format!("{} is already there", path.display())).hint("--force overwrites it")
}

fn temporary_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
}
