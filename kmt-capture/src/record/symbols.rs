//! Names of functions out of /proc/kallsyms into the file.

mod parts;
mod used;

use std::fs::File;
use std::io::BufReader;

use kmt_format::kernel::{KernelSymbols, Module, parse_kallsyms, parse_modules};
use kmt_format::write::Writer;

use crate::failure::{Failure, Result};
use parts::Parts;
pub use used::UsedSymbols;

/// Bytes of text from which one chunk is made, about.
const CHUNK_TEXT_LEN: usize = 96 << 10;

/// Which symbols of the kernel get into the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Symbols {
    /// All.
    All,
    /// Those that hold addresses of events, and those that bound the kernel image.
    #[default]
    Used,
    /// None.
    None,
}

/// What became of the symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// So many are in the file.
    Written(usize),
    /// The kernel shows zeros only.
    Zeroed,
    /// There is no /proc/kallsyms.
    Missing,
}

/// Writes all symbols of the running kernel; `emit` is called after each part.
pub fn write_all(writer: &mut Writer, mut emit: impl FnMut(&mut Writer) -> Result<()>) -> Result<Outcome> {
    let modules = running_modules();
    let (mut count, mut zeros) = (0, 0);
    let is_there = each_part(CHUNK_TEXT_LEN, &modules, |symbols, _| {
        zeros += usize::from(symbols.all_zero);
        if symbols.symbols.is_empty() {
            return Ok(());
        }
        count += symbols.symbols.len();
        writer.symbols(symbols, &modules)?;
        emit(writer)
    })?;
    Ok(match (count, zeros) {
        _ if !is_there => Outcome::Missing,
        (0, 0) => Outcome::Missing,
        (0, _) => Outcome::Zeroed,
        (count, _) => Outcome::Written(count),
    })
}

/// /proc/modules as it is now.
pub fn running_modules() -> Vec<Module> {
    parse_modules(&std::fs::read_to_string("/proc/modules").unwrap_or_default())
}

/// Shows `take` /proc/kallsyms in parts of about so many bytes, with the address at which the kernel's own symbols go on behind the part.
/// Returns whether there is such a file.
fn each_part(
    part_len: usize,
    modules: &[Module],
    mut take: impl FnMut(&KernelSymbols<'_>, Option<u64>) -> Result<()>,
) -> Result<bool> {
    let Ok(file) = File::open("/proc/kallsyms") else { return Ok(false) };
    let page_size = rustix::param::page_size() as u64;
    let mut parts = Parts::new(BufReader::with_capacity(part_len.min(32 << 10), file), part_len);
    let failed = |e| Failure::new(format!("reading /proc/kallsyms: {e}"));
    while let Some((text, beyond)) = parts.next().map_err(failed)? {
        let mut symbols = parse_kallsyms(text, modules, page_size);
        // The first symbol of the next part only tells where the last one of this part ends.
        if let Some(beyond) = beyond {
            symbols.symbols.retain(|s| s.address < beyond);
        }
        take(&symbols, beyond)?;
    }
    Ok(true)
}
