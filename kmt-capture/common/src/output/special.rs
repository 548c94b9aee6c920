//! Outputs that are not files: standard output, pipes, devices, serial lines.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fstat};

use super::dir_entry::DirEntry;
use crate::failure::{Failure, Result};
use crate::tell;

/// Opens a device or a pipe. Another user of the directory may have replaced it by a link or a regular file since it was
/// checked; such a file is refused.
///
/// Its owner receives what is written. So it belongs to us or root, in a directory where no other user can replace it.
pub(super) fn open_special(entry: &DirEntry) -> Result<File> {
    let path = &entry.path;
    entry.check_folder()?;
    if let Some(stat) = entry.stat()? {
        // Before a FIFO is opened: that waits for a reader.
        entry.check_owner(&stat)?;
    }
    // Opening a FIFO waits for its reader. Where there is one, this stays open until the file is: between two writers a
    // reader would meet the end of the file.
    let held = entry.open(OFlags::WRONLY | OFlags::NONBLOCK);
    if held.as_ref().is_err_and(|error| *error == rustix::io::Errno::NXIO) {
        tell!("{} has no reader: waiting for one", path.display());
    }
    let file = entry.open(OFlags::WRONLY).map_err(|e| Failure::io("opening", path, &e.into()))?;
    drop(held);
    let kind = file.metadata().map_err(|e| Failure::io("reading the status of", path, &e))?.file_type();
    if kind.is_file() {
        return Err(Failure::new(format!("another process replaced {} while it was opened", path.display()))
            .hint("write to a directory that only you can write to"));
    }
    // What was opened: the name may lead elsewhere by now.
    entry.check_owner(&fstat(&file).map_err(|e| Failure::io("reading the status of", path, &e.into()))?)?;
    if file.is_terminal() {
        raw_line(&file, path)?;
    }
    Ok(file)
}

/// Standard output, also by the name of its device.
pub(super) fn is_stdout(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// A file that this process was started with: `>(COMMAND)` of a shell gives its pipe such a name. Those names are links,
/// but no other user can change them.
pub(super) fn inherited(path: &Path) -> Option<Result<File>> {
    let text = path.to_str()?;
    let number = if text == "/dev/stderr" {
        2
    } else {
        let digits = text.strip_prefix("/dev/fd/").or(text.strip_prefix("/proc/self/fd/"))?;
        digits.parse::<u32>().ok()?
    };
    let opened = OpenOptions::new().write(true).open(format!("/proc/self/fd/{number}"));
    let refuse_file = |file: File| match file.metadata() {
        Ok(metadata) if metadata.is_file() => {
            Err(Failure::new(format!("{} is an open regular file", path.display()))
                .hint("give the name of the file with -o"))
        }
        _ => Ok(file),
    };
    Some(opened.map_err(|e| Failure::io("opening", path, &e)).and_then(refuse_file))
}

/// Writes all of it; what was opened not to block is waited for.
pub(super) fn write_all(sink: &mut (impl Write + AsFd), mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match sink.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(len) => bytes = bytes.get(len..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let _ = poll(&mut [PollFd::new(&*sink, PollFlags::OUT)], None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes to a pipe or a device, which may take its time: as much at once as a pipe that is ready surely takes.
pub(super) fn write_slowly(
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
        return Err(Failure::new(format!("{} is your own terminal", path.display()))
            .hint("give a file, or a serial line without a login"));
    }
    let set = tcgetattr(file).and_then(|mut line| {
        line.make_raw();
        tcsetattr(file, OptionalActions::Drain, &line)
    });
    set.map_err(|e| Failure::io("setting raw mode of", path, &e.into()))
}
