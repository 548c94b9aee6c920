//! A name in an opened directory: what is checked and what is written are the same directory, also if its path leads
//! to meanwhile.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat, flock, fstat, fsync, linkat,
    openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

use crate::early_end::{FileId, file_id};
use crate::failure::{Failure, Result};

/// A file's directory, and its name there.
#[derive(Debug, Clone)]
pub(super) struct DirEntry {
    /// As it was given.
    pub path: PathBuf,
    pub dir: Arc<OwnedFd>,
    pub name: OsString,
}

const FILE: Mode = Mode::from_raw_mode(0o600);

impl DirEntry {
    /// Of a path that may not be there yet; its directory must be.
    pub fn of(path: &Path) -> Result<Self> {
        let is_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let Some(name) = path.file_name().filter(|_| !is_folder) else {
            return Err(is_a_directory(path));
        };
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(CWD, folder, flags | OFlags::RDONLY, Mode::empty());
        let opened = match opened {
            // Files may be made in a directory that may not be read.
            Err(Errno::ACCESS) => openat(CWD, folder, flags | OFlags::PATH, Mode::empty()),
            opened => opened,
        };
        let dir = opened.map_err(|e| {
            Failure::io("creating", path, &e.into())
                .hint("choose an existing directory that you can write to")
        })?;
        Ok(Self { path: path.to_owned(), dir: Arc::new(dir), name: name.to_owned() })
    }

