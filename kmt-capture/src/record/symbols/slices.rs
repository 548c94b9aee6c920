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

    /// Calls `take` with each slice, and the address of the kernel's next symbol after it. Slices of the kernel's own symbols of
    /// which none `is_wanted`, by their first address and the next slice's, are left out.
    pub fn for_each(
        mut self,
        modules: &[Module],
        is_wanted: impl Fn(u64, u64) -> bool,
        mut take: impl FnMut(&KernelSymbols<'_>, Option<u64>) -> Result<()>,
    ) -> Result<()> {
        let page_size = rustix::param::page_size() as u64;
        let failed = |e| Failure::new(format!("reading /proc/kallsyms: {e}"));
        while let Some((text, beyond)) = self.next().map_err(failed)? {
            let range = split(text.split(|&b| b == b'\n').next().unwrap_or_default()).zip(beyond);
            if range.is_some_and(|((from, _), to)| !is_wanted(from, to)) {
                continue;
            }
            let mut symbols = parse_kallsyms(text, modules, page_size);
            // The first symbol of the next slice only tells where the last one of this slice ends.
            if let Some(beyond) = beyond {
                symbols.symbols.retain(|s| s.address < beyond);
            }
            take(&symbols, beyond)?;
        }
        Ok(())
    }
}

/// Address and owner of a line; the kernel's own symbols have an empty owner.
fn split(line: &[u8]) -> Option<(u64, &[u8])> {
    let mut address = 0u64;
    let mut digits = 0;
    for byte in line.iter().take_while(|&&byte| byte != b' ') {
        let digit = char::from(*byte).to_digit(16)?;
        address = address.checked_mul(16)? | u64::from(digit);
        digits += 1;
    }
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    // For every line: nearly all of them end with the name of a symbol of the kernel's own.
    let owner = match line.last() {
        Some(b']') => line.split(|&b| b == b'\t').nth(1).unwrap_or_default(),
        _ => &[],
    };
    (digits > 0).then_some((address, owner))
}

/// /proc/modules as it is now.
pub fn running_modules() -> Vec<Module> {
    parse_modules(&std::fs::read_to_string("/proc/modules").unwrap_or_default())
}

/// Calls `take` with each slice of /proc/kallsyms: [`KallsymsSlices::for_each`]. Returns false if the file does not exist.
pub fn for_each_slice(
    slice_len: usize,
    modules: &[Module],
    is_wanted: impl Fn(u64, u64) -> bool,
    take: impl FnMut(&KernelSymbols<'_>, Option<u64>) -> Result<()>,
) -> Result<bool> {
    let Ok(file) = File::open("/proc/kallsyms") else { return Ok(false) };
    let lines = BufReader::with_capacity(slice_len.min(32 << 10), file);
    KallsymsSlices::new(lines, slice_len).for_each(modules, is_wanted, take)?;
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
