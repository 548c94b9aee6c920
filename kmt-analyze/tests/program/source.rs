//! Source lines: of made kernels and modules of several machines, against llvm-symbolizer.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kmt_format::kernel::{KernelSymbols, Module, Symbol, SymbolOwner};
use kmt_format::read::Trace;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use crate::model::{BASE, Crafted, next};
use crate::support::files::{Scratch, json, run, stderr, stdout};
use crate::support::model::{Event, What};

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

    /// Start of a section in the trace.
    fn start(&self, section: &str) -> u64 {
        let elf = object::File::parse(self.bytes.as_slice()).unwrap();
        let linked = elf.section_by_name(section).unwrap().address();
        if self.is_module {
            SECTIONS.iter().find(|(name, _)| *name == section).unwrap().1
        } else {
            linked.wrapping_add(SLIDE)
        }
    }

    /// A trace with an allocation for each expected line, that is returned to behind the expected byte.
    pub fn trace(&self, metadata: &[(&str, &[u8])]) -> (Vec<u8>, Vec<u64>) {
        let mut crafted = Crafted::new();
        crafted.writer.add_metadata(metadata).unwrap();
        let elf = object::File::parse(self.bytes.as_slice()).unwrap();
        let functions = elf.symbols().filter(|s| s.kind() == SymbolKind::Text && s.size() > 0);
        let mut symbols: Vec<(u64, u64, String)> = functions
            .map(|symbol| {
                let section = elf.section_by_index(symbol.section_index().unwrap()).unwrap();
                let offset = symbol.address() - section.address();
                (
                    self.start(section.name().unwrap()) + offset,
                    symbol.size(),
                    symbol.name().unwrap().to_owned(),
                )
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
            let site = self.start(section) + offset + 1;
            let what =
                What::Alloc { kmalloc: true, site, ptr: BASE + 64 * number as u64, req: 50, alloc: 64 };
            crafted.event(&Event { time: 1_000 + number as u64, cpu: 0, pid: 7, what });
            sites.push(site);
        }
        // Frees are recorded too, so what is live is known.
        let what = What::Free { kfree: true, ptr: BASE };
        crafted.event(&Event { time: 900_000, cpu: 0, pid: 7, what });
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
    // The same without a new file.
    let by = ["callers", "--by", "dir,file,line,function", "--json"];
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
    refused(&[], &["callers", "--by", "dir"], &["--by dir needs source lines", "--vmlinux"]);
    refused(&[], &["account", "-b", "fs"], &["--start-branch fs needs source lines"]);
    refused(&[], &["callers", "--where", "dir=fs"], &["`dir=fs` needs source lines"]);
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
    let scratch = Scratch::new();
    let mut answers = [0; 2];
    for entry in fs::read_dir(objects()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".lines") else { continue };
        let made = Made::read(name);
        let (file, output) = (scratch.0.join("trace.kmt"), scratch.0.join("out.kmt"));
        fs::write(&file, made.trace(&[]).0).unwrap();
        let image = scratch.0.join(if made.is_module { "ext9.ko" } else { "vmlinux" });
        for run_number in 0..runs {
            let mut seed = run_number ^ (name.len() as u64) << 32;
            let mut bytes = made.bytes.clone();
            for _ in 0..=next(&mut seed) % 8 {
                let at = next(&mut seed) as usize % bytes.len();
                // Numbers near their limits are worse than others.
                bytes[at] = [0, 0xff, 0x7f, 0x80, next(&mut seed) as u8][next(&mut seed) as usize % 5];
            }
            if run_number % 16 == 0 {
                bytes.truncate(next(&mut seed) as usize % bytes.len());
            }
            fs::write(&image, &bytes).unwrap();
            let path = if made.is_module { scratch.0.as_path() } else { image.as_path() };
            let option = if made.is_module { "--modules" } else { "--vmlinux" };
            let args =
                ["symbolize", "--force", option, path.to_str().unwrap(), "-o", output.to_str().unwrap()];
            let found = run(&args, &file);
            let code = found.status.code();
            assert!(matches!(code, Some(0 | 1)), "{name}, run {run_number}: {code:?} {}", stderr(&found));
            answers[usize::from(code == Some(0))] += 1;
        }
        fs::remove_file(&image).unwrap();
    }
    assert!(answers.iter().all(|count| *count > 0), "refused and answered: {answers:?}");
}

