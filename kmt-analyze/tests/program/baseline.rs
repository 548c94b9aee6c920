//! `baseline`: the kernel's accounts beside live memory of the trace.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use kmt_format::kernel::{Module, parse_kallsyms};
use serde_json::{Value, json};

use crate::model::{BASE, Crafted};
use crate::source::{Made as Source, objects};
use crate::support::files::{Scratch, at, json as document, run, stderr, stdout};
use crate::support::hostile::Made;
use crate::support::model::{Event, What};

const KALLSYMS: &[u8] = b"ffffffff81000000 T _text\nffffffff81010000 T user_a\nffffffff81011000 T user_b\n\
    ffffffff81012000 T others\nffffffff81021000 T _etext\n";
const USER_A: u64 = 0xffff_ffff_8101_0010;
const USER_B: u64 = 0xffff_ffff_8101_1010;

/// Five objects of `user_a`, of which two are freed, one of `user_b`, and a free of an older object of cache_a.
fn trace(scratch: &Scratch, files: &[(&str, &str)]) -> PathBuf {
    let mut made = Crafted::new();
    made.writer.add_symbols(&parse_kallsyms(KALLSYMS, &[], 4096), &[]).unwrap();
    let mut time = 100;
    let mut event = |made: &mut Crafted, what| {
        time += 10;
        made.event(&Event { time, cpu: 0, pid: 7, what });
    };
    for number in 0..6 {
        let (kmalloc, site) = if number < 5 { (false, USER_A) } else { (true, USER_B) };
        event(&mut made, What::Alloc { kmalloc, site, ptr: BASE + 256 * number, req: 100, alloc: 128 });
    }
    for number in [0, 1, 77] {
        event(&mut made, What::Free { kfree: false, ptr: BASE + 256 * number });
    }
    event(&mut made, What::Free { kfree: true, ptr: BASE + 256 * 99 });
    for (name, text) in files {
        made.writer.add_file(name, text.as_bytes()).unwrap();
    }
    let path = scratch.0.join("baseline.kmt");
    fs::write(&path, made.writer.finish().unwrap()).unwrap();
    path
}

fn row(name: &str, [before, live, after, older_freed]: [i64; 4], is_contradicted: bool) -> Value {
    json!({
        "name": name, "before": before, "live": live, "after": after, "older_freed": older_freed,
        "is_contradicted": is_contradicted,
    })
}

fn cache(name: &str, [before, live, after, older_freed, by_events]: [i64; 5]) -> Value {
    json!({
        "name": name, "before": before, "live": live, "after": after, "older_freed": older_freed,
        "older_freed_by_events": by_events, "unseen": by_events - older_freed,
    })
}

#[test]
fn the_end_is_explained_by_call_site() {
    let scratch = Scratch::new();
    let allocinfo = |user_a: u64, user_b: u64| {
        format!(
            "allocinfo - version: 1.0\n#     <size>  <calls> <tag info>\n{user_a:>12} 4 fs/a.c:7 func:user_a\n\
             {user_b:>12} 1 fs/b.c:9 func:user_b\n        4096 1 mm/c.c:1 func:same\n"
        )
    };
    let (before, after) = (allocinfo(1_280, 0), allocinfo(1_536, 128));
    let file = trace(
        &scratch,
        &[
            ("allocinfo.before", &before),
            ("allocinfo.after", &after),
            (
                "slab_traces.before",
                "4 cache_a user_a+0x10/0x1000\n9 cache_a gone+0x1/0x2\n1 kmalloc-cg-64 user_b+0x10/0x1000\n\
                1 kmalloc-128 user_b+0x10/0x1000\n5 cache_b unseen+0x1/0x2\n7 cache_c same+0x1/0x2\n",
            ),
            (
                "slab_traces.after",
                "6 cache_a user_a+0x10/0x1000\n9 cache_a gone+0x1/0x2\n2 kmalloc-128 user_b+0x10/0x1000\n\
                6 cache_b unseen+0x1/0x2\n7 cache_c same+0x1/0x2\n",
            ),
            ("page_owner.before", "3 user_b+0x10/0x1000\n"),
        ],
    );
    let report = document(&["baseline", "--json"], &file);
    // Live: three of user_a, one of user_b. One older object of user_a was freed.
    let expected = [row("user_a", [1_280, 384, 1_536, 128], false), row("user_b", [0, 128, 128, 0], false)];
    assert_eq!(*at(&report, "/allocinfo/rows"), json!(expected));
    let expected = [
        row("cache_a user_a+0x10", [4, 3, 6, 1], false),
        row("cache_b unseen+0x1", [5, 0, 6, -1], true),
        row("kmalloc user_b+0x10", [2, 1, 2, 1], false),
    ];
    assert_eq!(*at(&report, "/slab_traces/rows"), json!(expected));
    assert_eq!(*at(&report, "/slab_traces/contradicted"), 1);
    let expected = [
        cache("cache_b", [5, 0, 6, -1, 0]),
        cache("cache_a", [13, 3, 15, 1, 1]),
        cache("kmalloc", [2, 1, 2, 1, 1]),
    ];
    assert_eq!(*at(&report, "/caches/rows"), json!(expected));
    assert_eq!([at(&report, "/caches/caches_total"), at(&report, "/caches/caches_exact")], [4, 3]);
    assert_eq!(*at(&report, "/allocinfo/total/older_freed"), 128);
    assert!(at(&report, "/page_owner").is_null(), "it was read once");
    let screen = stdout(&run(&["baseline"], &file));
    let sentence = "5.25 KiB before + 512 B born here - 128 B of older ones freed = 5.62 KiB now";
    let fits = |row: &str| screen.lines().any(|line| line.contains(row) && !line.ends_with("no"));
    assert!(!fits("cache_b unseen") && fits("cache_a user_a") && fits("user_b"), "{screen}");
    let screen = screen.replace('\n', " ");
    assert!(screen.contains(sentence), "{screen}");
    let sentence =
        "Events explain the change of 3 of 4 caches to the object; most is missing in cache_b: 1 object.";
    assert!(screen.contains(sentence), "{screen}");
}

