//! Code and data by directory: of a linked kernel, of a build folder, and between two builds.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;

use crate::source::{Made, objects};
use crate::support::files::{Scratch, json, run, stderr};

/// Runs a command without a file of a trace.
fn footprint(args: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_kmt-analyze"))
        .args(["footprint", "--json"])
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Bytes of the loaded sections of a file.
fn loaded(path: &Path) -> u64 {
    let bytes = fs::read(path).unwrap();
    let elf = object::File::parse(bytes.as_slice()).unwrap();
    let is_loaded = |section: &object::Section<'_, '_>| {
        let SectionFlags::Elf { sh_flags } = section.flags() else { return false };
        sh_flags & u64::from(object::elf::SHF_ALLOC) != 0
    };
    elf.sections().filter(is_loaded).map(|section| section.size()).sum()
}

fn number(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_else(|| panic!("{key} of {row}"))
}

fn check_sums(document: &Value) {
    let rows = document["rows"].as_array().unwrap();
    if document["has_trace"] == false {
        assert!(rows.iter().all(|row| row["current"].is_null() && row["waste"].is_null()));
    }
    let dynamic = ["current", "current_dynamic", "total_dynamic", "waste"];
    let kinds = ["text", "data", "rodata", "bss", "percpu", "init", "static"];
    for key in kinds.iter().chain(dynamic.iter().filter(|_| document["has_trace"] == true)) {
        let sum: u64 = rows.iter().map(|row| number(row, key)).sum();
        assert_eq!(sum, number(&document["total"], key), "{key}");
    }
    for row in rows {
        let kinds = ["text", "data", "rodata", "bss", "percpu", "init"];
        assert_eq!(kinds.iter().map(|kind| number(row, kind)).sum::<u64>(), number(row, "static"), "{row}");
        if let Some(live) = row["current_dynamic"].as_u64() {
            assert_eq!(number(row, "static") + live, number(row, "current"), "{row}");
        }
    }
}

#[test]
fn a_kernel_is_explained_to_the_byte() {
    for name in ["vmlinux.x86_64", "vmlinux.ppc32", "vmlinux.mips64"] {
        let path = objects().join(name);
        let all = footprint(&["--vmlinux", path.to_str().unwrap()]);
        check_sums(&all);
        assert_eq!(number(&all["total"], "static"), loaded(&path), "{name}");
        let names: Vec<&str> =
            all["rows"].as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap()).collect();
        for directory in ["init", "mm", "fs", "drivers"] {
            assert!(names.contains(&directory), "{name}: {names:?}");
        }
        let row = |path: &str| {
            all["rows"].as_array().unwrap().iter().find(|row| row["path"] == path).unwrap().clone()
        };
        // counters[100] and used, memory[4096].
        assert_eq!(number(&row("init"), "bss"), 400, "{name}");
        assert!(number(&row("mm"), "bss") >= 4_096, "{name}");
        assert_eq!(number(&row("init"), "rodata"), 256, "{name}");
        assert!(number(&row("fs"), "init") > 0, "{name}");
        let fs = footprint(&["--vmlinux", path.to_str().unwrap(), "--start-branch", "fs", "--depth", "2"]);
        check_sums(&fs);
        assert_eq!(fs["rows"][0]["path"], "fs/ext9/super", "{name}");
        assert_eq!(number(&fs["total"], "static"), number(&row("fs"), "static"), "{name}");
    }
}

/// A thin archive: headers of files elsewhere. Format: binutils, bfd/archive.c.
pub fn thin_archive(members: &[&str]) -> Vec<u8> {
    let header =
        |name: &str, size: usize| format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644);
    let mut names: String = members.iter().map(|member| format!("{member}/\n")).collect();
    names.push_str(if names.len() % 2 == 1 { "\n" } else { "" });
    let mut text = format!("!<thin>\n{}{names}", header("//", names.len()));
    let mut at = 0;
    for member in members {
        text.push_str(&header(&format!("/{at}"), 0));
        at += member.len() + 2;
    }
    text.into_bytes()
}

fn build(scratch: &Scratch) -> PathBuf {
    let build = scratch.0.join("build");
    for (place, name) in
        [("fs/ext9/super.o", "x86_64.ko"), ("drivers/net/veth.o", "arm64.ko"), ("tools/x.o", "armv7.ko")]
    {
        let place = build.join(place);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(objects().join(name), place).unwrap();
    }
    build
}

