//! Source lines of a real kernel and its modules, against llvm-symbolizer and GNU addr2line: `.ci/source` runs it.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use kmt_format::read::Trace;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use serde_json::Value;

use crate::source::Made;
use crate::support::files::{Scratch, run, stderr};

/// Places that are compared, of each file.
const PLACES: usize = 2_000;

/// Places in functions of `section`, spread over all of them: offsets in the section.
fn places(bytes: &[u8], section: &str) -> Vec<u64> {
    let elf = object::File::parse(bytes).unwrap();
    let section = elf.section_by_name(section).unwrap();
    let is_in = |s: &object::Symbol<'_, '_>| s.section_index() == Some(section.index());
    let functions = elf.symbols().filter(|s| s.kind() == SymbolKind::Text && s.size() > 1).filter(is_in);
    let mut functions: Vec<(u64, u64)> =
        functions.map(|s| (s.address() - section.address(), s.size())).collect();
    functions.sort_unstable();
    functions.dedup();
    let step = |number: usize| number * functions.len() / PLACES;
    let mut places: Vec<u64> = (0..PLACES)
        .map(|number| (functions[step(number)], number as u64 * 7_919))
        .map(|((offset, size), random)| offset + random % (size - 1))
        .collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// What a program prints for lines on its standard input.
fn answers(command: &mut Command, lines: &[String]) -> String {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, text) = (child.stdin.take().unwrap(), lines.join("\n") + "\n");
    let writer = thread::spawn(move || input.write_all(text.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// Functions with file and line at places of a kernel's section, the innermost first.
fn of_llvm(vmlinux: &Path, start: u64, places: &[u64]) -> Vec<Vec<String>> {
    let asked: Vec<String> = places.iter().map(|place| format!("{:#x}", start + place)).collect();
    let mut command = Command::new("llvm-symbolizer");
    let text = answers(command.args(["--output-style=JSON", "-i", "-e"]).arg(vmlinux), &asked);
    let found: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let frame = |frame: &Value| {
        format!(
            "{}|{}:{}",
            frame["FunctionName"].as_str().unwrap(),
            frame["FileName"].as_str().unwrap(),
            frame["Line"]
        )
    };
    let frames = |found: &Value| {
        let found = found.get(0).unwrap_or(found);
        found["Symbol"].as_array().unwrap().iter().map(frame).collect()
    };
    found.iter().map(frames).collect()
}

/// The same of a module, which llvm-symbolizer cannot place.
fn of_gnu(module: &Path, places: &[u64]) -> Vec<Vec<String>> {
    let asked: Vec<String> = places.iter().map(|place| format!("{place:#x}")).collect();
    let mut command = Command::new("addr2line");
    let text = answers(command.args(["-a", "-f", "-i", "-j", ".text", "-e"]).arg(module), &asked);
    let mut found: Vec<Vec<String>> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            found.push(Vec::new());
            continue;
        }
        let place = lines.next().unwrap().split(" (").next().unwrap();
        found.last_mut().unwrap().push(format!("{line}|{place}"));
    }
    found
}

/// Path without `.` and `..`, and without the folders of the build.
fn in_source(place: &str, roots: &[String]) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in place.split('/') {
        match part {
            ".." if parts.last().is_some_and(|last| !last.is_empty()) => drop(parts.pop()),
            "." | ".." => {}
            _ => parts.push(part),
        }
    }
    let path = parts.join("/");
    roots.iter().find_map(|root| path.strip_prefix(root.as_str())).unwrap_or(&path).to_owned()
}