/// Accounts of these functions at begin and end, without memory.
fn allocinfo(functions: &[&str]) -> String {
    let row = |name: &&str| match name.split_once(' ') {
        Some((name, module)) => format!("0 0 a.c:1 {module} func:{name}\n"),
        None => format!("0 0 a.c:1 func:{name}\n"),
    };
    "allocinfo - version: 1.0\n#     <size>  <calls> <tag info>\n".to_owned()
        + &functions.iter().map(row).collect::<String>()
}

/// Live bytes by function.
fn live(report: &Value) -> BTreeMap<String, u64> {
    let rows = at(report, "/allocinfo/rows").as_array().unwrap();
    let live = |row: &Value| (row["name"].as_str().unwrap().to_owned(), row["live"].as_u64().unwrap());
    rows.iter().map(live).filter(|row| row.1 > 0).collect()
}

/// Memory counts for the innermost function with a tag: not for wrappers without one, nor for clones of compilers.
#[test]
fn pages_count_for_the_innermost_function_with_a_tag() {
    let names = [
        "_text",
        "alloc_pages_noprof",
        "allocate_slab.constprop.0",
        "___slab_alloc",
        "user_a",
        "made.isra.0\t[ext9]",
        "_etext",
    ];
    let address = |number: usize| 0xffff_ffff_8100_0000 + 0x1000 * number as u64;
    let rows = names.iter().enumerate().map(|(number, name)| format!("{:x} T {name}\n", address(number)));
    let kallsyms: String = rows.collect();
    let modules = [Module { name: "ext9".into(), base: address(5), size: 0x1000 }];
    let mut made = Made::default();
    let writer = made.writer();
    writer.add_symbols(&parse_kallsyms(kallsyms.as_bytes(), &modules, 4096), &modules).unwrap();
    let tags = allocinfo(&["alloc_slab_page", "user_a", "made [ext9]"]);
    for name in ["allocinfo.before", "allocinfo.after"] {
        writer.add_file(name, tags.as_bytes()).unwrap();
    }
    let stacks = [&[1, 2, 3, 4][..], &[1, 3, 4], &[1, 4], &[1, 5, 4], &[1, 5]];
    for (number, stack) in (0..).zip(stacks) {
        made.pages(0, 7, 64 + number, 0);
        let stack: Vec<u64> = stack.iter().map(|&number| address(number) + 0x10).collect();
        made.stack(0, 7, &stack);
    }
    made.pages_free(0, 999, 0);
    let scratch = Scratch::new();
    let file = scratch.0.join("pages.kmt");
    fs::write(&file, made.finish()).unwrap();
    let found = live(&document(&["baseline", "--json"], &file));
    let expected = [("alloc_slab_page", 2 * 4096), ("made [ext9]", 2 * 4096), ("user_a", 4096)];
    assert_eq!(found, expected.map(|(name, bytes)| (name.to_owned(), bytes)).into());
}

/// With source lines, functions that the compiler inlined have their own tags.
#[test]
fn inlined_functions_have_their_tags() {
    let kernel = Source::read("vmlinux.x86_64");
    let functions = |frames: &[String]| -> Vec<String> {
        frames.iter().map(|frame| frame.split_once('|').unwrap().0.to_owned()).collect()
    };
    let frames: Vec<Vec<String>> = kernel.frames().map(functions).collect();
    let tagged: BTreeSet<&str> =
        frames.iter().filter_map(|frames| frames.first()).map(String::as_str).collect();
    let tags = allocinfo(&tagged.into_iter().collect::<Vec<_>>());
    let files = [("allocinfo.before", &*tags), ("allocinfo.after", &*tags)];
    let scratch = Scratch::new();
    let file = scratch.0.join("trace.kmt");
    fs::write(&file, kernel.trace_with(&[], &files).0).unwrap();
    let vmlinux = objects().join("vmlinux.x86_64");
    let found = live(&document(&["baseline", "--json", "--vmlinux", vmlinux.to_str().unwrap()], &file));
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    // The first object is freed.
    for frames in frames.iter().skip(1) {
        *expected.entry(frames[0].clone()).or_default() += 64;
    }
    assert_eq!(found, expected);
    let inlined = frames.iter().filter(|frames| frames.len() > 1).count();
    assert!(inlined > 2 && live(&document(&["baseline", "--json"], &file)) != expected, "{inlined}");
}

#[test]
fn it_is_refused_without_accounts_and_with_a_selection() {
    let scratch = Scratch::new();
    let file = trace(&scratch, &[("slab_traces.after", "1 a b+0x1/0x2\n")]);
    let error = stderr(&run(&["baseline"], &file));
    assert!(error.contains("record with --baseline"), "{error}");
    let file = trace(&scratch, &[("slab_traces.before", ""), ("slab_traces.after", "1 a b+0x1/0x2\n")]);
    let error = stderr(&run(&["baseline", "--pid", "7"], &file));
    assert!(error.contains("it refuses selections"), "{error}");
}
