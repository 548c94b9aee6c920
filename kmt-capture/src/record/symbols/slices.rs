//! /proc/kallsyms in slices: all of it at once would be more memory than small targets have.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

use kmt_format::kernel::{KernelSymbols, Module, parse_kallsyms, parse_modules};

use crate::failure::{Failure, Result};

/// Cuts kallsyms between owners, and the kernel's own part between addresses.
pub struct KallsymsSlices<R> {
    lines: R,
    text: Vec<u8>,
    /// The line that was read and belongs to the next slice.
    next: Vec<u8>,
    is_done: bool,
    slice_len: usize,
}

impl<R: BufRead> KallsymsSlices<R> {
    /// Of these lines, each of about that length in bytes.
    pub fn new(lines: R, slice_len: usize) -> Self {
        Self { lines, text: Vec::new(), next: Vec::new(), is_done: false, slice_len }
    }

    /// Text of the next slice, and the address of the one line at its end that belongs to the slice after it.
    pub fn next(&mut self) -> io::Result<Option<(&[u8], Option<u64>)>> {
        self.text.clear();
        self.text.append(&mut self.next);
        let mut last = split(&self.text).map(|(address, owner)| (address, owner.to_vec()));
        while !self.is_done {
            let start = self.text.len();
            if self.lines.read_until(b'\n', &mut self.text)? == 0 {
                self.is_done = true;
                break;
            }
            let Some((address, owner)) = self.text.get(start..).and_then(split) else { continue };
            if let Some((last_address, last_owner)) = &last {
                let same = owner == last_owner.as_slice();
                // The kernel's own symbols are sorted; those of a module are not, and stay together.
                let is_full = start >= self.slice_len && owner.is_empty() && address > *last_address;
                if !same || is_full {
                    self.next = self.text.split_off(start);
                    if same {
                        let beyond = self.next.clone();
                        self.text.extend_from_slice(&beyond);
                    }
                    return Ok(Some((&self.text, same.then_some(address))));
                }
            }
            last = Some((address, owner.to_vec()));
        }
        Ok((!self.text.is_empty()).then_some((&self.text, None)))
    }
}

/// Address and owner of a line; the kernel's own symbols have an empty owner.
fn split(line: &[u8]) -> Option<(u64, &[u8])> {
    let address = line.split(|&b| b == b' ').next()?;
    let address = u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok()?;
    let owner = line.split(|&b| b == b'\t').nth(1).unwrap_or_default();
    Some((address, owner))
}

/// /proc/modules as it is now.
pub fn running_modules() -> Vec<Module> {
    parse_modules(&std::fs::read_to_string("/proc/modules").unwrap_or_default())
}

/// Calls `take` with each slice of /proc/kallsyms, of about `slice_len` bytes, and the address of the kernel's next symbol
/// after it. Returns false if there is no such file.
pub fn for_each_slice(
    slice_len: usize,
    modules: &[Module],
    mut take: impl FnMut(&KernelSymbols<'_>, Option<u64>) -> Result<()>,
) -> Result<bool> {
    let Ok(file) = File::open("/proc/kallsyms") else { return Ok(false) };
    let page_size = rustix::param::page_size() as u64;
    let mut slices = KallsymsSlices::new(BufReader::with_capacity(slice_len.min(32 << 10), file), slice_len);
    let failed = |e| Failure::new(format!("reading /proc/kallsyms: {e}"));
    while let Some((text, beyond)) = slices.next().map_err(failed)? {
        let mut symbols = parse_kallsyms(text, modules, page_size);
        // The first symbol of the next slice only tells where the last one of this slice ends.
        if let Some(beyond) = beyond {
            symbols.symbols.retain(|s| s.address < beyond);
        }
        take(&symbols, beyond)?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use kmt_format::kernel::parse_kallsyms;

    use super::*;

    #[test]
    fn slices_make_the_same_table_as_the_whole() {
        let mut text = String::new();
        for i in 0..20_000u64 {
            text.push_str(&format!("{:016x} t function_number_{i}\n", 0xffff_ffff_8100_0000u64 + i / 3 * 16));
        }
        for module in ["a", "b"] {
            for i in [5u64, 1, 9, 3] {
                let base = if module == "a" { 0xffff_ffff_c000_0000u64 } else { 0xffff_ffff_c010_0000 };
                text.push_str(&format!("{:016x} t f{i}\t[{module}]\n", base + i * 64));
            }
        }
        let whole = parse_kallsyms(text.as_bytes(), &[], 4096);
        let mut slices = KallsymsSlices::new(text.as_bytes(), 96 << 10);
        let (mut symbols, mut count) = (Vec::new(), 0);
        while let Some((text, beyond)) = slices.next().unwrap() {
            let slice = parse_kallsyms(text, &[], 4096);
            symbols.extend(
                slice
                    .symbols
                    .iter()
                    .filter(|s| beyond.is_none_or(|b| s.address < b))
                    .map(|s| (s.address, s.size, s.name.to_vec())),
            );
            count += 1;
        }
        let whole: Vec<_> = whole.symbols.iter().map(|s| (s.address, s.size, s.name.to_vec())).collect();
        assert!(count > 8, "{count} slices");
        assert_eq!(symbols, whole);
    }
}