/// A name without what the compiler appends to clones of a function.
fn without_suffix(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// True if the source file of a frame has a function of its name.
fn has_function(roots: &[String], (function, place): &(String, String)) -> bool {
    let file = place.rsplit_once(':').unwrap().0;
    let text = roots.iter().find_map(|root| fs::read_to_string(Path::new(root).join(file)).ok());
    text.is_some_and(|text| {
        text.contains(&format!(" {function}(")) || text.contains(&format!("*{function}("))
    })
}

#[derive(Debug, Default)]
struct Compared {
    equal: usize,
    /// Code without debug information, to both.
    unknown: usize,
    /// But for `.isra.0` and the like.
    but_for_suffix: usize,
    /// Another name of the same address.
    alias: usize,
    /// Functions that a header of tracepoints makes: kmt names the file that includes it.
    of_macros: usize,
    /// Outlined parts of functions of headers: GNU addr2line has the line of the header, and the file of the unit. The
    /// header of the source has the function.
    of_unit: usize,
    different: Vec<String>,
}

impl Compared {
    fn add(&mut self, found: &[String], expected: &[String], roots: &[String]) {
        let split = |frame: &String| {
            let (function, place) = frame.split_once('|').unwrap();
            (function.to_owned(), place.to_owned())
        };
        let (ours, theirs): (Vec<_>, Vec<_>) =
            (found.iter().map(split).collect(), expected.iter().map(split).collect());
        let same_places = ours.len() == theirs.len() && ours.iter().zip(&theirs).all(|(a, b)| a.1 == b.1);
        let differing = ours.iter().zip(&theirs).filter(|(a, b)| a.0 != b.0);
        let is_clone = differing.clone().all(|(a, b)| without_suffix(&a.0) == without_suffix(&b.0));
        let line = |place: &str| place.rsplit(':').next().map(str::to_owned);
        let is_of_unit = |(a, b): (&(String, String), &(String, String))| {
            let is_same = a == b || a.1.contains(".h:") && b.1.contains(".c:") && has_function(roots, a);
            is_same && a.0 == b.0 && line(&a.1) == line(&b.1)
        };
        if found == expected {
            self.equal += 1;
        } else if ours.is_empty()
            && theirs.iter().all(|(_, place)| matches!(place.as_str(), ":0" | "??:0" | "??:?"))
        {
            self.unknown += 1;
        } else if same_places && is_clone {
            self.but_for_suffix += 1;
        } else if same_places && differing.count() == 1 {
            self.alias += 1;
        } else if ours.iter().any(|(_, place)| place.ends_with(":0"))
            && theirs.iter().any(|(_, place)| place.contains("trace"))
        {
            self.of_macros += 1;
        } else if ours.len() == theirs.len() && ours.iter().zip(&theirs).all(is_of_unit) {
            self.of_unit += 1;
        } else {
            self.different.push(format!("{found:?}, not {expected:?}"));
        }
    }
}

/// Compares places of a section of a kernel or module.
fn compare(image: &Path, is_module: bool, roots: &[String]) -> Compared {
    let scratch = Scratch::new();
    let bytes = fs::read(image).unwrap();
    let places = places(&bytes, ".text");
    let start = object::File::parse(bytes.as_slice()).unwrap().section_by_name(".text").unwrap().address();
    let expected = if is_module { of_gnu(image, &places) } else { of_llvm(image, start, &places) };
    assert_eq!(expected.len(), places.len());
    let made = Made::of(is_module, bytes, ".text", places.into_iter().zip(expected));
    let (trace, sites) = made.trace(&[]);
    let (file, lines) = (scratch.0.join("trace.kmt"), scratch.0.join("lines.kmt"));
    fs::write(&file, trace).unwrap();
    let (option, path) = if is_module {
        fs::copy(image, scratch.0.join("ext9.ko")).unwrap();
        ("--modules", scratch.0.as_path())
    } else {
        ("--vmlinux", image)
    };
    let began = Instant::now();
    let output = run(&["symbolize", option, path.to_str().unwrap(), "-o", lines.to_str().unwrap()], &file);
    assert!(output.status.success(), "{}", stderr(&output));
    println!("{}: {} addresses in {:.2} s", image.display(), sites.len(), began.elapsed().as_secs_f64());
    let bytes = fs::read(&lines).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    let mut compared = Compared::default();
    for (site, frames) in sites.iter().zip(made.frames()) {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let found: Vec<String> = trace
            .metadata()
            .lines_at(*site)
            .map(|row| format!("{}|{}:{}", text(&row.function), text(&row.file), row.line))
            .collect();
        let expected: Vec<String> = frames
            .iter()
            .map(|frame| {
                let (function, place) = frame.split_once('|').unwrap();
                format!("{function}|{}", in_source(place, roots))
            })
            .collect();
        compared.add(&found, &expected, roots);
    }
    compared
}

/// The kernel is $KMT_VMLINUX, its modules are in $KMT_MODULES; $KMT_SOURCE_ROOTS has the folders of the build, with `:`
/// between them.
#[test]
#[ignore = "needs a kernel with debug information: .ci/source"]
fn lines_are_those_of_llvm_and_gnu() {
    let roots = env::var("KMT_SOURCE_ROOTS").unwrap_or_default();
    let roots: Vec<String> = roots.split(':').filter(|root| !root.is_empty()).map(str::to_owned).collect();
    let mut images: BTreeMap<PathBuf, bool> = BTreeMap::new();
    images.insert(env::var_os("KMT_VMLINUX").unwrap().into(), false);
    if let Some(folder) = env::var_os("KMT_MODULES").filter(|folder| !folder.is_empty()) {
        let modules = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        images.extend(
            modules.filter(|path| path.extension().is_some_and(|e| e == "ko")).map(|path| (path, true)),
        );
        assert!(images.len() > 1);
    }
    for (image, is_module) in images {
        let Compared { equal, unknown, but_for_suffix, alias, of_macros, of_unit, different } =
            compare(&image, is_module, &roots);
        println!(
            "{equal} equal, {but_for_suffix} but for a suffix, {alias} another name, {of_macros} of macros, {of_unit} in the header where GNU has the unit, {unknown} without debug information, {} different",
            different.len()
        );
        different.iter().take(20).for_each(|difference| println!("{difference}"));
        let all = equal + but_for_suffix + alias + of_macros + of_unit;
        assert!(different.len() * 500 <= all, "more than 0.2 % differ");
        assert!((alias + of_macros + of_unit) * 10 <= all, "more than 10 % are names, macros and units");
    }
}
