//! Files with debug information, by name and by build id.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use crate::failure::Result;
use crate::source::SourceArgs;
use crate::source::modules::{ModuleFiles, files, is_packed};
use crate::source::target::Target;

/// Where debug information is.
pub struct Search<'a> {
    args: &'a SourceArgs,
    modules: ModuleFiles,
    /// Those of the release in the directory of debug information, listed when they are first needed.
    installed: OnceCell<ModuleFiles>,
}

impl<'a> Search<'a> {
    /// Lists the modules.
    pub fn new(args: &'a SourceArgs) -> Result<Self> {
        let modules = args.modules.as_deref().map(files).transpose()?.unwrap_or_default();
        Ok(Self { args, modules, installed: OnceCell::new() })
    }

    /// The file of the kernel ("") or of a module.
    pub fn image(&self, target: &Target<'_>, owner: &str) -> Result<Option<PathBuf>> {
        let given = if owner.is_empty() { self.args.vmlinux.clone() } else { unpacked(&self.modules, owner) };
        Ok(given.or_else(|| {
            let directory = self.args.debug_dir.as_deref()?;
            self.by_build_id(directory, target, owner).or_else(|| self.by_release(directory, target, owner))
        }))
    }

    fn by_build_id(&self, directory: &Path, target: &Target<'_>, owner: &str) -> Option<PathBuf> {
        let id = target.build_ids.get(owner)?;
        let (first, rest) = id.split_at_checked(2)?;
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let path = directory.join(".build-id").join(first).join(format!("{rest}.debug"));
        (is_plain(id) && path.is_file()).then_some(path)
    }

    /// Debian has `boot/vmlinux-RELEASE` and `lib/modules/RELEASE`, Fedora and SUSE `lib/modules/RELEASE/vmlinux`.
    fn by_release(&self, directory: &Path, target: &Target<'_>, owner: &str) -> Option<PathBuf> {
        let release = target.release.filter(|release| !release.contains('/') && *release != "..")?;
        let modules = directory.join("lib/modules").join(release);
        if owner.is_empty() {
            let paths = [
                directory.join(format!("boot/vmlinux-{release}")),
                modules.join("vmlinux"),
                modules.join("vmlinux.debug"),
            ];
            return paths.into_iter().find(|path| path.is_file());
        }
        // A release without modules has none of the owner either.
        let installed = self.installed.get_or_init(|| files(&modules).unwrap_or_default());
        unpacked(installed, owner)
    }
}

fn unpacked(files: &ModuleFiles, module: &str) -> Option<PathBuf> {
    files.get(module).filter(|path| !is_packed(path)).cloned()
}
