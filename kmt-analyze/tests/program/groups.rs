//! `--by`: sums by any key are the totals of `summary`, and those of the events themselves.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::files::{Scratch, data, json, run, stderr, stdout};

pub const KEYS: [&str; 12] = [
    "call_site",
    "function",
    "module",
    "cache",
    "size",
    "task",
    "comm",
    "cpu",
    "node",
    "gfp",
    "comm,cpu",
    "module,size,task",
];

const SUMS: [&str; 8] = [
    "alloc_events",
    "bytes_req",
    "bytes_alloc",
    "frees_matched",
    "bytes_freed",
    "freed_unseen",
    "live",
    "bytes_live",
];

pub fn sample(scratch: &Scratch) -> PathBuf {
    scratch.convert(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1"))
}

pub fn sum(rows: &Value, key: &str) -> Option<u64> {
    rows["groups"].as_array().unwrap().iter().map(|row| row[key].as_u64()).sum()
}

/// Sums by `by` are those of summary, with the same selection.
pub fn check(file: &Path, by: &str, selection: &[&str], summary: &Value) {
    let (slab, kmalloc) = (&summary["slab"], &summary["slab"]["kmalloc"]);
    for (report, totals) in [("callers", slab), ("tasks", slab), ("sizes", kmalloc)] {
        let args = [&[report, "--json", "--by", by], selection].concat();
        let rows = json(&args, file);
        let groups = rows["groups"].as_array().unwrap_or_else(|| panic!("{args:?}: {rows}"));
        assert_eq!(rows["groups_total"].as_u64(), Some(groups.len() as u64), "{args:?}");
        for key in SUMS.iter().filter(|key| totals[**key].is_u64()) {
            assert_eq!(sum(&rows, key), totals[*key].as_u64(), "{args:?} {key}");
        }
        for key in by.split(',') {
            assert!(groups.iter().all(|group| group.get(key).is_some()), "{args:?} {key}");
        }
    }
}

#[test]
fn sums_by_any_key_are_those_of_summary() {
    let scratch = Scratch::new();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let folders = [
        own.join("x86_64-6.18-stacks"),
        own.join("x86_64-6.1-reclaim"),
        data("x86_64-6.12"),
        data("s390x-6.1"),
        data("armhf-6.1"),
    ];
    for folder in folders {
        let file = scratch.convert(&folder);
        let summary = json(&["summary", "--json"], &file);
        KEYS.iter().for_each(|by| check(&file, by, &[], &summary));
    }
}

#[test]
fn sums_of_selections_are_those_of_summary() {
    let scratch = Scratch::new();
    let file = sample(&scratch);
    for selection in [
        &["--where", "size>64"][..],
        &["--comm", "sh"],
        &["--cpu", "1", "--where", "lifetime<1ms"],
        &["--time", "+0.01..+0.05"],
        &["--at", "+0.05"],
    ] {
        let summary = json(&[&["summary", "--json"], selection].concat(), &file);
        for by in ["call_site", "cache", "comm", "cpu,gfp"] {
            check(&file, by, selection, &summary);
        }
    }
}

/// Without rules of the ledger: allocations of each name in `dump`.
#[test]
fn allocations_by_comm_are_those_of_dump() {
    let scratch = Scratch::new();
    let file = sample(&scratch);
    let summary = json(&["summary", "--json"], &file);
    for what in ["double_reports", "alloc_failures"] {
        assert_eq!(summary["slab"][what], 0, "{what}: dump has more events than the ledger has objects");
    }
    let mut expected: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let allocs = ["kmem:kmalloc", "kmem:kmalloc_node", "kmem:kmem_cache_alloc", "kmem:kmem_cache_alloc_node"];
    let dump = stdout(&run(&["dump", "--format", "jsonl"], &file));
    for event in dump.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        if allocs.contains(&event["event"].as_str().unwrap_or_default()) {
            let sum = expected.entry(event["comm"].as_str().unwrap().to_owned()).or_default();
            *sum = (sum.0 + 1, sum.1 + event["fields"]["bytes_alloc"].as_u64().unwrap());
        }
    }
    let rows = json(&["callers", "--json", "--by", "comm"], &file);
    let of = |row: &Value| {
        let number = |key: &str| row[key].as_u64().unwrap();
        (row["comm"].as_str().unwrap().to_owned(), (number("alloc_events"), number("bytes_alloc")))
    };
    // Names without an allocation are there for frees of objects allocated before.
    let found: BTreeMap<_, _> = rows["groups"].as_array().unwrap().iter().map(of).collect();
    assert!(expected.len() > 3);
    assert_eq!(found, expected);
}

