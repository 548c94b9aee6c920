//! A directory made by others: only regular files below it are opened, whatever links and special files it has.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, statat};
use rustix::io::Errno;

use crate::failure::{Failure, Result};

/// A directory, opened.
#[derive(Debug)]
pub struct Folder {
    dir: OwnedFd,
    /// As it is called in messages.
    pub path: PathBuf,
}

const BASE: OFlags = OFlags::CLOEXEC.union(OFlags::NOCTTY).union(OFlags::NONBLOCK);

impl Folder {
    /// A directory that the user named.
    pub fn open(path: &Path) -> Result<Self> {
        let dir = openat(CWD, path, BASE | OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
            .map_err(|e| Failure::io("opening", path, &e.into()))?;
        Ok(Self { dir, path: path.to_owned() })
    }

    /// The directory that holds it, also if its path leads elsewhere meanwhile; `path` is what messages call it.
    pub fn parent(&self, path: &Path) -> Result<Self> {
        let dir = openat(&self.dir, "..", BASE | OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
            .map_err(|e| Failure::io("opening", path, &e.into()))?;
        Ok(Self { dir, path: path.to_owned() })
    }

    /// A directory below it; `None` if there is none.
    pub fn folder(&self, name: &str) -> Result<Option<Self>> {
        let opened = self.below(name, BASE | OFlags::RDONLY | OFlags::DIRECTORY)?;
        let path = self.path.join(name);
        Ok(opened.map(|dir| Self { dir, path }))
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
        regular(&self.path.join(name), |flags| self.below(name, flags))
    }

    /// Names in a directory below it, sorted; empty if the directory is missing.
    pub fn names(&self, name: &str) -> Result<Vec<OsString>> {
        Ok(self.entries(name)?.into_iter().map(|(name, _)| name).collect())
    }

    /// Names in a directory below it, sorted, and true for those that are directories, not links to some.
    pub fn entries(&self, name: &str) -> Result<Vec<(OsString, bool)>> {
        let Some(dir) = self.below(name, BASE | OFlags::RDONLY | OFlags::DIRECTORY)? else {
            return Ok(Vec::new());
        };
        let failed = |e: Errno| Failure::io("reading", &self.path.join(name), &e.into());
        let mut names = Vec::new();
        let mut unknown = Vec::new();
        for entry in Dir::read_from(&dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let bytes = entry.file_name().to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            let name = OsStr::from_bytes(bytes).to_owned();
            // Some file systems do not have the kind in the directory.
            match entry.file_type() {
                FileType::Unknown => unknown.push(name),
                kind => names.push((name, kind == FileType::Directory)),
            }
        }
        names.extend(unknown.into_iter().map(|name| {
            let stat = statat(&dir, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW);
            let kind = stat.map(|stat| FileType::from_raw_mode(stat.st_mode));
            (name, kind == Ok(FileType::Directory))
        }));
        names.sort();
        Ok(names)
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

    /// Opens what is below it without openat2: no link at all is followed.
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

/// A regular file by its path; a link is followed to wherever it leads. `None` if there is none, or a directory.
pub fn regular_file(path: &Path) -> Result<Option<File>> {
    let open = |flags| match openat(CWD, path, flags, Mode::empty()) {
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(Failure::io("opening", path, &error.into())),
    };
    Ok(regular(path, open)?.map(|(file, _)| file))
}

/// Opens a regular file, and nothing else.
fn regular(path: &Path, open: impl Fn(OFlags) -> Result<Option<OwnedFd>>) -> Result<Option<(File, u64)>> {
    // Looked at before it is opened: opening a device can do things.
    for flags in [OFlags::CLOEXEC | OFlags::PATH, BASE | OFlags::RDONLY] {
        let Some(opened) = open(flags)? else { return Ok(None) };
        let stat = fstat(&opened).map_err(|e| Failure::io("reading the status of", path, &e.into()))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => return Ok(None),
            FileType::RegularFile => {}
            kind => return Err(not_regular(path, kind)),
        }
        if !flags.contains(OFlags::PATH) {
            return Ok(Some((opened.into(), u64::try_from(stat.st_size).unwrap_or(0))));
        }
    }
    Ok(None)
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
        let folder = Folder::open(&top.join("in")).unwrap();
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
            assert!(folder.file(name).is_err(), "{name}");
        }
        fs::remove_dir_all(top).unwrap();
    }
}
