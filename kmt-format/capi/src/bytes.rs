//! The bytes of a file, wherever they lie.

use core::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use memmap2::{Mmap, MmapOptions};

/// Why a file was not opened.
#[derive(Debug)]
pub enum OpenError {
    /// The operating system refused.
    Io(io::Error),
    /// The bytes are not a trace that can be read.
    Format(kmt_format::Error),
}

impl OpenError {
    /// A short name of the kind that does not change between versions.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io(_) => "io",
            Self::Format(error) => error.code(),
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Format(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for OpenError {}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<kmt_format::Error> for OpenError {
    fn from(error: kmt_format::Error) -> Self {
        Self::Format(error)
    }
}

/// Bytes that stay where they are, also when this value moves.
#[derive(Debug)]
pub(crate) enum Bytes {
    Mapped(Mmap),
    Read(Vec<u8>),
    /// The caller of [`OwnedTrace::of_memory`](crate::owned::OwnedTrace::of_memory) keeps them.
    Foreign(&'static [u8]),
}

impl Bytes {
    /// Maps a regular file; reads anything else to its end.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_file() && metadata.len() > 0 {
            // SAFETY: the map is private and only read. Should another process change the file meanwhile, bytes may
            // change under us; kmt-format reads them by checked slice operations as plain integers, so that a check or
            // an index can fail, and memory safety cannot. Should it shorten the file, the kernel ends the process by
            // SIGBUS: the manual documents it, and opening from memory as the alternative.
            return Ok(Self::Mapped(unsafe { MmapOptions::new().map_copy_read_only(&file) }?));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(Self::Read(bytes))
    }

    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Read(bytes) => bytes,
            Self::Foreign(bytes) => bytes,
        }
    }
}
