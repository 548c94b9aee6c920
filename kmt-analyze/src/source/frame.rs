//! A function of an address, and its place in the kernel's source.

use std::borrow::Cow;

use kmt_format::tables::SourceLine;

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

    /// `fs/ext4/super.c:1394`
    pub fn file_and_line(&self) -> String {
        match self.line {
            0 => self.file.clone().into_owned(),
            line => format!("{}:{line}", self.file),
        }
    }

    /// Names of its directory in conditions: the directory, and all above it.
    pub fn dirs(&self) -> Vec<String> {
        let dir = self.dir();
        let above = dir.match_indices('/').filter_map(|(at, _)| dir.get(..at));
        above.chain([dir]).map(str::to_owned).collect()
    }

    /// Names of its file in conditions: the path, and its last part.
    pub fn files(&self) -> [String; 2] {
        let name = self.file.rsplit('/').next().unwrap_or_default();
        [self.file.clone().into_owned(), name.to_owned()]
    }

    /// Part of the kernel: the first part of the directory, with the second where the first holds many of them.
    pub fn subsystem(&self) -> &str {
        let dir = self.dir();
        let parts = if MANY.iter().any(|many| dir.split('/').next() == Some(many)) { 2 } else { 1 };
        let end = dir.match_indices('/').nth(parts - 1).map(|(at, _)| at);
        end.and_then(|end| dir.get(..end)).unwrap_or(dir)
    }

    /// Directory of the file; `.` for a file at the top.
    pub fn dir(&self) -> &str {
        self.file.rsplit_once('/').map_or(".", |(dir, _)| dir)
    }
}

/// Directories at the top of the kernel's source that hold many of its parts.
const MANY: [&str; 7] = ["arch", "drivers", "fs", "net", "security", "sound", "tools"];