#[test]
fn own_filters_hold_for_groups_and_limits_too() {
    let scratch = Scratch::new();
    let file = sample(&scratch);
    let rows = json(&["caches", "--json", "--cache", "kmalloc-", "--by", "cache", "--sort", "allocs"], &file);
    let groups = rows["groups"].as_array().unwrap();
    assert!(!groups.is_empty());
    assert!(groups.iter().all(|row| row["cache"].as_str().unwrap().starts_with("kmalloc-")));
    assert!(groups.is_sorted_by_key(|row| std::cmp::Reverse(row["alloc_events"].as_u64())));
    assert_eq!(
        sum(&rows, "alloc_events"),
        rows["caches"]
            .as_array()
            .map(|own| { own.iter().filter_map(|row| row["alloc_events"].as_u64()).sum() })
    );
    let few = json(&["callers", "--json", "--by", "gfp", "-l", "2"], &file);
    assert_eq!(few["groups"].as_array().unwrap().len(), 2);
    assert!(few["groups_total"].as_u64().unwrap() > 2);
    let plain = json(&["callers", "--json"], &file);
    assert!(plain.get("by").is_none() && plain.get("groups").is_none());
}

#[test]
fn other_keys_are_refused_with_a_reason() {
    let file = Path::new("unused.kmt");
    for (key, reason) in [("order", "of pages only"), ("pids", "no such key")] {
        let output = run(&["callers", "--by", key], file);
        assert_eq!(output.status.code(), Some(2));
        let error = stderr(&output);
        assert!(error.contains(reason) && error.contains("call_site, function, module"), "{error}");
    }
}

/// Conditions on modules are the groups of modules.
#[test]
fn conditions_on_modules_are_the_groups() {
    let scratch = Scratch::new();
    // No capture has events of modules: two functions become those of two modules.
    let file = scratch.changed("x86_64-6.1", |folder| {
        let path = folder.join("kallsyms");
        let text = fs::read_to_string(&path).unwrap();
        let line = |line: &str| match line.split_whitespace().nth(2) {
            Some(name) if name.starts_with("getname") => format!("{line}\t[toy]\n"),
            Some(name) if name.starts_with("vm_area_dup") => format!("{line}\t[other]\n"),
            _ => format!("{line}\n"),
        };
        fs::write(&path, text.lines().map(line).collect::<String>()).unwrap();
    });
    let rows = json(&["callers", "--json", "--by", "module"], &file);
    let groups = rows["groups"].as_array().unwrap();
    assert!(groups.len() > 2, "{rows}");
    let allocs = |condition: &str| {
        json(&["summary", "--json", "--where", condition], &file)["slab"]["alloc_events"].as_u64()
    };
    for group in groups {
        let module = group["module"].as_str().unwrap();
        let bare = module.trim_matches(['[', ']']);
        for name in [module, bare] {
            assert_eq!(allocs(&format!("module={name}")), group["alloc_events"].as_u64(), "{name}");
        }
    }
    let all: u64 = groups.iter().map(|group| group["alloc_events"].as_u64().unwrap()).sum();
    let core = allocs("module=kernel").unwrap();
    assert_eq!(allocs("module!=kernel"), Some(all - core));
    let dumped = stdout(&run(&["dump", "--where", "module=toy"], &file));
    assert!(dumped.lines().count() > 10 && dumped.lines().all(|line| line.contains("call_site=getname")));
}
