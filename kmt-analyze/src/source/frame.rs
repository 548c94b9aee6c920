//! A function of an address, and its place in the kernel's source.

use std::borrow::Cow;

use kmt_format::tables::SourceLine;

use super::directory::Directory;

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
