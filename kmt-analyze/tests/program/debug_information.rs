//! Debug information that is made to be large in memory, or deep: refused within limits, and never an end by a signal.

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use flate2::Compression;
use flate2::write::ZlibEncoder;

use crate::source::Made;
use crate::support::files::{Scratch, stderr};

/// Address of the code.
const CODE: u64 = 0xffff_ffff_8100_0000;
/// Bytes of the one function.
const FUNCTION: u64 = 0x100;
/// SHF_COMPRESSED of the ELF specification.
const COMPRESSED: u64 = 1 << 11;

/// An ELF file with a function and sections of debug information: name, flags, bytes.
fn elf(debug: &[(&str, u64, Vec<u8>)]) -> Vec<u8> {
    let symbol = |name: u32, info: u8, section: u16, address: u64, size: u64| {
        [
            &name.to_le_bytes()[..],
            &[info, 0],
            &section.to_le_bytes(),
            &address.to_le_bytes(),
            &size.to_le_bytes(),
        ]
        .concat()
    };
    let symbols = [symbol(0, 0, 0, 0, 0), symbol(1, 2, 1, CODE, FUNCTION)].concat();
    let strings = 4 + debug.len() as u32 - 1;
    // Name, kind, flags, address, link, size of an entry, bytes.
    let mut sections = vec![
        ("", 0, 0, 0, 0, 0, Vec::new()),
        (".text", 1, 6, CODE, 0, 0, vec![0x90; FUNCTION as usize]),
        (".symtab", 2, 0, 0, strings, 24, symbols),
    ];
    sections.extend(debug.iter().map(|(name, flags, bytes)| (*name, 1, *flags, 0, 0, 0, bytes.clone())));
    sections.push((".strtab", 3, 0, 0, 0, 0, b"\0function\0".to_vec()));
    let mut names = Vec::new();
    let mut starts: Vec<u32> = Vec::new();
    for name in sections.iter().map(|section| section.0).chain([".shstrtab"]) {
        starts.push(names.len() as u32);
        names.extend(name.bytes().chain([0]));
    }
    sections.push((".shstrtab", 3, 0, 0, 0, 0, names));
    let (mut contents, mut headers) = (Vec::new(), Vec::new());
    for ((_, kind, flags, address, link, entry, bytes), name) in sections.iter().zip(starts) {
        for number in [name, *kind as u32] {
            headers.extend(number.to_le_bytes());
        }
        for number in [*flags, *address, 64 + contents.len() as u64, bytes.len() as u64] {
            headers.extend(number.to_le_bytes());
        }
        headers.extend([&link.to_le_bytes()[..], &[0; 4], &1u64.to_le_bytes()].concat());
        headers.extend((*entry as u64).to_le_bytes());
        contents.extend(bytes);
        contents.resize(contents.len().next_multiple_of(8), 0);
    }
    let mut file = [&b"\x7fELF\x02\x01\x01"[..], &[0; 9], &[2, 0, 62, 0, 1, 0, 0, 0]].concat();
    file.extend([CODE, 0, 64 + contents.len() as u64].map(u64::to_le_bytes).concat());
    file.extend([&[0; 4][..], &[64, 0, 0, 0, 0, 0, 64, 0]].concat());
    file.extend((sections.len() as u16).to_le_bytes());
    file.extend((sections.len() as u16 - 1).to_le_bytes());
    [file, contents, headers].concat()
}

/// A unit of DWARF 4.
fn unit(abbreviations: usize, entries: &[u8]) -> Vec<u8> {
    let len = entries.len() as u32 + 7;
    [&len.to_le_bytes()[..], &[4, 0], &(abbreviations as u32).to_le_bytes(), &[8], entries].concat()
}

/// An abbreviation, with a code of three bytes: its tag, whether it has children, and its attributes.
fn abbreviation(code: u32, tag: u8, has_children: bool, attributes: &[(u8, u8)]) -> Vec<u8> {
    let attributes = attributes.iter().flat_map(|(name, form)| [*name, *form]);
    [&number(code)[..], &[tag, u8::from(has_children)], &attributes.collect::<Vec<u8>>(), &[0, 0]].concat()
}

