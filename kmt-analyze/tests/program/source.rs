//! Source lines: of made kernels and modules of several machines, against llvm-symbolizer.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use kmt_format::kernel::{KernelSymbols, Module, Symbol, SymbolOwner};
use kmt_format::read::Trace;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::model::{BASE, Crafted, next};
use crate::page_groups::fields;
use crate::support::files::{Scratch, data, json, run, stderr, stdout};
use crate::support::model::{Event, What};

#[path = "../../../fuzz/src/images.rs"]
mod images;

/// Distance of the traced kernel from its vmlinux.
const SLIDE: u64 = 0x1_c000_0000;
/// Sections of the traced module.
const SECTIONS: [(&str, u64); 2] = [(".text", 0x7fff_c040_1000), (".init.text", 0x7fff_c080_0000)];

/// Folder of the made kernels and modules.
pub fn objects() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/objects")
}

/// A kernel or module, and its place in a trace.
pub struct Made {
    is_module: bool,
    bytes: Vec<u8>,
    /// Section, offset, functions with file and line.
    expected: Vec<(String, u64, Vec<String>)>,
}

impl Made {
    /// Reads a kernel or module, and what llvm-symbolizer says of it.
    pub fn read(name: &str) -> Self {
        let is_module = !name.starts_with("vmlinux");
        let file = if is_module { format!("{name}.ko") } else { name.to_owned() };
        let lines = fs::read_to_string(objects().join(format!("{name}.lines"))).unwrap();
        let row = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            (words.next().unwrap(), words.next().unwrap().parse().unwrap(), words.collect())
        };
        let expected = lines.lines().map(row).collect();
        Self { is_module, bytes: fs::read(objects().join(file)).unwrap(), expected }
    }

    /// A kernel or module with places in one section, and the functions there.
    pub fn of(
        is_module: bool,
        bytes: Vec<u8>,
        section: &str,
        places: impl Iterator<Item = (u64, Vec<String>)>,
    ) -> Self {
        let expected = places.map(|(offset, frames)| (section.to_owned(), offset, frames)).collect();
        Self { is_module, bytes, expected }
    }

    /// Functions with file and line of each place, the innermost first.
    pub fn frames(&self) -> impl Iterator<Item = &[String]> {
        self.expected.iter().map(|(_, _, frames)| frames.as_slice())
    }

    /// Start of a section in the trace; `None`: of a module, and not in the trace.
    fn start(&self, section: &str) -> Option<u64> {
        let elf = object::File::parse(self.bytes.as_slice()).unwrap();
        let linked = elf.section_by_name(section).unwrap().address();
        if self.is_module {
            SECTIONS.iter().find(|(name, _)| *name == section).map(|section| section.1)
        } else {
            Some(linked.wrapping_add(SLIDE))
        }
    }

    /// A trace with an allocation for each expected line, that is returned to behind the expected byte.
    pub fn trace(&self, metadata: &[(&str, &[u8])]) -> (Vec<u8>, Vec<u64>) {
        self.trace_with(metadata, &[])
    }

    /// The same with attached files.
    pub fn trace_with(&self, metadata: &[(&str, &[u8])], files: &[(&str, &str)]) -> (Vec<u8>, Vec<u64>) {
        let mut crafted = Crafted::new();
        crafted.writer.add_metadata(metadata).unwrap();
        let elf = object::File::parse(self.bytes.as_slice()).unwrap();
        let functions = elf.symbols().filter(|s| s.kind() == SymbolKind::Text && s.size() > 0);
        let mut symbols: Vec<(u64, u64, String)> = functions
            .filter_map(|symbol| {
                let section = elf.section_by_index(symbol.section_index().unwrap()).unwrap();
                let offset = symbol.address() - section.address();
                let start = self.start(section.name().unwrap())?;
                Some((start + offset, symbol.size(), symbol.name().unwrap().to_owned()))
            })
            .collect();
        symbols.sort();
        let owner = if self.is_module { SymbolOwner::Owner(0) } else { SymbolOwner::Core };
        let symbols: Vec<Symbol<'_>> = symbols
            .iter()
            .map(|(address, size, name)| Symbol {
                address: *address,
                size: *size,
                kind: b't',
                owner,
                name: name.as_bytes(),
            })
            .collect();
        let owners = if self.is_module { vec![&b"ext9"[..]] } else { Vec::new() };
        let table = KernelSymbols { symbols, owners, all_zero: false };
        crafted.writer.add_symbols(&table, &[] as &[Module]).unwrap();
        let mut sites = Vec::new();
        for (number, (section, offset, _)) in self.expected.iter().enumerate() {
            let site = self.start(section).unwrap() + offset + 1;
            let what =
                What::Alloc { kmalloc: true, site, ptr: BASE + 64 * number as u64, req: 50, alloc: 64 };
            crafted.event(&Event { time: 1_000 + number as u64, cpu: 0, pid: 7, what });
            sites.push(site);
        }
        // Frees are recorded too, so what is live is known.
        let what = What::Free { kfree: true, ptr: BASE };
        crafted.event(&Event { time: 900_000, cpu: 0, pid: 7, what });
        for (name, text) in files {
            crafted.writer.add_file(name, text.as_bytes()).unwrap();
        }
        (crafted.writer.finish().unwrap(), sites)
    }
}

