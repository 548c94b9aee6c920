//! Names of caches: each output has the same one for a cache, also where only a free after its time has it, and conditions
//! accept it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::model::{BASE, Crafted};
use crate::page::about;
use crate::support::files::{Scratch, at, data, json, run, stderr, stdout};
use crate::support::model::{Event, What};

/// A cache whose name steers a terminal and has a comma.
const ODD: &[u8] = b"od\x1b[1md, one";

/// Names of all caches of [`made`], as they are shown.
const SHOWN: [&str; 5] = ["? (576 byte objects)", "cache_a", "kmalloc-16k", "kmalloc-64", "od\\x1b[1md, one"];

/// Names that outputs had for them beside these.
const OTHERS: [&str; 4] = ["576 bytes)", "byte pages", "kmalloc-16384", "od\u{1b}"];

/// A recording that names allocations of no cache: of five caches, two are named by frees.
fn made(scratch: &Scratch) -> PathBuf {
    let mut made = Crafted::new();
    for i in 0..200u64 {
        let time = 1_000_000 + 10_000_000 * i;
        let mut event = |after: u64, what| made.event(&Event { time: time + after, cpu: 0, pid: 1, what });
        for (number, (kmalloc, req, alloc, order)) in [
            (false, 60, 64, 0),
            (false, 576, 608, 0),
            (false, 100, 128, 0),
            (true, 12_000, 16_384, 2),
            (true, 60, 64, 0),
        ]
        .into_iter()
        .enumerate()
        {
            let number = number as u64;
            let pfn = 4_096 * (number + 1) + 4 * i;
            event(10 * number, What::PageAlloc { pfn, order, movable: false });
            let ptr = BASE + (pfn << 12);
            event(10 * number + 1, What::Alloc { kmalloc, site: 5 + number, ptr, req, alloc });
        }
        if i < 2 {
            for number in [4, 5] {
                event(99, What::Free { kfree: true, ptr: BASE + ((4_096 * number + 4 * i) << 12) });
            }
            event(100, What::Free { kfree: false, ptr: BASE + ((4_096 + 4 * i) << 12) });
            made.freed_from(time + 101, BASE + ((3 * 4_096 + 4 * i) << 12), ODD);
        }
    }
    let file = scratch.0.join("made.kmt");
    fs::write(&file, made.writer.finish().unwrap()).unwrap();
    file
}

/// All texts of a document; `key`: of this key alone.
fn texts(value: &Value, key: Option<&str>) -> BTreeSet<String> {
    match value {
        Value::String(text) if key.is_none() => BTreeSet::from([text.clone()]),
        Value::Array(all) => all.iter().flat_map(|value| texts(value, key)).collect(),
        Value::Object(all) => {
            let own = all.iter().filter(|(name, _)| Some(name.as_str()) == key);
            let own = own.filter_map(|(_, value)| value.as_str()).map(str::to_owned);
            own.chain(all.values().flat_map(|value| texts(value, key))).collect()
        }
        _ => BTreeSet::new(),
    }
}

fn shown() -> BTreeSet<String> {
    SHOWN.map(str::to_owned).into()
}

#[test]
fn each_report_has_the_same_name_for_a_cache() {
    let scratch = Scratch::new();
    let file = made(&scratch);
    for (args, key) in [
        (&["caches"][..], "cache"),
        (&["callers", "--by", "cache"], "cache"),
        (&["timeline", "--by", "cache"], "name"),
    ] {
        let report = json(&[args, &["--json", "-l", "0"]].concat(), &file);
        assert_eq!(texts(&report, Some(key)), shown(), "{args:?}");
        let screen = stdout(&run(&[args, &["--wide", "-l", "0"]].concat(), &file));
        for name in SHOWN {
            assert!(screen.contains(name), "{args:?}: {name}\n{screen}");
        }
        OTHERS.iter().for_each(|other| assert!(!screen.contains(other), "{args:?}: {other}\n{screen}"));
    }
    let leaks = json(&["leaks", "--json", "-l", "0"], &file);
    let callers = at(&leaks, "/leaks/callers").as_array().unwrap();
    let caches = callers.iter().flat_map(|row| texts(at(row, "/caches"), Some("cache")));
    let caches: BTreeSet<String> = caches.collect();
    assert!(caches.is_subset(&shown()) && caches.contains(SHOWN[0]), "{caches:?}");
    // Reports of a part of the caches, and of other things too.
    for args in [
        &["fragmentation"][..],
        &["waste"],
        &["lifetimes", "--by", "cache"],
        &["findings"],
        &["anomalies"],
        &["diff", "--all", "--by", "cache", "--time", "+0..+1", "--against", "+1..+9"],
    ] {
        let output = run(&[args, &["--json"]].concat(), &file);
        let report: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{args:?}: {e}"));
        let all: Vec<String> = texts(&report, None).into_iter().collect();
        let found = SHOWN.iter().filter(|name| all.iter().any(|text| text.contains(*name))).count();
        assert!(found > 0 || args[0] == "anomalies", "{args:?}: {all:?}");
        for other in OTHERS {
            assert!(!all.iter().any(|text| text.contains(other)), "{args:?}: {other}: {all:?}");
        }
        let caches = texts(&report, Some("cache"));
        assert!(caches.is_subset(&shown()), "{args:?}: {caches:?}");
    }
    let diff = ["diff", "--all", "-l", "0", "--by", "cache", "--time", "+0..+1", "--against", "+1..+9"];
    let diff = json(&[&diff[..], &["--json"]].concat(), &file);
    let rows = at(&diff, "/diff/rows").as_array().unwrap().iter().filter(|row| at(row, "/kind") != "pages");
    assert_eq!(rows.flat_map(|row| texts(row, Some("name"))).collect::<BTreeSet<_>>(), shown());
}

