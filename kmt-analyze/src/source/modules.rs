//! Modules of a kernel: their files, and their directories in the source.
//!
//! A path below the folder of modules shows the directory in the source, whether it is a build folder or /lib/modules.
//! `dwarf/find` opens the files, `table` takes the directories for addresses without lines. Packed files cannot be
//! read.

use std::collections::BTreeMap;
use std::path::Path;

use kmt_common::folder::Folder;

use super::tree::{named, text};
use crate::failure::Result;
use crate::sort_rows::SortRows;

/// Bytes of `modules.builtin`, at most.
const BUILT_IN_MAX: u64 = 16 << 20;

/// Ends of files of modules; the first two can be read.
const ENDS: [&str; 5] = [".ko", ".ko.debug", ".ko.xz", ".ko.zst", ".ko.gz"];

/// Directories at the top of the kernel's source that hold modules.
const TOPS: [&str; 13] = [
    "arch", "block", "crypto", "drivers", "fs", "ipc", "kernel", "lib", "mm", "net", "samples", "security",
    "sound",
];

/// Files of modules by name, with `_` for `-`: paths below their directory.
pub type ModuleFiles = BTreeMap<String, String>;

/// Modules below a directory. Of several of one name those count that are not packed, and of those the last path.
pub fn files(directory: &Folder) -> Result<ModuleFiles> {
    let paths = named(directory, &|name| stem(name).is_some())?;
    let mut found: Vec<(String, String)> = paths
        .into_iter()
        .filter_map(|path| {
            let name = path.rsplit('/').next()?;
            Some((stem(name)?.replace('-', "_"), path))
        })
        .collect();
    found.sort_rows_by_key(|(name, path)| (name.clone(), !is_packed(path)));
    Ok(found.into_iter().collect())
}

/// Name of a module's file without its end.
fn stem(name: &str) -> Option<&str> {
    ENDS.iter().find_map(|end| name.strip_suffix(end))
}

/// True if a module's file is packed.
pub fn is_packed(path: &str) -> bool {
    !path.ends_with(".ko") && !path.ends_with(".debug")
}

/// Directories of modules in the kernel's source, which their places in the build folder or in /lib/modules show.
#[derive(Debug, Default)]
pub struct ModulePaths {
    loaded: BTreeMap<String, String>,
    /// Modules in the kernel itself.
    built_in: BTreeMap<String, String>,
}

impl ModulePaths {
    /// Those of the modules below a directory, and of the kernel's own in its `modules.builtin`.
    pub fn read(directory: &Path) -> Result<Self> {
        let directory = Folder::open(directory)?;
        let files = files(&directory)?.into_iter();
        let loaded = files.filter_map(|(name, path)| Some((name, directory_of(Path::new(&path))?))).collect();
        let list = text(&directory, "modules.builtin", BUILT_IN_MAX)?;
        let built_in = list.lines().filter_map(|line| {
            let (_, name) = line.rsplit_once('/')?;
            Some((name.strip_suffix(".ko")?.replace('-', "_"), directory_of(Path::new(line))?))
        });
        Ok(Self { loaded, built_in: built_in.collect() })
    }

    /// Directory of a module.
    pub fn of(&self, module: &str) -> Option<&str> {
        self.loaded.get(module).map(String::as_str)
    }

    /// Directory of a module in the kernel itself, whose functions' names begin with its name.
    pub fn built_in(&self, begin: &str) -> Option<&str> {
        self.built_in.get(begin.trim_end_matches('_')).map(String::as_str)
    }
}

/// The directory of a module's file, below the folder of all modules: in /lib/modules, `kernel` stands above the directories of the source.
pub fn directory_of(path: &Path) -> Option<String> {
    let parts: Vec<&str> = path.parent()?.iter().filter_map(|part| part.to_str()).collect();
    let installed = parts.windows(2).rposition(|two| two[0] == "kernel" && TOPS.contains(&two[1]));
    let rest = parts.get(installed.map_or(0, |at| at + 1)..)?;
    (!rest.is_empty()).then(|| rest.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_modules_are_directories_of_the_source() {
        for (path, directory) in [
            ("kernel/fs/ext4/ext4.ko.xz", Some("fs/ext4")),
            ("lib/modules/6.1/kernel/kernel/trace/x.ko", Some("kernel/trace")),
            ("kernel/trace/x.ko", Some("kernel/trace")),
            ("drivers/net/e1000.ko", Some("drivers/net")),
            ("extra/mine.ko", Some("extra")),
            ("mine.ko", None),
        ] {
            assert_eq!(directory_of(Path::new(path)).as_deref(), directory, "{path}");
        }
    }
}