/// A number in three bytes, as an ULEB128.
fn number(number: u32) -> [u8; 3] {
    [number as u8 | 0x80, (number >> 7) as u8 | 0x80, (number >> 14) as u8 & 0x7f]
}

const LOW_HIGH: [(u8, u8); 2] = [(0x11, 0x01), (0x12, 0x06)];

/// An entry at the function.
fn at_function(code: u32) -> Vec<u8> {
    [&number(code)[..], &CODE.to_le_bytes(), &(FUNCTION as u32).to_le_bytes()].concat()
}

/// A function in which others are inlined, each in the one before it.
fn inlined(depth: usize) -> Vec<u8> {
    let abbreviations = [
        abbreviation(1, 0x11, true, &LOW_HIGH),
        abbreviation(2, 0x2e, true, &LOW_HIGH),
        abbreviation(3, 0x1d, true, &LOW_HIGH),
    ];
    let mut entries = [at_function(1), at_function(2), at_function(3).repeat(depth)].concat();
    entries.resize(entries.len() + depth + 2, 0);
    elf(&[
        (".debug_info", 0, unit(0, &entries)),
        (".debug_abbrev", 0, [&abbreviations.concat()[..], &[0]].concat()),
    ])
}

/// Units whose tables of abbreviations are the ends of one table.
fn many_abbreviations(units: usize, abbreviations: usize) -> Vec<u8> {
    let one = |code| abbreviation(code, 0x11, false, &[]);
    let table: Vec<u8> = (1..=abbreviations as u32).flat_map(one).collect();
    let info = (0..units).flat_map(|number_of| unit(number_of * one(1).len(), &number(1 + number_of as u32)));
    elf(&[(".debug_info", 0, info.collect()), (".debug_abbrev", 0, table)])
}

/// Units of one table of files.
fn many_files(units: usize, files: usize) -> Vec<u8> {
    let tables = [&[0][..], &b"f\0\0\0\0".repeat(files), &[0]].concat();
    let header = [&[1, 1, 1, 0, 1, 1][..], &tables].concat();
    let rest = [&[4, 0][..], &(header.len() as u32).to_le_bytes(), &header].concat();
    let line = [&(rest.len() as u32).to_le_bytes()[..], &rest].concat();
    let abbreviations = [abbreviation(1, 0x11, false, &[(0x10, 0x17)]), vec![0]].concat();
    let entry = [&number(1)[..], &[0; 4]].concat();
    elf(&[
        (".debug_info", 0, unit(0, &entry).repeat(units)),
        (".debug_abbrev", 0, abbreviations),
        (".debug_line", 0, line),
    ])
}

/// Functions of one list of ranges.
fn many_ranges(functions: usize, ranges: u64) -> Vec<u8> {
    let abbreviations =
        [abbreviation(1, 0x11, true, &LOW_HIGH), abbreviation(2, 0x2e, false, &[(0x55, 0x17)])];
    let entry = [&number(2)[..], &[0; 4]].concat();
    let entries = [&at_function(1)[..], &entry.repeat(functions), &[0]].concat();
    let list = (0..ranges).flat_map(|_| [CODE, CODE + FUNCTION].map(u64::to_le_bytes).concat());
    let list: Vec<u8> = list.chain([0; 16]).collect();
    elf(&[
        (".debug_info", 0, unit(0, &entries)),
        (".debug_abbrev", 0, [&abbreviations.concat()[..], &[0]].concat()),
        (".debug_ranges", 0, list),
    ])
}

/// Functions of names that are the ends of one text, and of the entry at byte 11, the first of the unit.
fn long_names(functions: usize, text: usize) -> Vec<u8> {
    let abbreviations = [
        abbreviation(1, 0x11, true, &LOW_HIGH),
        abbreviation(2, 0x2e, false, &[(0x11, 0x01), (0x12, 0x06), (0x03, 0x0e), (0x31, 0x13)]),
    ];
    let function =
        |at: usize| [at_function(2), (at as u32).to_le_bytes().to_vec(), vec![11, 0, 0, 0]].concat();
    let entries = [at_function(1), (0..functions).flat_map(function).collect(), vec![0]].concat();
    elf(&[
        (".debug_info", 0, unit(0, &entries)),
        (".debug_abbrev", 0, [&abbreviations.concat()[..], &[0]].concat()),
        (".debug_str", 0, vec![b'n'; text]),
    ])
}