#[test]
fn each_export_and_the_page_have_the_names_of_the_reports() {
    let scratch = Scratch::new();
    let file = made(&scratch);
    for args in [
        &["csv", "--of", "objects"][..],
        &["csv", "--of", "call-sites"],
        &["csv", "--of", "caches"],
        &["ndjson", "--of", "objects"],
        &["folded"],
        &["dhat"],
    ] {
        let output = run(&[&["export"], args, &["-o", "-"]].concat(), &file);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{args:?}: {}", stderr(&output));
        // JSON has each backslash twice.
        let text = stdout(&output).replace("\\\\", "\\");
        SHOWN.iter().for_each(|name| assert!(text.contains(name), "{args:?}: {name}\n{text:.2000}"));
        OTHERS.iter().for_each(|other| assert!(!text.contains(other), "{args:?}: {other}\n{text:.2000}"));
    }
    let output = run(&["report", "-o", "-"], &file);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let page = stdout(&output);
    let all = texts(&about(&page), None);
    SHOWN.iter().for_each(|name| assert!(all.contains(*name), "{name}: {all:?}"));
    OTHERS.iter().for_each(|other| assert!(!page.contains(other), "{other}"));
}

#[cfg(feature = "sqlite")]
#[test]
fn databases_have_the_names_of_the_reports() {
    let scratch = Scratch::new();
    let (file, path) = (made(&scratch), scratch.0.join("made.sqlite"));
    let output = run(&["export", "sqlite", "-o", path.to_str().unwrap()], &file);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let database = rusqlite::Connection::open(&path).unwrap();
    for table in ["sites", "objects"] {
        let mut query = database.prepare(&format!("SELECT DISTINCT cache FROM {table}")).unwrap();
        let names = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
        assert_eq!(names.map(Result::unwrap).collect::<BTreeSet<_>>(), shown(), "{table}");
    }
}

/// Rows of a report under a condition: names and allocations.
fn selected(condition: &str, file: &Path) -> Vec<(String, u64)> {
    let rows = json(&["caches", "--json", "-l", "0", "--where", condition], file);
    let row = |row: &Value| {
        (at(row, "/cache").as_str().unwrap().to_owned(), at(row, "/alloc_events").as_u64().unwrap())
    };
    at(&rows, "/caches").as_array().unwrap().iter().map(row).collect()
}

#[test]
fn a_condition_accepts_the_name_that_is_shown() {
    let scratch = Scratch::new();
    let file = made(&scratch);
    for name in SHOWN {
        let only = [(name.to_owned(), 200)];
        assert_eq!(selected(&format!("cache={name}"), &file), only, "{name}");
        let pattern: String =
            name.chars().flat_map(|c| if c.is_alphanumeric() { vec![c] } else { vec!['\\', c] }).collect();
        // A space needs no backslash.
        let pattern = pattern.replace("\\ ", " ").replace("\\_", "_").replace("\\-", "-");
        assert_eq!(selected(&format!("cache~^{pattern}$"), &file), only, "{name}");
    }
    // What the kernel has, and the other spelling of a size class, are accepted too.
    assert_eq!(selected("cache=kmalloc-16384", &file), [("kmalloc-16k".to_owned(), 200)]);
    let odd = String::from_utf8(ODD.to_vec()).unwrap();
    assert_eq!(selected(&format!("cache={odd}"), &file), [(SHOWN[4].to_owned(), 200)]);
    assert_eq!(selected("cache=cache_a,kmalloc-64", &file).len(), 2);
    // An unknown cache is neither the other one nor known to be another.
    let others = selected("cache!=cache_a", &file);
    assert_eq!(others.iter().map(|row| &*row.0).collect::<Vec<_>>().len(), 3, "{others:?}");
    let dump = |condition: &str| stdout(&run(&["dump", "--where", condition], &file)).lines().count();
    assert!(dump("cache=kmalloc-16k") >= 200);
    assert_eq!(dump(&format!("cache={}", SHOWN[4])), dump(&format!("cache={odd}")));
    assert!(dump(&format!("cache={}", SHOWN[4])) >= 2);
}

