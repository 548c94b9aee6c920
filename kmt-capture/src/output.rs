//! The output file: complete under its name, or not there at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::failure::{Failure, Outcome, Result};

/// Prints a text that was asked for. A reader that went away is no failure.
pub fn print(text: &[u8]) -> Result<Outcome> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("writing to standard output: {error}")))
        }
        _ => Ok(Outcome::Done),
    }
}

/// Opens a device or a pipe. Another user of the directory may have replaced it by a link to a regular file since it was
/// checked; such a file is refused.
fn open_special(path: &Path) -> Result<File> {
    let no_link = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    let file = OpenOptions::new().write(true).custom_flags(no_link).open(path);
    let file = file.map_err(|e| Failure::io("opening", path, &e))?;
    let kind = file.metadata().map_err(|e| Failure::io("looking at", path, &e))?.file_type();
    if kind.is_file() {
        return Err(Failure::new(format!("{} was replaced while it was opened", path.display()))
            .hint("write to a directory that only you may write to"));
    }
    Ok(file)
}

/// A file being written. It gets its name in [`Output::finish`]; before that it has another, and is removed when
/// this is dropped.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    temporary: Option<PathBuf>,
    /// Whether an unfinished file stays where it is, under its temporary name.
    keep: bool,
    force: bool,
    /// Bytes written.
    len: u64,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    File(File),
    Stdout(File),
}

impl Output {
    /// Opens the output, before any work is done. `-` is standard output.
    ///
    /// New files are created with mode 0600, since they hold kernel addresses and names of what ran, and never
    /// through a symbolic link. Devices and pipes are written to as they are.
    #[cfg(feature = "convert")]
    pub fn create(path: &Path, force: bool) -> Result<Self> {
        Self::open(path, temporary_name(path), force, false)
    }