/// Compressed sections, and the size that each states.
fn compressed(sections: &[&str], bytes: u64, content: &[u8]) -> Vec<u8> {
    let header = [&1u32.to_le_bytes()[..], &[0; 4], &bytes.to_le_bytes(), &1u64.to_le_bytes()].concat();
    let mut zlib = ZlibEncoder::new(header, Compression::fast());
    zlib.write_all(content).unwrap();
    let section = zlib.finish().unwrap();
    let mut all = vec![(".debug_info", 0, unit(0, &number(1)))];
    all.extend(sections.iter().map(|name| (*name, COMPRESSED, section.clone())));
    elf(&all)
}

/// Runs both readers of debug information with little memory and time.
fn run(vmlinux: &[u8]) -> [Output; 2] {
    let scratch = Scratch::new();
    let (path, trace) = (scratch.0.join("vmlinux"), scratch.0.join("trace.kmt"));
    fs::write(&path, vmlinux).unwrap();
    let made = Made::of(false, vmlinux.to_vec(), ".text", [(9, Vec::new())].into_iter());
    fs::write(&trace, made.trace(&[]).0).unwrap();
    let (path, trace) = (path.to_str().unwrap(), trace.to_str().unwrap());
    let commands = [
        vec!["footprint", "--json", "--vmlinux", path],
        vec!["callers", "--by", "file", "--json", "--vmlinux", path, trace],
    ];
    commands.map(|args| {
        let shell = "ulimit -v 700000; exec timeout 60 \"$0\" \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", shell, env!("CARGO_BIN_EXE_kmt-analyze")]).args(args);
        command.stdin(Stdio::null()).output().unwrap()
    })
}

fn check_refused(vmlinux: &[u8], why: &str) {
    assert!(vmlinux.len() < 2 << 20, "{} bytes are not few", vmlinux.len());
    for output in run(vmlinux) {
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{why}: {text}");
        for part in ["vmlinux: debug information", why, "offset 0x", "hint: "] {
            assert!(text.contains(part), "{part:?} is not in: {text}");
        }
    }
}

/// Checks that no limit refuses a file; without names of files, reports by file refuse it.
fn check_read(vmlinux: &[u8]) {
    let [sizes, lines] = run(vmlinux);
    assert_eq!(sizes.status.code(), Some(0), "{}", stderr(&sizes));
    let text = stderr(&lines);
    assert!(lines.status.success() || text.contains("needs source lines"), "{text}");
}

#[test]
fn functions_inlined_in_each_other_are_limited() {
    check_read(&inlined(200));
    check_refused(&inlined(24_000), "inlined more than 256 levels deep");
}

#[test]
fn tables_that_units_share_are_limited() {
    check_read(&many_abbreviations(10, 100));
    check_refused(&many_abbreviations(1_000, 60_000), "memory than the limit");
    check_read(&many_files(10, 100));
    check_refused(&many_files(1_000, 60_000), "memory than the limit");
}

#[test]
fn lists_of_ranges_that_functions_share_are_limited() {
    check_read(&many_ranges(10, 100));
    check_refused(&many_ranges(20_000, 18_000), "memory than the limit");
}

#[test]
fn long_texts_that_functions_share_are_limited() {
    check_read(&long_names(10, 100));
    check_refused(&long_names(40_000, 900_000), "steps than the limit");
}

#[test]
fn compressed_sections_are_limited_before_they_are_unpacked() {
    let (two, len) = ([".debug_line", ".debug_str"], 40 << 20);
    check_read(&compressed(&two, 1 << 20, &vec![0; 1 << 20]));
    check_refused(&compressed(&two, len, &vec![0; len as usize]), "memory than the limit");
    check_refused(&compressed(&two[..1], 1 << 60, &[0]), "memory than the limit");
}