/// Kernels before 4.19 write sizes in bytes.
#[test]
fn a_comparison_of_one_old_kernel_has_its_names() {
    let scratch = Scratch::new();
    let mut made = Crafted::new();
    made.release("4.14.0");
    for i in 0..200u64 {
        let what = What::Alloc { kmalloc: true, site: 5, ptr: BASE + 4_096 * i, req: 1_000, alloc: 1_024 };
        made.event(&Event { time: 1_000_000 + 1_000 * i, cpu: 0, pid: 1, what });
    }
    let file = scratch.0.join("made.kmt");
    fs::write(&file, made.writer.finish().unwrap()).unwrap();
    let caches = json(&["caches", "--json"], &file);
    assert_eq!(texts(&caches, Some("cache")), BTreeSet::from(["kmalloc-1024".to_owned()]));
    let diff =
        ["diff", "--all", "--by", "cache", "--json", "--time", "+0..+0.0001", "--against", "+0.0001..+1"];
    let diff = json(&diff, &file);
    assert_eq!(at(&diff, "/diff/rows/0/name"), "kmalloc-1024");
    // Beside a current kernel it has the names of that.
    let new = scratch.convert(&data("x86_64-6.1"));
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_kmt-analyze"))
        .args(["diff", "--all", "--by", "cache", "--json", "-l", "0"])
        .args([&file, &new])
        .output()
        .unwrap();
    let names = texts(&serde_json::from_slice(&output.stdout).unwrap(), Some("name"));
    assert!(names.contains("kmalloc-1k") && !names.contains("kmalloc-1024"), "{names:?}");
}

#[test]
fn a_free_after_the_selected_time_names_the_cache() {
    let mut made = Crafted::new();
    let mut event = |time, what| made.event(&Event { time, cpu: 0, pid: 1, what });
    for i in 0..40u64 {
        event(1_000_000 + 20 * i, What::PageAlloc { pfn: 900 + i, order: 0, movable: false });
        let ptr = BASE + ((900 + i) << 12);
        event(1_000_010 + 20 * i, What::Alloc { kmalloc: false, site: 5, ptr, req: 64, alloc: 64 });
    }
    event(20_000_000, What::Free { kfree: false, ptr: BASE + (900 << 12) });
    let scratch = Scratch::new();
    let file = scratch.0.join("made.kmt");
    fs::write(&file, made.writer.finish().unwrap()).unwrap();
    for command in [
        &["caches"][..],
        &["callers", "--by", "cache"],
        &["timeline", "--by", "cache"],
        &["lifetimes", "--by", "cache"],
        &["fragmentation"],
        &["diff", "--by", "cache", "--json", "--against", "+0.002..+0.003"],
        &["export", "csv", "--of", "objects", "-o", "-"],
    ] {
        let all = [command, &["--time", "..+0.001"]].concat();
        let made = run(&all, &file);
        assert!(stdout(&made).contains("cache_a"), "{all:?}\n{}{}", stdout(&made), stderr(&made));
    }
}

/// SLUB merges caches: events name one of them, and a selection accepts the others.
#[test]
fn a_merged_cache_is_found_by_each_of_its_names() {
    let scratch = Scratch::new();
    let mut made = Crafted::new();
    let links = b":0000096 object_size=96\ncache_a -> :0000096\nUNIX -> :0000096\nother -> :0000192\n";
    made.writer.add_file("slab_sysfs.after", links).unwrap();
    for i in 0..4 {
        let time = 1_000_000 + 1_000 * i;
        let ptr = BASE + (16 << 12) + i * 96;
        let mut event = |time, what| made.event(&Event { time, cpu: 0, pid: 1, what });
        event(time, What::Alloc { kmalloc: false, site: 5, ptr, req: 96, alloc: 96 });
        if i == 0 {
            event(time + 1, What::Free { kfree: false, ptr });
        }
    }
    let file = scratch.0.join("merged.kmt");
    fs::write(&file, made.writer.finish().unwrap()).unwrap();
    for args in [
        &["caches", "--cache", "UNIX"][..],
        &["caches", "--cache", "cache_a"],
        &["caches", "--where", "cache=UNIX"],
        &["caches", "--where", "cache!=other"],
    ] {
        let report = json(&[args, &["--json"]].concat(), &file);
        assert_eq!(texts(&report, Some("cache")), BTreeSet::from(["cache_a".to_owned()]), "{args:?}");
        let screen = stdout(&run(args, &file));
        assert!(screen.contains("cache_a also stands for UNIX."), "{args:?}: {screen}");
    }
    let grouped = json(&["caches", "--cache", "UNIX", "--by", "function", "--json"], &file);
    assert!(!texts(&grouped, Some("function")).is_empty(), "{grouped:#}");
    let callers = json(&["callers", "--where", "cache=UNIX", "--json"], &file);
    assert_eq!(callers["callers"].as_array().unwrap().len(), 1, "{callers:#}");
    for args in [["caches", "--cache", "other"], ["caches", "--where", "cache!=UNIX"]] {
        let screen = stdout(&run(&args, &file));
        assert!(!screen.contains("also stands for"), "{args:?}: {screen}");
    }
}