    /// The same for a recording, which cannot be made again: as long as it lasts the file is NAME.part, and stays so
    /// if it is cut off.
    pub fn record(path: &Path, force: bool) -> Result<Self> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let part = path.with_file_name(name);
        match fs::symlink_metadata(&part) {
            Ok(_) if !force => {
                return Err(Failure::new(format!(
                    "{} is left of a recording that was cut off",
                    part.display()
                ))
                .hint(format!(
                    "`kmt-capture convert {} -o FILE.kmt` saves what it holds; --force overwrites it",
                    part.display()
                )));
            }
            Ok(metadata) if metadata.is_file() => {
                fs::remove_file(&part).map_err(|e| Failure::io("removing", &part, &e))?;
            }
            _ => {}
        }
        Self::open(path, part, force, true)
    }

    fn open(path: &Path, temporary: PathBuf, force: bool, keep: bool) -> Result<Self> {
        let output = |temporary, sink| Self { path: path.to_owned(), temporary, keep, force, len: 0, sink };
        if path == Path::new("-") {
            if io::stdout().is_terminal() {
                return Err(Failure::new("standard output is a terminal, and a .kmt file is binary")
                    .hint("redirect it, or give a file name with -o"));
            }
            let stdout =
                io::stdout().as_fd().try_clone_to_owned().map_err(|e| Failure::io("opening", path, &e))?;
            return Ok(output(None, Sink::Stdout(stdout.into())));
        }
        if let Ok(existing) = fs::symlink_metadata(path) {
            let kind = existing.file_type();
            if !kind.is_file() && !kind.is_symlink() && !kind.is_dir() {
                let file = open_special(path)?;
                if file.is_terminal() {
                    raw_line(&file, path)?;
                }
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
        let file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary).map_err(|e| {
                Failure::io("creating", &temporary, &e).hint("choose a directory that you may write to")
            })?;
        Ok(output(Some(temporary), Sink::File(file)))
    }

    /// Appends bytes.
    #[cfg(feature = "convert")]
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_unless(bytes, &mut || false)
    }

    /// Appends whole chunks, unless nobody reads what was written and `give_up` says so. Where it fails, a file ends
    /// with the chunk before them.
    pub fn write_unless(&mut self, bytes: &[u8], give_up: &mut dyn FnMut() -> bool) -> Result<()> {
        let is_file = self.temporary.is_some();
        let written = match &mut self.sink {
            Sink::File(file) if is_file => file.write_all(bytes),
            Sink::File(file) => write_slowly(file, bytes, give_up),
            Sink::Stdout(stdout) => write_slowly(stdout, bytes, give_up),
        };
        match (&written, &self.sink) {
            (Ok(()), _) => self.len += bytes.len() as u64,
            (Err(_), Sink::File(file)) if is_file => {
                let _ = file.set_len(self.len);
            }
            _ => {}
        }
        written.map_err(|e| self.failed_to_write(&e))
    }

    /// Bytes written.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Where the bytes are until the file is finished; `None` for pipes and devices.
    pub fn unfinished(&self) -> Option<&Path> {
        self.temporary.as_deref()
    }

    fn failed_to_write(&self, error: &io::Error) -> Failure {
        let failure = Failure::io("writing", &self.path, error);
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                failure.hint("make room, or choose another file system with -o")
            }
            io::ErrorKind::Interrupted => {
                failure.hint("whoever reads it does not read; what it has got is readable")
            }
            _ => failure,
        }
    }

    /// Removes what was written to a file.
    pub fn discard(mut self) {
        self.keep = false;
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
        if let Some(temporary) = self.temporary.as_ref().filter(|_| !self.keep || self.len == 0) {
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Writes to a pipe or a device, which may take its time: as much at once as a pipe that is ready surely takes.
fn write_slowly(
    sink: &mut (impl Write + AsFd),
    bytes: &[u8],
    give_up: &mut dyn FnMut() -> bool,
) -> io::Result<()> {
    const PIPE_BUF: usize = 4096;
    let timeout = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
    for piece in bytes.chunks(PIPE_BUF) {
        loop {
            let mut fds = [PollFd::new(&*sink, PollFlags::OUT)];
            match poll(&mut fds, Some(&timeout)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                _ => break,
            }
            if give_up() {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        sink.write_all(piece)?;
        sink.flush()?;
    }
    Ok(())
}

/// A serial line must not translate bytes. A terminal that somebody sits at is refused.
fn raw_line(file: &File, path: &Path) -> Result<()> {
    use rustix::termios::{OptionalActions, tcgetattr, tcsetattr, ttyname};
    let name = |fd: std::os::fd::BorrowedFd<'_>| ttyname(fd, Vec::new()).ok();
    let ours = [name(io::stdin().as_fd()), name(io::stdout().as_fd()), name(io::stderr().as_fd())];
    let own = name(file.as_fd());
    if own.is_some() && ours.contains(&own) {
        return Err(Failure::new(format!("{} is the terminal that you are at", path.display()))
            .hint("name a file, or a serial line that nobody is logged in at"));
    }
    let set = tcgetattr(file).and_then(|mut line| {
        line.make_raw();
        tcsetattr(file, OptionalActions::Drain, &line)
    });
    set.map_err(|e| Failure::io("setting raw", path, &e.into()))
}

fn already_there(path: &Path) -> Failure {
    Failure::new(format!("{} is already there", path.display())).hint("--force overwrites it")
}

#[cfg(feature = "convert")]
fn temporary_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_replaced_a_pipe_is_not_written_to() {
        let folder = std::env::temp_dir().join(format!("kmt-output-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (victim, link) = (folder.join("victim"), folder.join("link"));
        fs::write(&victim, "mine").unwrap();
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        assert!(open_special(&link).is_err(), "a link to a file");
        let said = open_special(&victim).unwrap_err().to_string();
        assert!(said.contains("was replaced while it was opened"), "{said}");
        assert_eq!(fs::read(&victim).unwrap(), b"mine");
        assert!(open_special(Path::new("/dev/null")).is_ok());
        fs::remove_dir_all(folder).unwrap();
    }
}
