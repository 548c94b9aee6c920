//! Limits of debug information: what libraries make of it is counted before they make it, so that a small file cannot take
//! all memory, nor the time of a large one.
//!
//! `check`, `walk` and `tables` charge a `Budget` by the size of the file. The constants are measured on a
//! distribution's vmlinux and modules, with a margin. Beyond them the file is refused, with the offset.

use std::cell::Cell;
use std::path::Path;

use crate::failure::{Failure, Result};

/// Memory for any file: 64 MiB. A module of 30 KiB has tables of 1 MiB.
const MEMORY_BASE: u64 = 64 << 20;
/// Memory for each byte of the file. `footprint` of a distribution's vmlinux, whose debug information is compressed to a
/// fourth, needs 14: 4 for the sections, 2 for tables of files, 2 for abbreviations, 3 for lines, 3 for names of files and
/// functions. An uncompressed one needs 3. A file of 16 MiB may have 448 MiB.
const MEMORY_PER_BYTE: u64 = 24;
/// Bytes of the lines of all files together, beside [`ROWS_PER_BYTE`] of each.
pub const ROWS_BASE: u64 = 64 << 20;
/// Bytes of lines for each byte of a file.
const ROWS_PER_BYTE: u64 = 4;
/// Steps of any file. A step is an attribute, an entry of a list, or a KiB of text that is searched for its end: some 5 ns.
const STEPS_BASE: u64 = 64 << 20;
/// Steps for each byte of the file: 0.6 us of time. A vmlinux that is compressed to a fourth needs 10.
const STEPS_PER_BYTE: u64 = 128;
/// Levels of functions that are inlined in each other, at most: the reader of a function calls itself for each of them.
/// Compilers nest some 30.
pub const INLINED_DEPTH_MAX: usize = 256;

/// Memory of what the libraries make, in bytes; vectors may have twice the length that is used. gimli 0.32, addr2line 0.25.
pub mod cost {
    /// A unit, with its lazily filled parts.
    pub const UNIT: u64 = 1_024;
    /// A range of addresses, in a list that is sorted.
    pub const RANGE: u64 = 160;
    /// An abbreviation with 5 attributes.
    pub const ABBREVIATION: u64 = 224;
    /// An attribute of an abbreviation that has more.
    pub const ATTRIBUTE: u64 = 32;
    /// A row of a table of directories.
    pub const DIRECTORY: u64 = 64;
    /// A row of a table of files.
    pub const FILE: u64 = 224;
    /// A path that is made of such a row, without its text.
    pub const PATH: u64 = 64;
    /// A row of lines, which takes one byte or more in the file.
    pub const LINE: u64 = 32;
    /// A function, or an inlined one.
    pub const FUNCTION: u64 = 192;
    /// A range of a function.
    pub const FUNCTION_RANGE: u64 = 64;
    /// A variable and its address.
    pub const VARIABLE: usize = 96;
    /// A function of an address, without its texts.
    pub const FRAME: u64 = 128;
}

/// A place in a file, for messages.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub section: &'static str,
    pub offset: u64,
}

/// Memory and steps that remain for a file.
#[derive(Debug)]
pub struct Budget<'f> {
    path: &'f Path,
    len: u64,
    memory: Cell<u64>,
    steps: Cell<u64>,
}

impl<'f> Budget<'f> {
    /// That of a file of `len` bytes.
    pub fn new(path: &'f Path, len: usize) -> Self {
        let len = len as u64;
        let of = |base: u64, per_byte: u64| Cell::new(base.saturating_add(len.saturating_mul(per_byte)));
        Self { path, len, memory: of(MEMORY_BASE, MEMORY_PER_BYTE), steps: of(STEPS_BASE, STEPS_PER_BYTE) }
    }

    /// Bytes of lines that the file may add.
    pub fn rows(&self) -> u64 {
        self.len.saturating_mul(ROWS_PER_BYTE)
    }

    /// Takes memory for something in the file.
    pub fn memory(&self, bytes: u64, place: Place) -> Result<()> {
        match self.memory.get().checked_sub(bytes) {
            Some(rest) => self.memory.set(rest),
            None => {
                let limit = MEMORY_BASE.saturating_add(self.len.saturating_mul(MEMORY_PER_BYTE));
                return Err(self.beyond(place, format!("needs more memory than the limit of {limit} bytes")));
            }
        }
        Ok(())
    }

    /// Takes steps for something in the file.
    pub fn steps(&self, steps: u64, place: Place) -> Result<()> {
        match self.steps.get().checked_sub(steps) {
            Some(rest) => self.steps.set(rest),
            None => {
                let limit = STEPS_BASE.saturating_add(self.len.saturating_mul(STEPS_PER_BYTE));
                return Err(self.beyond(place, format!("needs more steps than the limit of {limit}")));
            }
        }
        Ok(())
    }

    /// The failure of something in the file.
    pub fn beyond(&self, place: Place, why: String) -> Failure {
        let Place { section, offset } = place;
        Failure::new(format!(
            "{}: debug information {why}, for a file of {} bytes: {section}, offset {offset:#x}",
            self.path.display(),
            self.len
        ))
        .hint("no compiler makes this file: take the kernel's own again; if its sections are compressed, objcopy --decompress-debug-sections makes a file with a higher limit")
    }
}

/// Length of the longest text without a 0 byte in some bytes, in KiB: the steps that the search for the end of a text takes.
pub fn text_steps(bytes: &[u8]) -> u64 {
    bytes.split(|byte| *byte == 0).map(<[u8]>::len).max().unwrap_or(0) as u64 >> 10
}