    /// Status of the file under the name.
    pub fn stat(&self) -> Result<Option<Stat>> {
        match statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(Failure::io("reading the status of", &self.path, &error.into())),
        }
    }

    /// Refuses what belongs to another user, root excepted: a pipe or a device.
    pub fn check_owner(&self, stat: &Stat) -> Result<()> {
        if [0, geteuid().as_raw()].contains(&stat.st_uid) {
            return Ok(());
        }
        Err(self.of_another_user(stat))
    }

    /// Refuses what is not a regular file of ours, or a link of ours, which is not followed: with --force only such a file is
    /// replaced.
    pub fn check_replaced(&self, stat: &Stat) -> Result<()> {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile | FileType::Symlink if stat.st_uid == geteuid().as_raw() => Ok(()),
            FileType::RegularFile | FileType::Symlink => Err(self.of_another_user(stat)),
            _ => Err(Failure::new(format!("{} exists and is not a regular file", self.path.display()))
                .hint("choose another name with -o")),
        }
    }

    fn of_another_user(&self, stat: &Stat) -> Failure {
        Failure::new(format!("{} belongs to another user (uid {})", self.path.display(), stat.st_uid))
            .hint("choose another name with -o, in a directory that only you can write to")
    }

    /// Refuses a directory in which others can put a pipe or a device in place of another.
    pub fn check_folder(&self) -> Result<()> {
        let stat =
            fstat(&self.dir).map_err(|e| Failure::io("reading the status of", &self.path, &e.into()))?;
        let mode = Mode::from_raw_mode(stat.st_mode);
        let is_of_others = ![0, geteuid().as_raw()].contains(&stat.st_uid)
            || mode.contains(Mode::WOTH)
            || mode.contains(Mode::WGRP) && ![0, getegid().as_raw()].contains(&stat.st_gid);
        if !is_of_others {
            return Ok(());
        }
        Err(Failure::new(format!(
            "{} is not a file, and other users can write to its directory: any user may read it",
            self.path.display()
        ))
        .hint("put the pipe or device into a directory that only you can write to"))
    }

    /// Another name in the same directory.
    pub fn with_name(&self, name: OsString) -> Self {
        Self { path: self.path.with_file_name(&name), dir: self.dir.clone(), name }
    }

    /// Opens what is there, never through a symbolic link.
    pub fn open(&self, flags: OFlags) -> rustix::io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        openat(&self.dir, &self.name, flags, Mode::empty()).map(File::from)
    }

    /// True if the name still leads to that file.
    pub fn is(&self, file: FileId) -> bool {
        statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| file_id(&stat) == file)
    }

    /// Creates the file and locks it. One that is there is replaced if `replace` allows it and no process writes it.
    pub fn claim(&self, replace: impl Fn(&Path) -> Result<()>) -> Result<(File, FileId)> {
        const TRIES: usize = 16;
        let busy = || {
            Failure::new(format!("{} is being written by another process", self.path.display()))
                .hint("wait until that process ends, or choose another name with -o")
        };
        for _ in 0..TRIES {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match openat(&self.dir, &self.name, flags, FILE) {
                Ok(made) => {
                    let made = File::from(made);
                    let id = self.id_of(&made)?;
                    // Another process may have found it before it was locked; then it is that one's to remove.
                    if lock(&made) && self.is(id) {
                        return Ok((made, id));
                    }
                }
                Err(Errno::EXIST) => {
                    let left = match self.open(OFlags::RDWR | OFlags::NONBLOCK) {
                        Ok(left) => left,
                        Err(Errno::NOENT) => continue,
                        Err(error) => return Err(Failure::io("opening", &self.path, &error.into())),
                    };
                    self.check_replaced(
                        &fstat(&left)
                            .map_err(|e| Failure::io("reading the status of", &self.path, &e.into()))?,
                    )?;
                    if !lock(&left) {
                        return Err(busy());
                    }
                    replace(&self.path)?;
                    let id = self.id_of(&left)?;
                    if self.is(id) {
                        unlinkat(&self.dir, &self.name, AtFlags::empty())
                            .map_err(|e| Failure::io("removing", &self.path, &e.into()))?;
                    }
                }
                Err(error) => {
                    return Err(Failure::io("creating", &self.path, &error.into())
                        .hint("choose a directory that you can write to"));
                }
            }
        }
        Err(busy())
    }

    /// Removes the file, if the name still leads to it.
    pub fn remove(&self, file: FileId) {
        if self.is(file) {
            let _ = unlinkat(&self.dir, &self.name, AtFlags::empty());
        }
    }

    fn id_of(&self, file: &File) -> Result<FileId> {
        let stat = fstat(file).map_err(|e| Failure::io("reading the status of", &self.path, &e.into()))?;
        Ok(file_id(&stat))
    }

    /// Gives `file`, which is under this name, the name `to`; it replaces what is there only with `force`.
    pub fn rename(&self, file: &File, id: FileId, to: &OsStr, force: bool) -> io::Result<()> {
        let named = Self { path: self.path.clone(), dir: self.dir.clone(), name: to.to_owned() };
        let replaced = || io::Error::other("another process replaced its unfinished file");
        if !self.is(id) {
            return Err(replaced());
        }
        if force {
            renameat(&self.dir, &self.name, &self.dir, to)?;
        } else if self.link(file, to)? && self.is(id) {
            unlinkat(&self.dir, &self.name, AtFlags::empty())?;
        }
        if named.is(id) { Ok(()) } else { Err(replaced()) }
    }

    /// A link never replaces a file that came up meanwhile, and made of the open file it cannot be of another one. File
    /// systems without links get a rename. Returns whether the old name is still there.
    fn link(&self, file: &File, to: &OsStr) -> io::Result<bool> {
        let open = format!("/proc/self/fd/{}", file.as_raw_fd());
        let mut linked = linkat(CWD, open.as_str(), &self.dir, to, AtFlags::SYMLINK_FOLLOW);
        if !matches!(linked, Ok(()) | Err(Errno::EXIST)) {
            // Without /proc.
            linked = linkat(&self.dir, &self.name, &self.dir, to, AtFlags::empty());
        }
        match linked {
            Ok(()) => return Ok(true),
            Err(Errno::EXIST) => return Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => {}
        }
        match renameat_with(&self.dir, &self.name, &self.dir, to, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS) if statat(&self.dir, to, AtFlags::SYMLINK_NOFOLLOW).is_err() => {
                renameat(&self.dir, &self.name, &self.dir, to)?;
            }
            renamed => renamed?,
        }
        Ok(false)
    }

    /// Makes the directory's names last.
    pub fn sync(&self) -> io::Result<()> {
        sync(fsync(&self.dir))
    }

    /// A file without a name, in the same directory.
    pub fn nameless(&self) -> Result<File> {
        let failed = |e: Errno| {
            Failure::io("creating a temporary file beside", &self.path, &e.into())
                .hint("choose a directory that you can write to")
        };
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        match openat(&self.dir, ".", flags | OFlags::TMPFILE, FILE) {
            Ok(file) => return Ok(file.into()),
            // File systems and kernels without such files.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT | Errno::NOSYS) => {}
            Err(error) => return Err(failed(error)),
        }
        let name = format!(".kmt.{}.lives", std::process::id());
        let _ = unlinkat(&self.dir, &name, AtFlags::empty());
        let file = openat(&self.dir, &name, flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW, FILE);
        let file = file.map_err(failed)?;
        let _ = unlinkat(&self.dir, &name, AtFlags::empty());
        Ok(file.into())
    }
}

/// Has a file's content last. What cannot be made to last, such as a pipe, is as it is.
pub(super) fn sync_file(file: &File) -> io::Result<()> {
    sync(fsync(file))
}

fn sync(done: rustix::io::Result<()>) -> io::Result<()> {
    match done {
        Ok(()) | Err(Errno::INVAL | Errno::ROFS | Errno::NOSYS | Errno::OPNOTSUPP | Errno::BADF) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Locks a file against other writers; false if one has it. File systems without locks have no protection.
fn lock(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK)
}

/// True if it is a pipe, a socket or a device.
pub(super) fn is_special(stat: &Stat) -> bool {
    let kind = FileType::from_raw_mode(stat.st_mode);
    !matches!(kind, FileType::RegularFile | FileType::Symlink | FileType::Directory)
}

pub(super) fn is_a_directory(path: &Path) -> Failure {
    Failure::new(format!("{} is a directory", path.display())).hint("give a file name with -o")
}
