//! A directory of tracefs and its files.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, mkdirat, openat, statat, unlinkat};

use crate::failure::{Failure, Result};

/// A directory with a ring buffer: the top level of tracefs, or an instance.
///
/// It is kept open: its files can be reached, and what was made in it removed, also after tracefs was unmounted, or
/// something else was mounted in its place.
#[derive(Debug, Clone)]
pub struct TraceDir {
    path: PathBuf,
    /// `None` where there was no such directory.
    handle: Option<Arc<OwnedFd>>,
}

impl PartialEq for TraceDir {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for TraceDir {}

impl TraceDir {
    /// The directory at `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let handle = open_dir(CWD, &path);
        Self { path, handle }
    }

    /// A directory in it.
    pub fn sub(&self, name: &str) -> Self {
        let (parent, path) = self.resolve(name);
        Self { path: self.file(name), handle: open_dir(parent, &path) }
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of a file in it, to name it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Directory and path by which system calls reach a file of it.
    fn resolve(&self, name: &str) -> (BorrowedFd<'_>, PathBuf) {
        match &self.handle {
            Some(handle) => (handle.as_fd(), PathBuf::from(name)),
            None => (CWD, self.file(name)),
        }
    }

    /// Opens a file of it.
    pub fn open(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let (parent, path) = self.resolve(name);
        Ok(openat(parent, path, flags | OFlags::CLOEXEC, Mode::empty())?.into())
    }

    /// True if there is such a file.
    pub fn has(&self, name: &str) -> bool {
        let (parent, path) = self.resolve(name);
        statat(parent, path, AtFlags::empty()).is_ok()
    }

    /// Names of the entries of a directory in it; none where it is not there.
    pub fn names(&self, name: &str) -> Vec<OsString> {
        use std::os::unix::ffi::OsStringExt;
        let dir = self.open(name, OFlags::RDONLY | OFlags::DIRECTORY).ok();
        let entries = dir.and_then(|dir| Dir::read_from(dir).ok()).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_bytes().to_vec());
        names.filter(|name| name != b"." && name != b"..").map(OsString::from_vec).collect()
    }

    /// Makes a directory in it.
    pub fn make_dir(&self, name: &str) -> io::Result<()> {
        let (parent, path) = self.resolve(name);
        Ok(mkdirat(parent, path, Mode::from_raw_mode(0o755))?)
    }

    /// Removes a directory of it; the kernel refuses that for an instance of which a file is open.
    pub fn remove_dir(&self, name: &str) -> io::Result<()> {
        let (parent, path) = self.resolve(name);
        Ok(unlinkat(parent, path, AtFlags::REMOVEDIR)?)
    }

    /// Contents of a file; `None` where it is not there or not readable.
    pub fn read(&self, name: &str) -> Option<String> {
        self.read_bytes(name).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Contents of a file that must be there.
    pub fn must_read(&self, name: &str) -> Result<String> {
        let bytes = self
            .read_bytes(name)
            .map_err(|e| Failure::io("reading", &self.file(name), &e).hint(remedy(&e)))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Contents of a file. Some of them, such as header_page on 6.18, end after the first read, however short it was; so
    /// that one is long.
    pub fn read_bytes(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut file = self.open(name, OFlags::RDONLY)?;
        let mut out = Vec::new();
        let mut buffer = vec![0; 16 << 10];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(out),
                Ok(len) => out.extend_from_slice(&buffer[..len]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes as `echo VALUE > NAME` does: what was there before is replaced.
    pub fn write(&self, name: &str, value: &str) -> Result<()> {
        self.put(name, value, OFlags::TRUNC).map_err(|e| self.not_written(name, value, &e))
    }

    /// Writes as `echo VALUE >> NAME` does.
    pub fn append(&self, name: &str, value: &str) -> Result<()> {
        self.put(name, value, OFlags::APPEND).map_err(|e| self.not_written(name, value, &e))
    }

    /// Writes to a file that is there, opened with these flags.
    pub fn put(&self, name: &str, value: &str, flags: OFlags) -> io::Result<()> {
        self.open(name, OFlags::WRONLY | flags)?.write_all(value.as_bytes())
    }

    fn not_written(&self, name: &str, value: &str, error: &io::Error) -> Failure {
        let failure = Failure::io(&format!("writing {:?} to", value.trim_end()), &self.file(name), error);
        match self.last_error(name) {
            Some(said) => failure.hint(format!("the kernel's message: {said}")),
            None => failure.hint(remedy(error)),
        }
    }

    /// The kernel's explanation of a filter or trigger that it refused: the last entry of error_log (5.3 and later).
    fn last_error(&self, name: &str) -> Option<String> {
        if !name.ends_with("filter") && !name.ends_with("trigger") {
            return None;
        }
        let log = self.read("error_log")?;
        let entry: Vec<&str> = log.lines().collect();
        let start = entry.iter().rposition(|line| line.starts_with('['))?;
        let said: Vec<&str> = entry.get(start..)?.iter().map(|line| line.trim()).collect();
        let (_, first) = said.first()?.rsplit_once("error: ")?;
        Some(first.to_owned()).filter(|first| !first.is_empty())
    }

    /// CPUs that have a ring buffer, possible ones included that never were there.
    pub fn cpus(&self) -> Vec<u32> {
        let number = |name: OsString| name.to_str()?.strip_prefix("cpu")?.parse().ok();
        let mut cpus: Vec<u32> = self.names("per_cpu").into_iter().filter_map(number).collect();
        cpus.sort_unstable();
        cpus
    }
}

fn open_dir(parent: BorrowedFd<'_>, path: &Path) -> Option<Arc<OwnedFd>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(parent, path, flags, Mode::empty()).ok().map(Arc::new)
}

/// Remedy for an error of tracefs.
pub fn remedy(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "run as root; if root is refused too, the kernel is locked down (kmt-capture check shows it)"
        }
        std::io::ErrorKind::NotFound => {
            "this kernel does not have it; kmt-capture check shows the available events"
        }
        std::io::ErrorKind::ResourceBusy => "another process uses it; kmt-capture check shows other users",
        std::io::ErrorKind::OutOfMemory => "give a smaller --buffer-size",
        _ => "kmt-capture check shows the abilities of this kernel",
    }
}