#[test]
fn a_build_is_the_sum_of_what_is_linked() {
    let scratch = Scratch::new();
    let build = build(&scratch);
    let expected = ["fs/ext9/super.o", "drivers/net/veth.o"].map(|path| loaded(&build.join(path)));
    // Names from the archive's folder, from the build folder, and archives within archives: each object counts once.
    fs::write(build.join("fs/ext9/built-in.a"), thin_archive(&["super.o"])).unwrap();
    fs::write(build.join("fs/built-in.a"), thin_archive(&["fs/ext9/built-in.a"])).unwrap();
    fs::write(build.join("drivers/built-in.a"), thin_archive(&["net/veth.o"])).unwrap();
    fs::write(build.join("tools/built-in.a"), b"!<arch>\n").unwrap();
    let check = || {
        let all = footprint(&["--build", build.to_str().unwrap()]);
        check_sums(&all);
        assert_eq!(number(&all["total"], "static"), expected.iter().sum::<u64>());
        assert_eq!(all["rows"].as_array().unwrap().len(), 2, "{all}");
    };
    check();
    fs::write(build.join("vmlinux.a"), thin_archive(&["fs/ext9/super.o", "./drivers/net/veth.o"])).unwrap();
    check();
    let with_modules =
        footprint(&["--build", build.to_str().unwrap(), "--modules", objects().to_str().unwrap()]);
    assert!(number(&with_modules["total"], "static") > expected.iter().sum::<u64>());
    // Installed modules, with the folder `kernel` above their directories.
    let installed = scratch.0.join("lib/kernel/drivers/net");
    fs::create_dir_all(&installed).unwrap();
    fs::copy(objects().join("x86_64.ko"), installed.join("card.ko")).unwrap();
    let lib = scratch.0.join("lib");
    let with_installed = footprint(&["--build", build.to_str().unwrap(), "--modules", lib.to_str().unwrap()]);
    let paths: Vec<&str> =
        with_installed["rows"].as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap()).collect();
    assert!(paths.len() == 2 && !paths.contains(&"kernel"), "{paths:?}");
    fs::write(build.join("vmlinux.a"), thin_archive(&["fs/gone.o"])).unwrap();
    let lacks = Command::new(env!("CARGO_BIN_EXE_kmt-analyze"))
        .args(["footprint", "--build", build.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(
        !lacks.status.success() && stderr(&lacks).contains("fs/gone.o is not there"),
        "{}",
        stderr(&lacks)
    );
}

/// Runs a command of at most ten seconds, with little memory.
fn limited(args: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_kmt-analyze");
    let shell = "ulimit -v 1000000; exec timeout 10 \"$0\" footprint --json \"$@\"";
    Command::new("sh").args(["-c", shell, program]).args(args).stdin(Stdio::null()).output().unwrap()
}

/// Checks that one file is refused, that the message has `why`, and that all else is counted.
fn check_refused(args: &[&str], why: &str, expected: u64) {
    let output = limited(args);
    assert_eq!(output.status.code(), Some(3), "{args:?}: {}", stderr(&output));
    assert!(stderr(&output).contains(why), "{args:?}: {}", stderr(&output));
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((number(&rows, "files_refused"), number(&rows["total"], "static")), (1, expected), "{rows}");
}

#[test]
fn only_regular_files_below_the_build_are_read() {
    let scratch = Scratch::new();
    let build = build(&scratch);
    let expected = loaded(&build.join("fs/ext9/super.o"));
    fs::write(build.join("fs/ext9/built-in.a"), thin_archive(&["super.o"])).unwrap();
    let secret = scratch.0.join("secret.o");
    fs::copy(objects().join("x86_64.ko"), &secret).unwrap();
    let (bad, build) = (build.join("tools/built-in.a"), build.to_str().unwrap());
    let fifo = |path: &Path| mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    fifo(&bad);
    check_refused(&["--build", build], "is a FIFO", expected);
    for target in ["/dev/zero", "../../secret.o", secret.to_str().unwrap()] {
        fs::remove_file(&bad).unwrap();
        symlink(target, &bad).unwrap();
        check_refused(&["--build", build], "leads out of", expected);
    }
    // The kernel itself, for the lines of a trace.
    let (made, file) = (Made::read("vmlinux.x86_64"), scratch.0.join("trace.kmt"));
    fs::write(&file, made.trace(&[]).0).unwrap();
    fifo(&scratch.0.join("build/vmlinux"));
    let output = limited(&["--build", build, file.to_str().unwrap()]);
    assert!(stderr(&output).contains("vmlinux is a FIFO"), "{}", stderr(&output));
    // A link that stays below.
    fs::remove_file(&bad).unwrap();
    symlink("../fs/ext9/built-in.a", &bad).unwrap();
    let all = limited(&["--build", build]);
    assert_eq!(all.status.code(), Some(1), "names in it start at another folder: {}", stderr(&all));
    fs::remove_file(&bad).unwrap();
    // Members of archives.
    symlink("/dev/zero", scratch.0.join("build/tools/zero.o")).unwrap();
    fifo(&scratch.0.join("build/tools/fifo.o"));
    let long = format!("{}x.o", "./".repeat(4_096));
    for (member, why) in [
        ("/etc/shadow", "is outside"),
        (secret.to_str().unwrap(), "is outside"),
        ("../../secret.o", "is outside"),
        ("x/../../../secret.o", "is outside"),
        ("zero.o", "leads out of"),
        ("fifo.o", "is a FIFO"),
        (&long, "is too long"),
    ] {
        fs::write(&bad, thin_archive(&[member])).unwrap();
        check_refused(&["--build", build], why, expected);
    }
    // Kbuild names objects of other folders of the build.
    fs::write(&bad, thin_archive(&["x/../../drivers/net/veth.o", "x.o"])).unwrap();
    let all = footprint(&["--build", build]);
    let more = ["drivers/net/veth.o", "tools/x.o"].map(|path| loaded(&Path::new(build).join(path)));
    assert_eq!(number(&all["total"], "static"), expected + more.iter().sum::<u64>());
    assert_eq!(number(&all, "files_refused"), 0);
}

#[test]
fn only_regular_modules_below_the_folder_are_read() {
    let scratch = Scratch::new();
    let build = build(&scratch);
    fs::write(build.join("fs/ext9/built-in.a"), thin_archive(&["super.o"])).unwrap();
    let modules = scratch.0.join("modules/kernel/fs");
    fs::create_dir_all(&modules).unwrap();
    fs::copy(objects().join("arm64.ko"), modules.join("good.ko")).unwrap();
    let expected = loaded(&build.join("fs/ext9/super.o")) + loaded(&modules.join("good.ko"));
    let bad = modules.join("bad.ko");
    let top = scratch.0.join("modules");
    let args = ["--build", build.to_str().unwrap(), "--modules", top.to_str().unwrap()];
    mknodat(CWD, &bad, FileType::Fifo, Mode::RWXU, 0).unwrap();
    check_refused(&args, "is a FIFO", expected);
    for target in ["/dev/zero", "../../../build/tools/x.o"] {
        fs::remove_file(&bad).unwrap();
        symlink(target, &bad).unwrap();
        check_refused(&args, "leads out of", expected);
    }
}

#[test]
fn allocations_stand_beside_code() {
    let scratch = Scratch::new();
    let made = Made::read("vmlinux.x86_64");
    let file = scratch.0.join("trace.kmt");
    fs::write(&file, made.trace(&[]).0).unwrap();
    let (vmlinux, rings) = (objects().join("vmlinux.x86_64"), scratch.0.join("rings.svg"));
    let args = ["footprint", "--json", "--vmlinux", vmlinux.to_str().unwrap()];
    let all = json(&[&args[..], &["--rings-file", rings.to_str().unwrap()]].concat(), &file);
    check_sums(&all);
    let summary = json(&["summary", "--json"], &file);
    for (key, of_summary) in
        [("current_dynamic", "bytes_live"), ("total_dynamic", "bytes_alloc"), ("waste", "bytes_wasted_live")]
    {
        assert_eq!(number(&all["total"], key), number(&summary["slab"], of_summary), "{key}");
    }
    let svg = fs::read_to_string(&rings).unwrap();
    let fs_row = all["rows"].as_array().unwrap().iter().find(|row| row["path"] == "fs").unwrap();
    assert!(svg.contains(&format!(
        "data-path=\"fs\" data-name=\"fs\" data-value=\"{}\"",
        number(fs_row, "current")
    )));
    let of_fs = json(&[&args[..], &["--start-branch", "fs"]].concat(), &file);
    assert_eq!(number(&of_fs["total"], "current"), number(fs_row, "current"));
}

#[test]
fn builds_are_compared_by_symbol() {
    let (old, new) = (objects().join("vmlinux.ppc32"), objects().join("vmlinux.x86_64"));
    let (old, new) = (old.to_str().unwrap(), new.to_str().unwrap());
    let rows = footprint(&["--vmlinux", new, "--against", old]);
    let change = number(&rows, "after") as i64 - number(&rows, "before") as i64;
    assert_eq!(number(&rows, "up") as i64 - number(&rows, "down") as i64, change);
    let symbols = rows["symbols"].as_array().unwrap();
    assert_eq!(symbols.iter().map(|symbol| symbol["delta"].as_i64().unwrap()).sum::<i64>(), change);
    assert!(symbols.iter().any(|symbol| symbol["name"] == "start_kernel"));
    let same = footprint(&["--vmlinux", new, "--against", new]);
    assert_eq!((number(&same, "up"), same["symbols"].as_array().unwrap().len()), (0, 0));
    let over = |limit: &str| {
        let args = ["footprint", "--fail-over", limit, "--vmlinux", old, "--against", new];
        Command::new(env!("CARGO_BIN_EXE_kmt-analyze")).args(args).output().unwrap()
    };
    let grown = if change < 0 { change.unsigned_abs() } else { 0 };
    assert_eq!(over(&grown.to_string()).status.code(), Some(0));
    assert_eq!(over("1").status.code(), Some(i32::from(grown > 1)));
    let lacks = run(&["footprint"], &objects().join("vmlinux.x86_64"));
    assert!(!lacks.status.success());
}

#[test]
fn functions_are_in_the_objects_that_define_them() {
    let scratch = Scratch::new();
    let made = Made::read("vmlinux.x86_64");
    let file = scratch.0.join("trace.kmt");
    fs::write(&file, made.trace(&[]).0).unwrap();
    let build = scratch.0.join("build");
    let place = |path: &str| {
        let place = build.join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(objects().join("x86_64.ko"), &place).unwrap();
        place
    };
    let object = place("own/place/super.o");
    fs::write(build.join("vmlinux.a"), thin_archive(&["own/place/super.o"])).unwrap();
    let bytes = fs::read(&object).unwrap();
    let elf = object::File::parse(bytes.as_slice()).unwrap();
    let defined = elf.symbols().filter(|s| s.kind() == SymbolKind::Text && s.section_index().is_some());
    let defined: Vec<String> = defined.map(|symbol| symbol.name().unwrap().to_owned()).collect();
    let callers = json(&["callers", "--by", "function", "--json"], &file);
    let of_object = callers["groups"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|group| defined.iter().any(|name| group["function"] == name.as_str()));
    let expected: u64 = of_object.map(|group| number(group, "bytes_alloc")).sum();
    assert!(expected > 0, "{callers}");
    let args = ["footprint", "--json", "--build", build.to_str().unwrap()];
    let all = json(&args, &file);
    check_sums(&all);
    let found = all["rows"].as_array().unwrap().iter().find(|row| row["path"] == "own").unwrap();
    assert_eq!(number(found, "total_dynamic"), expected, "{all}");
    let below = json(&[&args[..], &["--start-branch", "own", "--depth", "2"]].concat(), &file);
    assert_eq!(below["rows"][0]["path"], "own/place/super", "{below}");
    // A name that two objects define shows neither of them.
    place("other/place/super.o");
    fs::write(build.join("vmlinux.a"), thin_archive(&["own/place/super.o", "other/place/super.o"])).unwrap();
    let twice = json(&args, &file);
    check_sums(&twice);
    for directory in ["own", "other"] {
        let row = twice["rows"].as_array().unwrap().iter().find(|row| row["path"] == directory).unwrap();
        assert_eq!(number(row, "total_dynamic"), 0, "{twice}");
    }
    // The same names in a module: of that module alone.
    let made = Made::read("x86_64");
    fs::write(&file, made.trace(&[]).0).unwrap();
    fs::write(build.join("vmlinux.a"), thin_archive(&["own/place/super.o"])).unwrap();
    let modules = scratch.0.join("modules");
    fs::create_dir_all(modules.join("a/module")).unwrap();
    // Without debug information.
    let mut bytes = bytes;
    while let Some(at) = bytes.windows(11).position(|name| name == b".debug_info") {
        bytes[at + 1] = b'x';
    }
    fs::write(modules.join("a/module/ext9.ko"), bytes).unwrap();
    let with_modules = json(&[&args[..], &["--modules", modules.to_str().unwrap()]].concat(), &file);
    let dynamic = |path: &str| {
        let row = with_modules["rows"].as_array().unwrap().iter().find(|row| row["path"] == path);
        number(row.unwrap_or_else(|| panic!("{path} of {with_modules}")), "total_dynamic")
    };
    assert_eq!(dynamic("own"), 0);
    assert!(dynamic("a") > 0);
}
