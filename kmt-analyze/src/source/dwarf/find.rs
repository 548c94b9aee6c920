//! Files with debug information, by name and by build id.
//!
//! The command line gives a vmlinux, a directory of modules, or a directory of debug information; below it, files are
//! found by build id or by the release, in the layouts of the distributions. Only regular files below these directories
//! are opened. `image` reads a file, `dwarf/mod` looks for the owner of each address.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use kmt_common::folder::{Folder, regular_file};
use kmt_common::input::InputBytes;

use super::image;
use crate::failure::Result;
use crate::files::Files;
use crate::source::modules::{ModuleFiles, files, is_packed};
use crate::source::tree::bytes;
use crate::source::{SourceArgs, Target};

/// A file with debug information: its path and its bytes.
type Found = Option<(PathBuf, InputBytes)>;

/// A directory of modules, and their files.
type Modules = Option<(Folder, ModuleFiles)>;

/// Where debug information is.
pub struct Search<'a> {
    args: &'a SourceArgs,
    modules: Modules,
    /// Those of the release in the directory of debug information, listed when they are first needed.
    installed: OnceCell<Modules>,
}

impl<'a> Search<'a> {
    /// Lists the modules.
    pub fn new(args: &'a SourceArgs) -> Result<Self> {
        let modules = args.modules.as_deref().map(listed).transpose()?;
        Ok(Self { args, modules, installed: OnceCell::new() })
    }

    /// The file of the kernel ("") or of a module.
    pub fn image(&self, target: &Target<'_>, owner: &str, files: &Files) -> Result<Found> {
        let given = match &self.args.vmlinux {
            Some(path) if owner.is_empty() => Some((path.clone(), image::bytes(path, files)?)),
            _ => unpacked(&self.modules, owner)?,
        };
        let Some(directory) = self.args.debug_dir.as_deref().filter(|_| given.is_none()) else {
            return Ok(given);
        };
        let found = self.by_build_id(directory, target, owner)?;
        if found.is_some() { Ok(found) } else { self.by_release(directory, target, owner) }
    }

    fn by_build_id(&self, directory: &Path, target: &Target<'_>, owner: &str) -> Result<Found> {
        let id = target.build_ids.get(owner);
        let Some((first, rest)) = id.and_then(|id| id.split_at_checked(2)) else { return Ok(None) };
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_plain(first) || !is_plain(rest) {
            return Ok(None);
        }
        installed(directory.join(".build-id").join(first).join(format!("{rest}.debug")))
    }

    /// Debian has `boot/vmlinux-RELEASE` and `lib/modules/RELEASE`, Fedora and SUSE `lib/modules/RELEASE/vmlinux`.
    fn by_release(&self, directory: &Path, target: &Target<'_>, owner: &str) -> Result<Found> {
        let release = target.release.filter(|release| !release.contains('/') && *release != "..");
        let Some(release) = release else { return Ok(None) };
        let modules = directory.join("lib/modules").join(release);
        if !owner.is_empty() {
            // A release without modules has none of the owner either.
            return unpacked(self.installed.get_or_init(|| listed(&modules).ok()), owner);
        }
        let paths = [
            directory.join(format!("boot/vmlinux-{release}")),
            modules.join("vmlinux"),
            modules.join("vmlinux.debug"),
        ];
        for path in paths {
            let found = installed(path)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

fn listed(directory: &Path) -> Result<(Folder, ModuleFiles)> {
    let folder = Folder::open(directory)?;
    let files = files(&folder)?;
    Ok((folder, files))
}

/// A file of a distribution's package: its links lead to other directories of the system.
fn installed(path: PathBuf) -> Result<Found> {
    let Some(file) = regular_file(&path)? else { return Ok(None) };
    let bytes = InputBytes::of_file(&path, file, |_| Ok(Vec::new()))?;
    Ok(Some((path, bytes)))
}

fn unpacked(modules: &Modules, module: &str) -> Result<Found> {
    let Some((folder, files)) = modules else { return Ok(None) };
    let Some(path) = files.get(module).filter(|path| !is_packed(path)) else { return Ok(None) };
    Ok(bytes(folder, path)?.map(|bytes| (folder.path.join(path), bytes)))
}