/// 2,000 places of a real kernel against llvm-symbolizer; names may differ by what compilers add, such as `.isra.0`.
#[test]
#[ignore = "KMT_VMLINUX names a kernel with debug information"]
fn lines_of_a_real_kernel_are_those_of_llvm() {
    let vmlinux = PathBuf::from(std::env::var_os("KMT_VMLINUX").expect("KMT_VMLINUX"));
    let root = std::env::var("KMT_SOURCE_ROOTS").unwrap_or_default();
    let bytes = fs::read(&vmlinux).unwrap();
    let elf = object::File::parse(bytes.as_slice()).unwrap();
    let is_text = |symbol: &object::Symbol<'_, '_>| {
        let section = symbol.section_index().and_then(|index| elf.section_by_index(index).ok());
        symbol.kind() == SymbolKind::Text
            && symbol.size() > 8
            && section.is_some_and(|section| section.name() == Ok(".text"))
    };
    let functions: Vec<_> = elf.symbols().filter(is_text).collect();
    let mut seed = 26;
    let mut expected = Vec::new();
    for _ in 0..2_000 {
        let function = &functions[next(&mut seed) as usize % functions.len()];
        let offset = next(&mut seed) % (function.size() - 1);
        expected.push((".text".to_owned(), function.address() + offset, Vec::new()));
    }
    let start = elf.section_by_name(".text").unwrap().address();
    let addresses: String = expected.iter().map(|(_, address, _)| format!("{address:#x}\n")).collect();
    expected.iter_mut().for_each(|(_, address, _)| *address -= start);
    let made = Made { is_module: false, bytes: bytes.clone(), expected };
    let scratch = Scratch::new();
    let (file, lines) = (scratch.0.join("trace.kmt"), scratch.0.join("lines.kmt"));
    let (trace, sites) = made.trace(&[]);
    fs::write(&file, trace).unwrap();
    let args = ["symbolize", "--vmlinux", vmlinux.to_str().unwrap(), "-o", lines.to_str().unwrap()];
    let started = std::time::Instant::now();
    let output = run(&args, &file);
    println!("symbolize: {:.2} s, {}", started.elapsed().as_secs_f64(), stderr(&output).trim());
    let mut llvm = std::process::Command::new("llvm-symbolizer")
        .args(["--output-style=JSON", "-i", "-e", vmlinux.to_str().unwrap()])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = llvm.stdin.take().unwrap();
    let writer =
        std::thread::spawn(move || std::io::Write::write_all(&mut input, addresses.as_bytes()).unwrap());
    let theirs = llvm.wait_with_output().unwrap();
    writer.join().unwrap();
    let bytes = fs::read(&lines).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    let (mut equal, mut suffixes, mut differing) = (0, 0, Vec::new());
    for (site, line) in sites.iter().zip(String::from_utf8(theirs.stdout).unwrap().lines()) {
        let found: serde_json::Value = serde_json::from_str(line).unwrap();
        let found = found.get(0).unwrap_or(&found)["Symbol"].as_array().cloned().unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let rows = trace.metadata().lines_at(*site);
        let ours: Vec<(String, String)> =
            rows.map(|row| (text(&row.function), format!("{}:{}", text(&row.file), row.line))).collect();
        let theirs: Vec<(String, String)> = found
            .iter()
            .map(|f| {
                let file = below(f["FileName"].as_str().unwrap(), &root);
                (f["FunctionName"].as_str().unwrap().to_owned(), format!("{file}:{}", f["Line"]))
            })
            .collect();
        let is_same_but_for_suffixes = ours.len() == theirs.len()
            && ours.iter().zip(&theirs).all(|(a, b)| {
                let is_made =
                    b.1.starts_with("include/trace/") || b.1.starts_with("include/linux/syscalls.h");
                (a.1 == b.1 || is_made)
                    && (a.0 == b.0 || a.0.is_empty() || b.0.starts_with(&format!("{}.", a.0)))
            });
        match ours == theirs {
            true => equal += 1,
            false if is_same_but_for_suffixes => suffixes += 1,
            false => differing.push((ours, theirs)),
        }
    }
    println!(
        "{equal} equal, {suffixes} but for suffixes of compilers and files of macros, {} differ",
        differing.len()
    );
    differing.iter().take(10).for_each(|(ours, theirs)| println!("ours   {ours:?}\ntheirs {theirs:?}"));
    assert!(differing.len() * 200 <= sites.len(), "at most one of 200 differs");
}

/// A path below one of the roots, which are separated by colons.
fn below(path: &str, roots: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    roots.split(':').find_map(|root| path.strip_prefix(root)).unwrap_or(&path).to_owned()
}
