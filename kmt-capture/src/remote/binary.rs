//! The program for a target: a static file of its machine.

use std::path::{Path, PathBuf};

use kmt_format::kernel::ByteOrder;

use super::checksum::cksum;
use crate::failure::{Failure, Result};

/// Largest program that is read.
const LEN_MAX: u64 = 64 << 20;
/// `PT_INTERP`: the program needs a dynamic linker.
const PT_INTERP: u64 = 3;

/// A program, read.
pub struct Binary {
    /// File of the program.
    pub path: PathBuf,
    /// Bytes of the file.
    pub bytes: Vec<u8>,
    /// Their checksum: computed before the target waits for the next command.
    pub sum: u32,
}

impl Binary {
    fn new(path: PathBuf, bytes: Vec<u8>) -> Self {
        let sum = cksum(&bytes);
        Self { path, bytes, sum }
    }
}

/// The program of a machine: `given`, or the first that fits of those beside this program, in its package's folder, and
/// itself. `None`: none fits.
pub fn find(machine: &str, given: Option<&Path>) -> Result<Option<Binary>> {
    if let Some(path) = given {
        let bytes = read(path)?;
        // One that needs a dynamic linker may find it there: it is started once before it is used.
        return match is_for(&bytes, machine) {
            Ok(_) => Ok(Some(Binary::new(path.to_owned(), bytes))),
            Err(reason) => {
                Err(Failure::new(format!("{} does not run on {machine}: {reason}", path.display()))
                    .hint("give a static kmt-capture of this machine with --binary, or leave --binary out"))
            }
        };
    }
    for path in candidates(machine) {
        if let Ok(bytes) = read(&path) {
            if is_for(&bytes, machine) == Ok(true) {
                return Ok(Some(Binary::new(path, bytes)));
            }
        }
    }
    Ok(None)
}

/// Folders in which the program of a machine is looked for.
pub fn folders() -> String {
    let folders = candidates("").into_iter().take(2);
    let folders = folders.filter_map(|path| Some(path.parent()?.display().to_string()));
    folders.collect::<Vec<_>>().join(" and ")
}

/// Files that may be the program, the best first.
fn candidates(machine: &str) -> Vec<PathBuf> {
    let name = format!("kmt-capture-{machine}");
    let program = std::env::current_exe().and_then(|path| path.canonicalize()).unwrap_or_default();
    let beside = program.parent().unwrap_or(Path::new("/"));
    let package = beside.parent().unwrap_or(Path::new("/")).join("lib/kmt/targets");
    vec![beside.join(&name), package.join(&name), program]
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let failed = |e: &std::io::Error| Failure::io("reading", path, e);
    let len = std::fs::metadata(path).map_err(|e| failed(&e))?.len();
    if len > LEN_MAX {
        return Err(Failure::new(format!("{} has {len} bytes: it is not kmt-capture", path.display())));
    }
    std::fs::read(path).map_err(|e| failed(&e))
}

/// Class (1: 32 bits, 2: 64), byte order and `e_machine` of the programs of a machine (include/uapi/linux/elf-em.h).
fn elf_of(machine: &str) -> Option<(u8, ByteOrder, u64)> {
    Some(match machine {
        "x86_64" => (2, ByteOrder::Little, 62),
        "i686" => (1, ByteOrder::Little, 3),
        "aarch64" => (2, ByteOrder::Little, 183),
        "armv7" => (1, ByteOrder::Little, 40),
        "s390x" => (2, ByteOrder::Big, 22),
        "ppc64le" => (2, ByteOrder::Little, 21),
        "riscv64" => (2, ByteOrder::Little, 243),
        "mips" => (1, ByteOrder::Big, 8),
        _ => return None,
    })
}

/// True if a program of this machine is static; else the reason why it is not one of this machine.
fn is_for(bytes: &[u8], machine: &str) -> std::result::Result<bool, String> {
    let (Some(&class), Some(&data)) = (bytes.get(4), bytes.get(5)) else {
        return Err("it is empty".to_owned());
    };
    if !bytes.starts_with(b"\x7fELF") {
        return Err("it is not an ELF file".to_owned());
    }
    let order = if data == 2 { ByteOrder::Big } else { ByteOrder::Little };
    let uint = |at: u64, len: usize| {
        order.uint_at(bytes, usize::try_from(at).unwrap_or(usize::MAX), len).unwrap_or(0)
    };
    if let Some(expected) = elf_of(machine) {
        if expected != (class, order, uint(18, 2)) {
            return Err("it is for another machine".to_owned());
        }
    }
    // e_phoff, e_phentsize and e_phnum.
    let (table, sizes, word) = if class == 2 { (32, 54, 8) } else { (28, 42, 4) };
    let (table, step, count) = (uint(table, word), uint(sizes, 2), uint(sizes + 2, 2));
    Ok(!(0..count).any(|index| uint(table.saturating_add(index * step), 4) == PT_INTERP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_other_machines_and_dynamic_ones_are_refused() {
        let here = std::env::current_exe().unwrap();
        let bytes = std::fs::read(&here).unwrap();
        if cfg!(all(target_arch = "x86_64", target_env = "gnu", not(target_feature = "crt-static"))) {
            assert_eq!(is_for(&bytes, "x86_64"), Ok(false));
        }
        assert_eq!(is_for(&bytes, "mips"), Err("it is for another machine".to_owned()));
        assert_eq!(is_for(b"#!/bin/sh\n", "x86_64"), Err("it is not an ELF file".to_owned()));
        assert_eq!(is_for(b"", "x86_64"), Err("it is empty".to_owned()));
        assert!(find("mips", Some(&here)).is_err_and(|e| e.to_string().contains("does not run on mips")));
        assert!(find("mips", None).unwrap().is_none());
    }

    /// Headers with any content are read without a panic.
    #[test]
    fn damaged_headers_are_no_panic() {
        for byte in [0, 1, 2, 0x7f, 0xff] {
            let mut bytes = b"\x7fELF\x02\x01".to_vec();
            bytes.resize(80, byte);
            let _ = is_for(&bytes, "x86_64");
            let _ = is_for(&bytes, "other");
        }
    }
}
