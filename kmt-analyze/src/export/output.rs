//! Where exports go: a file that has its name when it is complete, or standard output.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// Where an export goes, and whether it may replace what is there.
#[derive(Debug, Clone)]
pub struct Target {
    /// File or directory; `-` is standard output.
    pub path: PathBuf,
    /// Replace what is there.
    pub force: bool,
}

/// A file being written.
pub struct Output {
    target: Target,
    temporary: Option<PathBuf>,
    sink: BufWriter<Box<dyn Write>>,
    closed: bool,
}

impl Target {
    /// The name that a file has until it is complete.
    pub fn temporary(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        self.path.with_file_name(format!(".{name}.{}.part", std::process::id()))
    }

    /// Says no where something is that must not be replaced.
    pub fn check(&self) -> Result<()> {
        if !self.force && fs::symlink_metadata(&self.path).is_ok() {
            return Err(Failure::new(format!("{} is already there", self.path.display()))
                .hint("--force overwrites it"));
        }
        Ok(())
    }

    /// Gives a complete file its name.
    pub fn name(&self, temporary: &Path) -> Result<()> {
        self.check()?;
        fs::rename(temporary, &self.path).map_err(|e| Failure::io("naming", &self.path, &e))
    }

    /// Opens it. Files are created with mode 0600: they hold kernel addresses and names of what ran.
    pub fn open(&self) -> Result<Output> {
        let sink = |temporary, sink: Box<dyn Write>| {
            let sink = BufWriter::with_capacity(1 << 18, sink);
            Output { target: self.clone(), temporary, sink, closed: false }
        };
        if self.path == Path::new("-") {
            return Ok(sink(None, Box::new(io::stdout())));
        }
        let is_device = fs::metadata(&self.path).is_ok_and(|m| !m.is_file() && !m.is_dir());
        if is_device {
            return Ok(sink(None, Box::new(device(&self.path)?)));
        }
        self.check()?;
        let temporary = self.temporary();
        let file = private(&temporary)?;
        Ok(sink(Some(temporary), Box::new(file)))
    }

    /// Refuses to print what is not text on a terminal.
    pub fn binary(&self) -> Result<()> {
        if self.path == Path::new("-") && io::stdout().is_terminal() {
            return Err(Failure::new("standard output is a terminal, and this format is binary")
                .hint("give a file name with -o"));
        }
        Ok(())
    }
}

/// Opens a device or a pipe. Another user of the directory may have replaced it by a link to a regular file since it was
/// checked; such a file is refused.
fn device(path: &Path) -> Result<File> {
    let file = OpenOptions::new().write(true).open(path).map_err(|e| Failure::io("opening", path, &e))?;
    let kind = file.metadata().map_err(|e| Failure::io("looking at", path, &e))?.file_type();
    if kind.is_file() {
        return Err(Failure::new(format!("{} was replaced while it was opened", path.display()))
            .hint("write to a directory that only you may write to"));
    }
    Ok(file)
}

/// A new file that nobody else may read.
pub fn private(path: &Path) -> Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
    file.map_err(|e| Failure::io("creating", path, &e).hint("choose a directory that you may write to"))
}

impl Output {
    /// Appends bytes; false once nobody reads any more.
    pub fn write(&mut self, bytes: &[u8]) -> Result<bool> {
        if self.closed {
            return Ok(false);
        }
        match self.sink.write_all(bytes) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(false)
            }
            Err(error) => Err(Failure::io("writing", &self.target.path, &error)),
        }
    }

    /// Completes the file.
    pub fn finish(mut self) -> Result<()> {
        match self.sink.flush() {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                return Err(Failure::io("writing", &self.target.path, &error));
            }
            _ => {}
        }
        match self.temporary.take() {
            Some(temporary) => {
                let named = self.target.name(&temporary);
                if named.is_err() {
                    let _ = fs::remove_file(&temporary);
                }
                named
            }
            None => Ok(()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_replaced_a_pipe_is_not_written_to() {
        let victim = std::env::temp_dir().join(format!("kmt-victim-{}", std::process::id()));
        fs::write(&victim, "mine").unwrap();
        let said = device(&victim).unwrap_err().to_string();
        assert!(said.contains("was replaced while it was opened"), "{said}");
        assert_eq!(fs::read(&victim).unwrap(), b"mine");
        assert!(device(Path::new("/dev/null")).is_ok());
        fs::remove_file(victim).unwrap();
    }
}
