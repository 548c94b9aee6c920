//! Space of the file system that gets a recording: the recording ends before it is full.

use std::fs::File;

use crate::output::Output;
use crate::record::{Bound, room};

/// Space in which the target still ends the recording well: an eighth of that at the begin, within these bounds.
const NEAR: (u64, u64) = (1 << 20, 32 << 20);
/// The index at the end of a file has less than this part of its bytes.
const INDEX_PART: u64 = 256;

/// Space for more bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// Enough, or unknown.
    Enough,
    /// The recording must end now.
    Little,
    /// Just enough for the end of the file.
    End,
}

/// Space of a file system.
#[derive(Debug, Default)]
pub struct Space {
    /// A file there; `None` for pipes and devices.
    file: Option<File>,
    near: u64,
    is_memory: bool,
}

impl Space {
    /// That of an output.
    pub fn of(output: &Output) -> Self {
        output.unfinished().and_then(|_| output.file().ok()).map(Self::of_file).unwrap_or_default()
    }

    /// That of the file system of a file.
    pub fn of_file(file: File) -> Self {
        let Some((bytes, bound)) = room(&file) else { return Self::default() };
        let near = (bytes / 8).clamp(NEAR.0, NEAR.1);
        Self { file: Some(file), near, is_memory: bound == Bound::Memory }
    }

    /// Space for more than the `len` bytes that are there.
    pub fn left(&self, len: u64) -> Left {
        let Some((bytes, _)) = self.file.as_ref().and_then(room) else { return Left::Enough };
        match bytes.saturating_sub(len / INDEX_PART) {
            0..=0x1_0000 => Left::End,
            bytes if bytes < self.near => Left::Little,
            _ => Left::Enough,
        }
    }

    /// True if as many bytes as there are, `len`, can be written once more.
    pub fn is_for_copy(&self, len: u64) -> bool {
        let found = self.file.as_ref().and_then(room);
        found.is_none_or(|(bytes, _)| bytes > len.saturating_add(len / INDEX_PART))
    }

    /// Why a recording is stopped.
    pub fn reason(&self) -> &'static str {
        if self.is_memory {
            "the output is in memory (tmpfs), and little memory is available"
        } else {
            "the file system of the output is full"
        }
    }
}