/// A path as the source has it.
fn in_source(place: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in place.strip_prefix("/build/linux/").unwrap().split('/') {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

fn check(name: &str) {
    let scratch = Scratch::new();
    let made = Made::read(name);
    let (bytes, sites) = made.trace(&[]);
    let (file, lines) = (scratch.0.join("trace.kmt"), scratch.0.join("lines.kmt"));
    fs::write(&file, bytes).unwrap();
    let image = scratch.0.join(if made.is_module { "ext9.ko" } else { "vmlinux" });
    fs::write(&image, &made.bytes).unwrap();
    let (option, path) =
        if made.is_module { ("--modules", scratch.0.as_path()) } else { ("--vmlinux", image.as_path()) };
    let output = lines.to_str().unwrap();
    let made_file = run(&["symbolize", option, path.to_str().unwrap(), "-o", output], &file);
    assert!(made_file.status.success(), "{name}: {}", stderr(&made_file));
    let bytes = fs::read(&lines).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    assert!(trace.damages().is_empty());
    for (site, (section, offset, frames)) in sites.iter().zip(&made.expected) {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let found = trace.metadata().lines_at(*site);
        let found: Vec<String> =
            found.map(|row| format!("{}|{}:{}", text(&row.function), text(&row.file), row.line)).collect();
        let expected: Vec<String> = frames
            .iter()
            .map(|frame| {
                let (function, place) = frame.split_once('|').unwrap();
                let place = in_source(place);
                // Lines of such headers are functions of the file that includes them.
                let place =
                    if place.starts_with("include/trace/") { "fs/ext9/super.c:0".into() } else { place };
                format!("{function}|{place}")
            })
            .collect();
        assert_eq!(found, expected, "{name}: {section}+{offset}");
    }
    // A part of the trace keeps them.
    let part = scratch.0.join("part.kmt");
    assert!(run(&["slice", "--cpu", "0", "-o", part.to_str().unwrap()], &lines).status.success(), "{name}");
    let part = fs::read(&part).unwrap();
    let sliced = Trace::open(&part).unwrap();
    for site in &sites {
        let (kept, before) = (sliced.metadata().lines_at(*site), trace.metadata().lines_at(*site));
        assert!(kept.eq(before), "{name}: {site:#x} in a slice");
    }
    // Modules whose directories are looked for leave the lines of the file as they are.
    let installed = scratch.0.join("installed");
    fs::create_dir_all(&installed).unwrap();
    let by = ["callers", "--by", "dir,file,line,function", "--json"];
    let more = json(&[&by[..], &["--modules", installed.to_str().unwrap()]].concat(), &lines);
    assert_eq!(more["groups"], json(&by, &lines)["groups"], "{name}");
    // The same without a new file.
    let direct = json(&[&by[..], &[option, path.to_str().unwrap()]].concat(), &file);
    let stored = json(&by, &lines);
    assert_eq!(direct["groups"], stored["groups"], "{name}");
    sums(name, &made, &stored);
}

/// Allocations by source line, against the lines of llvm-symbolizer.
fn sums(name: &str, made: &Made, report: &serde_json::Value) {
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for (_, _, frames) in &made.expected {
        let shown = frames.iter().find(|f| !f.contains("include/linux/slab.h") && !f.contains("__kmalloc|"));
        let place = in_source(shown.or(frames.last()).unwrap().split_once('|').unwrap().1);
        let place = if place.starts_with("include/trace/") { "fs/ext9/super.c".to_owned() } else { place };
        let place = place.strip_suffix(":0").map_or(place.clone(), str::to_owned);
        *expected.entry(place).or_default() += 64;
    }
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for group in report["groups"].as_array().unwrap() {
        let line = group["line"].as_str().unwrap();
        assert!(line.starts_with(group["file"].as_str().unwrap()), "{group}");
        assert!(line.starts_with(group["dir"].as_str().unwrap()), "{group}");
        *found.entry(line.to_owned()).or_default() += group["bytes_alloc"].as_u64().unwrap();
    }
    assert_eq!(found, expected, "{name}");
}

#[test]
fn lines_of_kernels_and_modules_are_those_of_llvm() {
    let mut names = 0;
    for entry in fs::read_dir(objects()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(name) = name.strip_suffix(".lines") {
            check(name);
            names += 1;
        }
    }
    assert!(names >= 12, "{names}");
}

#[test]
fn directories_select_and_group() {
    let scratch = Scratch::new();
    let made = Made::read("vmlinux.x86_64");
    let file = scratch.0.join("trace.kmt");
    fs::write(&file, made.trace(&[]).0).unwrap();
    let vmlinux = objects().join("vmlinux.x86_64");
    let with =
        |args: &[&str]| json(&[args, &["--json", "--vmlinux", vmlinux.to_str().unwrap()]].concat(), &file);
    let all = with(&["summary"])["slab"]["bytes_alloc"].as_u64().unwrap();
    let mut sum = 0;
    for group in with(&["callers", "--by", "dir", "--depth", "1"])["groups"].as_array().unwrap() {
        let (dir, bytes) = (group["dir"].as_str().unwrap(), group["bytes_alloc"].as_u64().unwrap());
        let of_dir = with(&["summary", "--start-branch", dir])["slab"]["bytes_alloc"].as_u64().unwrap();
        let by_where = format!("dir={dir}");
        let of_where = with(&["summary", "--where", &by_where])["slab"]["bytes_alloc"].as_u64().unwrap();
        assert_eq!((bytes, bytes), (of_dir, of_where), "{dir}");
        sum += bytes;
    }
    assert_eq!(sum, all, "every allocation has a directory");
    let subsystems = with(&["callers", "--by", "subsystem"]);
    let subsystems =
        subsystems["groups"].as_array().unwrap().iter().map(|g| g["subsystem"].as_str().unwrap());
    let mut subsystems: Vec<&str> = subsystems.collect();
    subsystems.sort_unstable();
    assert_eq!(subsystems, ["drivers/net", "fs/ext9", "init", "mm"]);
    let account = with(&["account", "-b", "fs/"]);
    let of_fs = with(&["summary", "--where", "dir=fs"])["slab"]["bytes_alloc"].as_u64();
    let rows = account["account"]["rows"].as_array().unwrap();
    assert_eq!(Some(rows.iter().map(|row| row["total"].as_u64().unwrap()).sum()), of_fs);
    let of_file = with(&["summary", "--where", "file=super.c"])["slab"]["bytes_alloc"].as_u64();
    assert_eq!(of_file, with(&["summary", "--where", "dir=fs/ext9"])["slab"]["bytes_alloc"].as_u64());
    let not_fs = with(&["summary", "--where", "dir!=fs"])["slab"]["bytes_alloc"].as_u64().unwrap();
    assert_eq!(not_fs + of_file.unwrap(), all);
    let lines = stdout(&run(&["dump", "--where", "dir=fs", "--vmlinux", vmlinux.to_str().unwrap()], &file));
    assert_eq!(lines.lines().filter(|line| !line.starts_with('#')).count() as u64 * 64, of_file.unwrap());
}

#[test]
fn another_build_is_refused() {
    let scratch = Scratch::new();
    let made = Made::read("vmlinux.x86_64");
    let file = scratch.0.join("trace.kmt");
    let refused = |metadata: &[(&str, &[u8])], args: &[&str], parts: &[&str]| {
        fs::write(&file, made.trace(metadata).0).unwrap();
        let output = run(args, &file);
        let text = stderr(&output);
        assert!(!output.status.success() && parts.iter().all(|part| text.contains(part)), "{args:?}: {text}");
    };
    let (own, other) = (objects().join("vmlinux.x86_64"), objects().join("vmlinux.ppc32"));
    let (own, other) = (own.to_str().unwrap(), other.to_str().unwrap());
    refused(&[("build_id", b"00ff")], &["callers", "--vmlinux", own], &["has build id", "00ff"]);
    refused(&[], &["callers", "--vmlinux", other], &["other build", "functions"]);
    refused(&[], &["callers", "--by", "file"], &["--by file needs source lines", "--vmlinux"]);
    refused(&[], &["callers", "--where", "file=super.c"], &["`file=super.c` needs source lines"]);
    refused(&[], &["callers", "--vmlinux", file.to_str().unwrap()], &["not an ELF file"]);
    refused(&[], &["callers", "--vmlinux", "/nowhere"], &["/nowhere"]);
    refused(&[], &["symbolize", "-o", "-"], &["no debug information is given"]);
    refused(
        &[],
        &["callers", "--debug-dir", scratch.0.to_str().unwrap()],
        &["no debug information of the traced kernel"],
    );
}

/// Debug information where distributions install it.
#[test]
fn kernels_are_found_by_build_id_and_by_release() {
    let scratch = Scratch::new();
    let made = Made::read("vmlinux.x86_64");
    let elf = object::File::parse(made.bytes.as_slice()).unwrap();
    let id: String = elf.build_id().unwrap().unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    let file = scratch.0.join("trace.kmt");
    fs::write(&file, made.trace(&[("build_id", id.as_bytes()), ("kernel.release", b"6.1.0-9-test")]).0)
        .unwrap();
    let debug = scratch.0.join("debug");
    let places = [
        format!(".build-id/{}/{}.debug", &id[..2], &id[2..]),
        "boot/vmlinux-6.1.0-9-test".to_owned(),
        "lib/modules/6.1.0-9-test/vmlinux".to_owned(),
    ];
    for place in places {
        let place = debug.join(place);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, &made.bytes).unwrap();
        let rows = json(&["callers", "--by", "dir", "--json", "--debug-dir", debug.to_str().unwrap()], &file);
        assert_eq!(rows["groups_total"], 4, "{}", place.display());
        fs::remove_dir_all(&debug).unwrap();
    }
}

/// A folder of modules may hold anything.
#[test]
fn only_regular_files_are_read_as_modules() {
    let scratch = Scratch::new();
    let made = Made::read("x86_64");
    let file = scratch.0.join("trace.kmt");
    fs::write(&file, made.trace(&[]).0).unwrap();
    let modules = scratch.0.join("modules");
    fs::create_dir_all(&modules).unwrap();
    let module = modules.join("ext9.ko");
    let args = ["callers", "--by", "dir", "--modules", modules.to_str().unwrap()];
    mknodat(CWD, &module, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let output = run(&args, &file);
    assert!(stderr(&output).contains("ext9.ko is a FIFO, not a regular file"), "{}", stderr(&output));
    fs::remove_file(&module).unwrap();
    symlink("/dev/zero", &module).unwrap();
    let output = run(&args, &file);
    assert!(stderr(&output).contains("ext9.ko is a link that leads out of"), "{}", stderr(&output));
    fs::remove_file(&module).unwrap();
    fs::write(&module, &made.bytes).unwrap();
    assert!(run(&args, &file).status.success());
    mknodat(CWD, modules.join("modules.builtin"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let output = run(&args, &file);
    assert!(stderr(&output).contains("modules.builtin is a FIFO"), "{}", stderr(&output));
    fs::write(&file, Made::read("vmlinux.x86_64").trace(&[]).0).unwrap();
    let output = run(&["callers", "--vmlinux", "/dev/zero"], &file);
    assert!(stderr(&output).contains("neither a regular file nor a pipe"), "{}", stderr(&output));
}

/// Directories of a trace of these functions, whose names are those of functions of Linux.
fn named(functions: &[(&str, &str)], with_names: bool) -> Vec<u8> {
    let mut crafted = Crafted::new();
    let owners: [&[u8]; 2] = [b"ext4", b"of_the_board"];
    let owner = |module: &str| match module {
        "" => SymbolOwner::Core,
        module => {
            SymbolOwner::Owner(owners.iter().position(|owner| *owner == module.as_bytes()).unwrap() as u16)
        }
    };
    let symbols = functions.iter().zip(0u64..).map(|((name, module), number)| Symbol {
        address: CODE + 256 * number,
        size: 256,
        kind: b't',
        owner: owner(module),
        name: name.as_bytes(),
    });
    let symbols = symbols.collect();
    let table = KernelSymbols { symbols, owners: owners.to_vec(), all_zero: false };
    if with_names {
        crafted.writer.add_symbols(&table, &[] as &[Module]).unwrap();
    }
    for number in 0..functions.len() as u64 {
        let site = CODE + 256 * number + 9;
        let what = What::Alloc { kmalloc: true, site, ptr: BASE + 64 * number, req: 50, alloc: 64 };
        crafted.event(&Event { time: 1_000 + number, cpu: 0, pid: 7, what });
    }
    crafted.writer.finish().unwrap()
}

/// Where the functions of such a trace are.
const CODE: u64 = 0xc010_0000;

/// Directories without debug information: by functions' names, and by the places of modules.
#[test]
fn directories_are_inferred_from_names() {
    let scratch = Scratch::new();
    let file = scratch.0.join("trace.kmt");
    let functions = [
        ("ext4_alloc_inode", ""),
        ("__x64_sys_openat", ""),
        ("qq_of_no_kernel", ""),
        ("qq_of_no_kernel", "ext4"),
        ("qq_of_no_kernel", "of_the_board"),
        ("of_the_board_core_probe", ""),
    ];
    fs::write(&file, named(&functions, true)).unwrap();
    let dirs = |args: &[&str]| -> BTreeMap<String, u64> {
        let rows = json(&[&["callers", "--by", "dir", "--json"], args].concat(), &file);
        let rows = rows["groups"].as_array().unwrap().clone();
        rows.iter()
            .map(|row| {
                (row["dir"].as_str().unwrap_or("?").to_owned(), row["bytes_alloc"].as_u64().unwrap() / 64)
            })
            .collect()
    };
    let expect = |pairs: &[(&str, u64)]| {
        pairs.iter().map(|(dir, n)| ((*dir).to_owned(), *n)).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(dirs(&[]), expect(&[("~fs/ext4", 2), ("~fs", 1), ("?", 3)]));
    assert_eq!(dirs(&["--where", "dir=fs"]), expect(&[("~fs/ext4", 2), ("~fs", 1)]));
    assert_eq!(dirs(&["--depth", "1"]), expect(&[("~fs", 3), ("?", 3)]));
    let screen = stdout(&run(&["callers", "--by", "dir"], &file));
    assert!(screen.contains("~: inferred from names of functions"), "{screen}");

    // Only kmalloc was recorded of these.
    assert!(json(&["findings", "--json"], &file)["parts"].is_null());
    let installed = scratch.0.join("lib");
    let board = installed.join("kernel/drivers/board");
    fs::create_dir_all(&board).unwrap();
    fs::write(board.join("of-the-board.ko.xz"), b"packed").unwrap();
    fs::write(installed.join("modules.builtin"), "kernel/drivers/soc/of_the_board_core.ko\n").unwrap();
    let with_modules = dirs(&["--modules", installed.to_str().unwrap()]);
    let expected = [("~fs/ext4", 2), ("~fs", 1), ("drivers/board", 1), ("~drivers/soc", 1), ("?", 1)];
    assert_eq!(with_modules, expect(&expected));

    let ring = stdout(&run(&["chart", "ring", "-o", "-"], &file));
    assert!(ring.contains("Directories of 192 B are inferred from names of functions."), "{ring}");
    assert!(ring.contains("data-path=\"fs/ext4\""), "{ring}");
}

/// The first screen has the parts that hold most.
#[test]
fn the_first_screen_has_parts_of_the_kernel() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let findings = json(&["findings", "--json"], &file);
    let groups = json(&["callers", "--by", "subsystem", "--sort", "live", "--json"], &file);
    let live: Vec<(&str, u64)> = groups["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| (group["subsystem"].as_str().unwrap_or("?"), group["bytes_live"].as_u64().unwrap()))
        .collect();
    let parts = &findings["parts"];
    let largest = parts["largest"].as_array().unwrap();
    let largest: Vec<(&str, u64)> = largest
        .iter()
        .map(|part| (part["subsystem"].as_str().unwrap(), part["bytes"].as_u64().unwrap()))
        .collect();
    let named: Vec<(&str, u64)> = live.iter().copied().filter(|(name, _)| *name != "?").take(3).collect();
    assert_eq!(largest, named);
    assert_eq!(parts["bytes_total"].as_u64(), Some(live.iter().map(|(_, bytes)| bytes).sum()));
    assert_eq!(
        parts["bytes_unknown"].as_u64(),
        live.iter().find(|(name, _)| *name == "?").map(|(_, bytes)| *bytes)
    );
}

/// Names from a System.map, where the recording has none.
#[test]
fn a_system_map_names_functions() {
    let scratch = Scratch::new();
    let (file, map) = (scratch.0.join("trace.kmt"), scratch.0.join("System.map"));
    fs::write(&file, named(&[("", ""), ("", "")], false)).unwrap();
    let args = ["callers", "--json", "--system-map", map.to_str().unwrap()];
    let lines = |at: u64| {
        format!(
            "{:08x} T _stext\n{at:08x} t ext4_alloc_inode\n{:08x} T vfs_open\n{:08x} T _etext\n",
            at - 16,
            at + 256,
            at + 512
        )
    };
    fs::write(&map, lines(CODE)).unwrap();
    let rows = json(&args, &file);
    let names: Vec<&str> =
        rows["callers"].as_array().unwrap().iter().map(|row| row["symbol"].as_str().unwrap()).collect();
    assert_eq!(names, ["ext4_alloc_inode+0x9/0x100", "vfs_open+0x9/0x100"]);
    let named = scratch.0.join("named.kmt");
    let output = named.to_str().unwrap();
    let made = run(&["symbolize", "--system-map", map.to_str().unwrap(), "-o", output], &file);
    assert!(made.status.success(), "{}", stderr(&made));
    assert_eq!(json(&["callers", "--json"], &named)["callers"], rows["callers"]);
    assert!(run(&["verify"], &named).status.success());
    // The same kernel, loaded elsewhere.
    fs::write(&map, lines(CODE + (1 << 24))).unwrap();
    let refused = run(&args, &file);
    let text = stderr(&refused);
    assert!(
        !refused.status.success() && text.contains("0 are in this kernel") && text.contains("KASLR"),
        "{text}"
    );
    // A part of it, without the symbols that bound the code.
    fs::write(&map, lines(CODE).lines().filter(|line| !line.contains("text")).collect::<Vec<_>>().join("\n"))
        .unwrap();
    let rows = json(&args, &file);
    let found: Vec<&str> =
        rows["callers"].as_array().unwrap().iter().filter_map(|row| row["symbol"].as_str()).collect();
    assert!(
        found.iter().zip(["ext4_alloc_inode+0x9", "vfs_open+0x9"]).all(|(a, b)| a.starts_with(b)),
        "{found:?}"
    );
    fs::write(&map, "00000000 A nothing\n").unwrap();
    assert!(stderr(&run(&args, &file)).contains("no addresses of functions"));
    // One with names keeps them.
    let kept = run(&args, &named);
    assert!(kept.status.success() && stderr(&kept).contains("is not used"), "{}", stderr(&kept));
}

/// Exports for other viewers have lines, and inlined functions where the viewer shows them.
#[test]
fn profiles_have_source_lines() {
    let scratch = Scratch::new();
    let made = Made::read("vmlinux.x86_64");
    let file = scratch.0.join("trace.kmt");
    fs::write(&file, made.trace(&[]).0).unwrap();
    let vmlinux = objects().join("vmlinux.x86_64");
    let export = |format: &str| {
        run(&["export", format, "-o", "-", "--vmlinux", vmlinux.to_str().unwrap()], &file).stdout
    };
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(export("pprof").as_slice()).read_to_end(&mut plain).unwrap();
    let message = fields(&plain);
    let texts: Vec<&[u8]> = message.iter().filter(|(field, _)| *field == 6).map(|(_, text)| *text).collect();
    let locations = message.iter().filter(|(field, _)| *field == 4);
    let lines: usize =
        locations.map(|(_, location)| fields(location).iter().filter(|(field, _)| *field == 4).count()).sum();
    let expected = made.expected.iter().map(|(_, _, frames)| frames.len());
    assert_eq!(lines, expected.sum::<usize>());
    let dhat: serde_json::Value = serde_json::from_slice(&export("dhat")).unwrap();
    for file in ["fs/ext9/super.c", "drivers/net/veth.c", "init/main.c"] {
        assert!(texts.contains(&file.as_bytes()), "{file}");
        let is_of_it = |name: &serde_json::Value| name.as_str().unwrap().contains(&format!("({file}:"));
        assert!(dhat["ftbl"].as_array().unwrap().iter().any(is_of_it), "{file}");
    }
}

/// Rules of the user on functions that allocate for others.
#[test]
fn wrappers_are_a_file() {
    let scratch = Scratch::new();
    let made = Made::read("vmlinux.x86_64");
    let (file, rules) = (scratch.0.join("trace.kmt"), scratch.0.join("rules"));
    fs::write(&file, made.trace(&[]).0).unwrap();
    fs::write(&rules, "# all but one\nfill_super\nread_group\ninclude/linux/slab.h\n").unwrap();
    let vmlinux = objects().join("vmlinux.x86_64");
    let args = ["callers", "--by", "function", "--json", "--vmlinux", vmlinux.to_str().unwrap()];
    let names = |report: serde_json::Value| -> Vec<String> {
        report["groups"]
            .as_array()
            .unwrap()
            .iter()
            .map(|g| g["function"].as_str().unwrap().to_owned())
            .collect()
    };
    let (with, without) = (
        names(json(&[&args[..], &["--wrappers", rules.to_str().unwrap()]].concat(), &file)),
        names(json(&args, &file)),
    );
    assert!(without.iter().any(|name| name == "read_group"), "{without:?}");
    assert!(
        !with.iter().any(|name| name == "read_group") && with.iter().any(|name| name == "fill_super"),
        "{with:?}"
    );
}

/// Debug information with wrong bytes: an answer or an error, and no panic. KMT_SOURCE_RUNS changes the number of runs.
#[test]
fn damaged_debug_information_ends_no_program() {
    let runs: u64 = std::env::var("KMT_SOURCE_RUNS").map_or(12, |runs| runs.parse().unwrap());
    for entry in fs::read_dir(objects()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "lines") || path.is_dir() {
            continue;
        }
        let whole = fs::read(&path).unwrap();
        images::run(&whole);
        for run_number in 0..runs {
            let mut seed = run_number ^ (whole.len() as u64) << 32;
            let mut bytes = whole.clone();
            for _ in 0..=next(&mut seed) % 8 {
                let at = next(&mut seed) as usize % bytes.len();
                // Numbers near their limits are worse than others.
                bytes[at] = [0, 0xff, 0x7f, 0x80, next(&mut seed) as u8][next(&mut seed) as usize % 5];
            }
            if run_number % 16 == 0 {
                bytes.truncate(next(&mut seed) as usize % bytes.len());
            }
            images::run(&bytes);
        }
    }
}
