//! A directory made by others: only regular files below it are read, up to a limit.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, SeekFrom, fstat, openat, openat2, seek, statat,
};
use rustix::io::Errno;

use super::budget::{Budget, too_large};
use super::limits::{Kind, Limits};
use crate::failure::{Failure, Result};

/// A directory, opened.
#[derive(Debug)]
pub struct Folder {
    dir: OwnedFd,
    /// As it is called in messages.
    pub path: PathBuf,
    budget: Rc<Budget>,
}

const BASE: OFlags = OFlags::CLOEXEC.union(OFlags::NOCTTY).union(OFlags::NONBLOCK);

impl Folder {
    /// A directory that the user named.
    pub fn open(path: &Path, budget: &Rc<Budget>) -> Result<Self> {
        let dir = openat(CWD, path, BASE | OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
            .map_err(|e| Failure::io("opening", path, &e.into()))?;
        Ok(Self { dir, path: path.to_owned(), budget: budget.clone() })
    }

    /// The directory that holds it, also if its path leads elsewhere meanwhile; `path` is what messages call it.
    pub fn parent(&self, path: &Path) -> Result<Self> {
        let dir = openat(&self.dir, "..", BASE | OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
            .map_err(|e| Failure::io("opening", path, &e.into()))?;
        Ok(Self { dir, path: path.to_owned(), budget: self.budget.clone() })
    }

    /// A directory below it; `None` if there is none.
    pub fn folder(&self, name: &str) -> Result<Option<Self>> {
        let opened = self.below(name, BASE | OFlags::RDONLY | OFlags::DIRECTORY)?;
        let path = self.path.join(name);
        Ok(opened.map(|dir| Self { dir, path, budget: self.budget.clone() }))
    }

    /// True if any file has that name.
    pub fn has(&self, name: &str) -> bool {
        statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// True if that name itself, no link, is a regular file.
    pub fn is_regular(&self, name: &str) -> bool {
        let stat = statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
    }

    /// A regular file below it, and its size; `None` if there is none, or a directory.
    pub fn file(&self, name: &str) -> Result<Option<(File, u64)>> {
        // Looked at before it is opened: opening a device can do things.
        for flags in [OFlags::CLOEXEC | OFlags::PATH, BASE | OFlags::RDONLY] {
            let Some(opened) = self.below(name, flags)? else { return Ok(None) };
            let path = self.path.join(name);
            let stat = fstat(&opened).map_err(|e| Failure::io("reading the status of", &path, &e.into()))?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => return Ok(None),
                FileType::RegularFile => {}
                kind => return Err(not_regular(&path, kind)),
            }
            if !flags.contains(OFlags::PATH) {
                return Ok(Some((opened.into(), u64::try_from(stat.st_size).unwrap_or(0))));
            }
        }
        Ok(None)
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

    /// Names in a directory below it, sorted; none if there is no such directory.
    pub fn names(&self, name: &str) -> Result<Vec<OsString>> {
        use std::os::unix::ffi::OsStrExt;
        let Some(dir) = self.below(name, BASE | OFlags::RDONLY | OFlags::DIRECTORY)? else {
            return Ok(Vec::new());
        };
        let failed = |e: Errno| Failure::io("reading", &self.path.join(name), &e.into());
        let mut names = Vec::new();
        for entry in Dir::new(dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let bytes = entry.file_name().to_bytes();
            if !matches!(bytes, b"." | b"..") {
                names.push(std::ffi::OsStr::from_bytes(bytes).to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// Limits of its files.
    pub fn limits(&self) -> &Limits {
        &self.budget.limits
    }

    /// Opens what is below it, and never leaves it, by links neither.
    fn below(&self, name: &str, flags: OFlags) -> Result<Option<OwnedFd>> {
        const TRIES: usize = 8;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut opened = Err(Errno::AGAIN);
        for _ in 0..TRIES {
            opened = openat2(&self.dir, name, flags, Mode::empty(), resolve);
            // Something was renamed meanwhile, so that the kernel cannot tell whether it stayed below.
            if !matches!(opened, Err(Errno::AGAIN)) {
                break;
            }
        }
        // Linux before 5.6, or a sandbox that does not know the call.
        if matches!(opened, Err(Errno::NOSYS | Errno::PERM)) {
            opened = self.below_step_by_step(name, flags);
        }
        let path = || self.path.join(name);
        match opened {
            Ok(opened) => Ok(Some(opened)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(Errno::XDEV | Errno::LOOP) => Err(leads_out(&path(), &self.path)),
            Err(Errno::NXIO) => Err(not_regular(&path(), FileType::Socket)),
            Err(error) => Err(Failure::io("opening", &path(), &error.into())),
        }
    }

    /// The same without openat2: no link at all is followed.
    fn below_step_by_step(&self, name: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let mut dir = None;
        let (folders, last) = name.rsplit_once('/').map_or(("", name), |(folders, last)| (folders, last));
        for folder in folders.split('/').filter(|name| !name.is_empty()) {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let at = dir.as_ref().unwrap_or(&self.dir);
            let next = openat(at, folder, flags, Mode::empty()).map_err(|e| self.link_or(at, folder, e))?;
            dir = Some(next);
        }
        let at = dir.as_ref().unwrap_or(&self.dir);
        let opened = openat(at, last, flags | OFlags::NOFOLLOW, Mode::empty());
        let opened = opened.map_err(|e| self.link_or(at, last, e))?;
        let is_link =
            fstat(&opened).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
        if is_link { Err(Errno::LOOP) } else { Ok(opened) }
    }

    /// A link that should be a directory is ENOTDIR.
    fn link_or(&self, dir: &OwnedFd, name: &str, error: Errno) -> Errno {
        let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
        let is_link = stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
        if is_link { Errno::LOOP } else { error }
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

fn leads_out(path: &Path, folder: &Path) -> Failure {
    Failure::new(format!("{} is a link that leads out of {}", path.display(), folder.display()))
        .hint("replace it with a copy of the file: only files below the directory are read")
}

fn not_regular(path: &Path, kind: FileType) -> Failure {
    let kind = match kind {
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "a special file",
    };
    Failure::new(format!("{} is {kind}, not a regular file", path.display()))
        .hint("remove it, or replace it with a regular file")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_leads_out_on_old_kernels_either() {
        let top = std::env::temp_dir().join(format!("kmt-folder-{}", std::process::id()));
        fs::create_dir_all(top.join("in/deep")).unwrap();
        fs::write(top.join("in/deep/file"), "x").unwrap();
        fs::write(top.join("secret"), "x").unwrap();
        symlink("../secret", top.join("in/out")).unwrap();
        symlink("..", top.join("in/up")).unwrap();
        let folder = Folder::open(&top.join("in"), &Budget::new(Limits::default())).unwrap();
        let flags = BASE | OFlags::RDONLY;
        assert!(folder.below_step_by_step("deep/file", flags).is_ok());
        assert_eq!(folder.below_step_by_step("deep/none", flags).err(), Some(Errno::NOENT));
        for name in ["out", "up/secret"] {
            assert_eq!(folder.below_step_by_step(name, flags).err(), Some(Errno::LOOP), "{name}");
            assert_eq!(
                folder.below_step_by_step(name, OFlags::CLOEXEC | OFlags::PATH).err(),
                Some(Errno::LOOP),
                "{name}"
            );
            assert!(folder.read(name, Kind::File).is_err(), "{name}");
        }
        fs::remove_dir_all(top).unwrap();
    }
}
