//! Names of functions out of /proc/kallsyms into the file.

mod slices;
mod used;

use std::fs::File;
use std::io::{BufRead, BufReader};

use kmt_common::kmt_file::{ChunkOutput, KmtFile};

use crate::failure::Result;
use slices::for_each_slice;
pub use slices::running_modules;
pub use used::UsedSymbols;

/// Bytes of text from which one chunk is made, about.
const CHUNK_TEXT_LEN: usize = 96 << 10;

/// Symbols of the kernel that the file gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Symbols {
    /// All symbols of /proc/kallsyms: 2 to 5 MB
    All,
    /// Symbols of addresses in the events
    #[default]
    Used, // and those that bound the kernel image
    /// No symbols: call sites are printed as addresses
    None,
}

/// Result of writing the symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Number of those in the file.
    Written(usize),
    /// The kernel shows zeros only.
    Zeroed,
    /// There is no /proc/kallsyms.
    Missing,
}

/// Writes all symbols of the running kernel, slice by slice.
pub fn write_all(file: &mut KmtFile<impl ChunkOutput>) -> Result<Outcome> {
    let modules = running_modules();
    let (mut count, mut zeros) = (0, 0);
    let is_there = for_each_slice(
        CHUNK_TEXT_LEN,
        &modules,
        |_, _| true,
        |symbols, _| {
            zeros += usize::from(symbols.all_zero);
            if symbols.symbols.is_empty() {
                return Ok(());
            }
            count += symbols.symbols.len();
            file.writer.add_symbols(symbols, &modules)?;
            file.write()
        },
    )?;
    Ok(match (count, zeros) {
        _ if !is_there => Outcome::Missing,
        (0, 0) => Outcome::Missing,
        (0, _) => Outcome::Zeroed,
        (count, _) => Outcome::Written(count),
    })
}

/// True if /proc/kallsyms shows addresses to this process; `None` if the file is missing.
pub fn kallsyms_has_addresses() -> Option<bool> {
    let file = File::open("/proc/kallsyms").ok()?;
    let lines = BufReader::new(file).split(b'\n').map_while(|line| line.ok());
    let mut any_line = false;
    for line in lines {
        any_line = true;
        if line.split(|&b| b == b' ').next().is_some_and(|address| address.iter().any(|&b| b != b'0')) {
            return Some(true);
        }
    }
    any_line.then_some(false)
}
