//! Files with debug information, by name and by build id.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::source::SourceArgs;
use crate::source::target::Target;

/// Directories below one that is searched, at most.
const DEPTH_MAX: u32 = 32;

/// Where debug information is.
pub struct Search<'a> {
    args: &'a SourceArgs,
    /// Modules by name, with `_` for `-`.
    modules: BTreeMap<String, PathBuf>,
    /// Those of the release in the directory of debug information, listed when they are first needed.
    installed: OnceCell<BTreeMap<String, PathBuf>>,
}

impl<'a> Search<'a> {
    /// Lists the modules.
    pub fn new(args: &'a SourceArgs) -> Result<Self> {
        let mut modules = BTreeMap::new();
        if let Some(directory) = &args.modules {
            list(directory, DEPTH_MAX, &mut modules)?;
        }
        Ok(Self { args, modules, installed: OnceCell::new() })
    }

    /// The file of the kernel ("") or of a module.
    pub fn image(&self, target: &Target<'_>, owner: &str) -> Result<Option<PathBuf>> {
        let given =
            if owner.is_empty() { self.args.vmlinux.clone() } else { self.modules.get(owner).cloned() };
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
        let installed = self.installed.get_or_init(|| {
            let mut found = BTreeMap::new();
            // A release without modules has none of the owner either.
            let _ = list(&modules, DEPTH_MAX, &mut found);
            found
        });
        installed.get(owner).cloned()
    }
}

/// Adds the modules below a directory: `NAME.ko`, `NAME.ko.debug`. Of several of one name the last path counts.
fn list(directory: &Path, depth: u32, modules: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(directory).map_err(|e| Failure::io("reading", directory, &e))?;
    let mut entries: Vec<_> = entries.filter_map(|entry| entry.ok()).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        if kind.is_dir() && depth > 0 {
            list(&path, depth - 1, modules)?;
        } else if let Some(name) = path.file_name().and_then(|name| name.to_str()) {
            let stem = name.strip_suffix(".ko").or_else(|| name.strip_suffix(".ko.debug"));
            modules.extend(stem.map(|stem| (stem.replace('-', "_"), path.clone())));
        }
    }
    Ok(())
}
