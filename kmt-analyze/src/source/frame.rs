//! A function of an address, its place in the kernel's source, and the directories of that source.
//!
//! Frames come from a table in the file or from debug information. Labels, `--by directory` and pictures of the source tree use
//! them.

use std::borrow::Cow;

use kmt_format::tables::SourceLine;

/// Bytes of a path at most, as Linux has it (include/uapi/linux/limits.h); names of functions have fewer. Each row of a
/// report may have one.
pub const PATH_MAX: usize = 4096;

/// A function of an address: the one that holds it, or one that is inlined there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame<'t> {
    /// Name of the function.
    pub function: Cow<'t, str>,
    /// File, from the top of the kernel's source.
    pub file: Cow<'t, str>,
    /// Line; 0: not known.
    pub line: u32,
}

impl<'t> Frame<'t> {
    pub(super) fn of(line: &'t SourceLine<'_>) -> Self {
        let (function, file) = (String::from_utf8_lossy(&line.function), String::from_utf8_lossy(&line.file));
        Self { function, file, line: line.line }
    }

    /// True if it has a file, and names that can be those of a file and a function.
    pub(super) fn is_known(&self) -> bool {
        (1..=PATH_MAX).contains(&self.file.len()) && self.function.len() <= PATH_MAX
    }

    /// `fs/ext4/super.c:1394`
    pub fn file_and_line(&self) -> String {
        match self.line {
            0 => self.file.clone().into_owned(),
            line => format!("{}:{line}", self.file),
        }
    }

    /// Names of its file in conditions: the path, and its last part.
    pub fn files(&self) -> [String; 2] {
        let name = self.file.rsplit('/').next().unwrap_or_default();
        [self.file.clone().into_owned(), name.to_owned()]
    }

    /// Directory of the file.
    pub fn directory(&self) -> Directory<'_> {
        Directory::of(&self.file)
    }
}

/// The directory of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory<'t> {
    /// Path from the top of the source; `.` is the top.
    pub path: Cow<'t, str>,
    /// True if it is inferred from the function's name.
    pub is_inferred: bool,
}

/// Directories at the top of the kernel's source that hold many of its parts.
const MANY: [&str; 7] = ["arch", "drivers", "fs", "net", "security", "sound", "tools"];

impl<'t> Directory<'t> {
    /// The directory of a source file.
    pub fn of(file: &'t str) -> Self {
        let path = file.rsplit_once('/').map_or(".", |(path, _)| path);
        Self { path: Cow::Borrowed(path), is_inferred: false }
    }

    /// Names in conditions: the directory, and all above it.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        paths_above(&self.path).chain([self.path.as_ref()])
    }

    /// Part of the kernel: the first part of the path, with the second where the first holds many of them.
    pub fn subsystem(&self) -> &str {
        let parts = if MANY.iter().any(|many| self.path.split('/').next() == Some(many)) { 2 } else { 1 };
        let end = self.path.match_indices('/').nth(parts - 1).map(|(at, _)| at);
        end.and_then(|end| self.path.get(..end)).unwrap_or(&self.path)
    }

    /// A part of its path, marked if it is inferred.
    pub fn marked(&self, part: &str) -> String {
        format!("{}{part}", if self.is_inferred { "~" } else { "" })
    }
}

/// Most parts of a path whose paths above are looked at: those of the kernel's source have a dozen at most, cgroups some
/// more, and each is compared for itself.
const PARTS_MAX: usize = 256;

/// The paths above a path, the shortest first; that of a leading `/` is empty.
pub fn paths_above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').take(PARTS_MAX).filter_map(|(at, _)| path.get(..at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_have_those_above_and_a_subsystem() {
        let driver = Directory::of("drivers/net/ethernet/a.c");
        let names = |directory: &Directory<'_>| directory.names().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(names(&driver), ["drivers", "drivers/net", "drivers/net/ethernet"]);
        assert_eq!(driver.subsystem(), "drivers/net");
        let (fs, top) = (Directory::of("fs/open.c"), Directory::of("x.c"));
        assert_eq!((fs.subsystem(), top.subsystem(), names(&fs)), ("fs", ".", vec!["fs".to_owned()]));
        let inferred = Directory { is_inferred: true, ..fs };
        assert_eq!(inferred.marked("fs"), "~fs");
    }
}
