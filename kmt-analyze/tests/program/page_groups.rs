//! `pages --by`: sums by any key are all pages, and those of the report's own tables.

use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;

use serde_json::Value;

use crate::groups::sum;
use crate::support::files::{Scratch, at, convert, data, json, run, stderr, stdout};

/// Keys of pages; the first three need stacks.
pub const PAGE_KEYS: [&str; 11] = [
    "call_site",
    "function",
    "module",
    "order",
    "migratetype",
    "gfp",
    "task",
    "comm",
    "cpu",
    "order,migratetype,gfp",
    "comm,cpu,order",
];

const PAGE_SUMS: [&str; 7] = [
    "alloc_events",
    "alloc_failures",
    "pages_alloc",
    "pages_freed",
    "pages_freed_unseen",
    "pages_live",
    "bytes_live",
];

/// Sums of pages by `by` are those of all pages.
pub fn check_pages(file: &Path, by: &str, selection: &[&str]) {
    let args = [&["pages", "--json", "--by", by], selection].concat();
    let rows = json(&args, file);
    let pages = &rows["pages"];
    let groups = pages["groups"].as_array().unwrap_or_else(|| panic!("{args:?}: {rows}"));
    assert_eq!(pages["groups_total"].as_u64(), Some(groups.len() as u64), "{args:?}");
    for key in PAGE_SUMS {
        assert_eq!(sum(pages, key), pages[key].as_u64(), "{args:?} {key}");
    }
    for key in by.split(',') {
        assert!(groups.iter().all(|group| group.get(key).is_some()), "{args:?} {key}");
    }
}

#[test]
fn pages_by_any_key_are_all_pages() {
    let scratch = Scratch::new();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let stacks = scratch.convert(&own.join("x86_64-6.18-stacks"));
    PAGE_KEYS.iter().for_each(|by| check_pages(&stacks, by, &[]));
    for folder in [own.join("x86_64-6.1-reclaim"), data("x86_64-6.12"), data("s390x-6.1"), data("armhf-6.1")]
    {
        let file = scratch.convert(&folder);
        for selection in [&[][..], &["--time", "+0.01..+0.05"], &["--where", "order>0"], &["--cpu", "1"]] {
            PAGE_KEYS[3..].iter().for_each(|by| check_pages(&file, by, selection));
        }
        let refused = run(&["pages", "--by", "function"], &file);
        let error = stderr(&refused);
        assert!(refused.status.code() == Some(1) && error.contains("--stack kmem:mm_page_alloc"), "{error}");
    }
}

/// Pages by order, migrate type and flags are tables of their own too: by other code.
#[test]
fn pages_by_their_own_keys_are_their_own_tables() {
    let scratch = Scratch::new();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let file = scratch.convert(&own.join("x86_64-6.1-reclaim"));
    let of = |by: &str, table: &str, keys: &[(&str, &str)]| {
        let pages = &json(&["pages", "--json", "--by", by], &file)["pages"];
        let rows = |table: &Value, keys: Vec<&str>| -> Vec<(Vec<String>, Vec<Value>)> {
            let row = |row: &Value| {
                let names: Vec<String> = keys.iter().map(|key| row[*key].to_string()).collect();
                (names, PAGE_SUMS.iter().map(|key| row[*key].clone()).collect())
            };
            let mut rows: Vec<_> = table.as_array().unwrap().iter().map(row).collect();
            rows.sort_by(|a, b| a.0.cmp(&b.0));
            rows
        };
        let groups = rows(&pages["groups"], keys.iter().map(|key| key.0).collect());
        let table = rows(&pages[table], keys.iter().map(|key| key.1).collect());
        assert!(groups.len() > 2);
        assert_eq!(groups, table, "{by}");
    };
    of(
        "order,migratetype",
        "by_order_and_migratetype",
        &[("order", "order"), ("migratetype", "migratetype_text")],
    );
    of("gfp", "by_gfp_flags", &[("gfp", "gfp_flags_text")]);
    let stacks =
        json(&["pages", "--json", "--by", "call_site"], &scratch.convert(&own.join("x86_64-6.18-stacks")));
    let sites = |table: &Value, key: &str| -> Vec<(String, u64)> {
        let row = |row: &Value| (row[key].as_str().unwrap().to_owned(), row["pages_alloc"].as_u64().unwrap());
        table.as_array().unwrap().iter().map(row).collect()
    };
    assert_eq!(sites(&stacks["pages"]["groups"], "call_site"), sites(&stacks["pages"]["callers"], "symbol"));
}

#[test]
fn pages_are_sorted_by_headings() {
    let scratch = Scratch::new();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let file = scratch.convert(&own.join("x86_64-6.1-reclaim"));
    for (key, number) in [
        ("live_pages", "pages_live"),
        ("failed", "alloc_failures"),
        ("freed", "pages_freed"),
        ("allocated", "bytes_alloc"),
        ("live", "bytes_live"),
        ("allocs", "alloc_events"),
        ("alloc_events", "alloc_events"),
    ] {
        let pages = &json(&["pages", "--json", "--by", "task", "--sort", key], &file)["pages"];
        for table in ["groups", "by_order_and_migratetype", "by_gfp_flags"] {
            let rows = pages[table].as_array().unwrap();
            assert!(rows.len() > 2, "{table}");
            assert!(rows.is_sorted_by_key(|row| std::cmp::Reverse(row[number].as_u64())), "{key} {table}");
        }
    }
}

/// Lines of `export folded --pages`, and their sum.
fn folded(args: &[&str], file: &Path) -> (String, u64) {
    let text = stdout(&run(&[&["export", "folded", "--pages"], args].concat(), file));
    let weight = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    let sum = text.lines().map(weight).sum();
    (text, sum)
}

#[test]
fn folded_pages_are_all_pages() {
    let scratch = Scratch::new();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for name in ["x86_64-6.18-stacks", "x86_64-6.1-reclaim"] {
        let file = scratch.convert(&own.join(name));
        let pages = json(&["pages", "--json"], &file)["pages"].take();
        for (by, key) in [("alloc", "bytes_alloc"), ("live", "bytes_live"), ("count", "pages_alloc")] {
            let (text, sum) = folded(&["--by", by], &file);
            assert_eq!(Some(sum), pages[key].as_u64(), "{name} {by}");
            assert_eq!(text.contains("(no stack);"), !name.ends_with("stacks"), "{text}");
        }
        let refused = run(&["export", "folded", "--pages", "--by", "waste"], &file);
        assert!(stderr(&refused).contains("--by waste is for slab objects"), "{}", stderr(&refused));
    }
    // By function: the innermost frame, before the order and the migrate type.
    let file = scratch.convert(&own.join("x86_64-6.18-stacks"));
    let groups = json(&["pages", "--json", "--by", "function"], &file)["pages"]["groups"].take();
    for group in groups.as_array().unwrap() {
        let function = group["function"].as_str().unwrap();
        let (text, _) = folded(&["--by", "count"], &file);
        let of = |line: &&str| line.rsplit(';').nth(1) == Some(function);
        let sum: u64 = text
            .lines()
            .filter(of)
            .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
            .sum();
        assert_eq!(Some(sum), group["pages_alloc"].as_u64(), "{function}");
    }
}

#[test]
fn the_call_graph_of_pages_has_all_pages() {
    let scratch = Scratch::new();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let file = scratch.convert(&own.join("x86_64-6.18-stacks"));
    let pages = json(&["pages", "--json"], &file)["pages"].take();
    let graph = json(&["callgraph", "--pages", "--json", "--min", "0"], &file)["callgraph"].take();
    assert_eq!(graph["pages"], true);
    for (key, of) in
        [("alloc_events", "alloc_events"), ("bytes_alloc", "bytes_alloc"), ("live", "pages_live")]
    {
        let sum = graph["root"][key].as_u64().unwrap() + graph["without_stack"][key].as_u64().unwrap();
        assert_eq!(Some(sum), pages[of].as_u64(), "{key}");
    }
    // Below the root are the innermost functions: the call sites.
    let branches = graph["root"]["children"].as_array().unwrap();
    for caller in pages["callers"].as_array().unwrap() {
        let branch = branches.iter().find(|branch| branch["symbol"] == caller["symbol"]).unwrap();
        assert_eq!(at(branch, "/bytes_alloc"), at(caller, "/bytes_alloc"), "{caller}");
    }
    let without = scratch.convert(&own.join("x86_64-6.1-reclaim"));
    let refused = run(&["callgraph", "--pages"], &without);
    assert!(stderr(&refused).contains("--stack 'kmem:mm_page_alloc'"), "{}", stderr(&refused));
}

/// Values of the samples of a profile, added up: fields of profile.proto, https://github.com/google/pprof.
#[test]
fn a_profile_of_pages_has_all_pages() {
    let scratch = Scratch::new();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let file = scratch.convert(&own.join("x86_64-6.18-stacks"));
    let packed = run(&["export", "pprof", "--pages"], &file).stdout;
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut plain).unwrap();
    let mut sums = Vec::new();
    for (field, sample) in fields(&plain).into_iter().filter(|(field, _)| *field == 2) {
        assert_eq!(field, 2);
        let values = fields(sample).into_iter().find(|(field, _)| *field == 2).unwrap().1;
        let mut rest = values;
        for place in 0.. {
            if rest.is_empty() {
                break;
            }
            if sums.len() <= place {
                sums.push(0);
            }
            sums[place] += varint(&mut rest);
        }
    }
    let pages = json(&["pages", "--json"], &file)["pages"].take();
    let expected =
        ["pages_alloc", "bytes_alloc", "pages_live", "bytes_live"].map(|key| pages[key].as_u64().unwrap());
    assert_eq!(sums, expected);
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

/// Fields of a message that have a length; numbers are left out.
pub fn fields(mut message: &[u8]) -> Vec<(u64, &[u8])> {
    let mut out = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let number = varint(&mut message);
        if key & 7 == 2 {
            let (field, rest) = message.split_at(number as usize);
            message = rest;
            out.push((key >> 3, field));
        } else {
            assert_eq!(key & 7, 0, "a number");
        }
    }
    out
}

/// Text of pages of which some are not allocated; each has a stack, or only the failed ones, or none.
fn with_failures(has_stack: impl Fn(bool) -> bool) -> String {
    let mut text = String::new();
    for number in 0..40u64 {
        let is_failed = number % 4 == 0;
        let (page, caller) = match is_failed {
            true => ("page=(null) pfn=0x0".to_owned(), "fails"),
            false => (format!("page=ffffea0000000040 pfn={:#x}", 0x1000 + number), "works"),
        };
        let task = format!("task-7 [000] ..... 1.{number:06}:");
        writeln!(text, "{task} mm_page_alloc: {page} order=0 migratetype=0 gfp_flags=GFP_KERNEL").unwrap();
        if has_stack(is_failed) {
            let frames = format!("__alloc_pages+0x1/0x20\n => {caller}+0x4/0x40\n => outer+0x1/0x20");
            writeln!(text, "{task} <stack trace>\n => {frames}").unwrap();
        }
    }
    text
}

#[test]
fn failures_have_the_call_sites_of_their_stacks() {
    let scratch = Scratch::new();
    let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
    for (what, has_stack, failures) in [
        ("each", (|_| true) as fn(bool) -> bool, [Some(10), Some(0), None]),
        ("failures alone", |is_failed| is_failed, [Some(10), None, Some(0)]),
        ("allocations alone", |is_failed| !is_failed, [None, Some(0), Some(10)]),
    ] {
        std::fs::write(&input, with_failures(has_stack)).unwrap();
        convert(&input, &output, None).unwrap();
        let rows = json(&["pages", "--json", "--sort", "failed"], &output);
        let callers = rows["pages"]["callers"].as_array().unwrap();
        let of = |symbol: Option<&str>| {
            let mut rows = callers.iter();
            let row = rows.find(|row| match (row["symbol"].as_str(), symbol) {
                (Some(name), Some(symbol)) => name.starts_with(symbol),
                (_, symbol) => symbol.is_none() && row["call_site"].is_null(),
            })?;
            row["alloc_failures"].as_u64()
        };
        let found = [of(Some("fails+")), of(Some("works+")), of(None)];
        assert_eq!(found, failures, "{what}: {callers:#?}");
        assert_eq!(callers[0]["alloc_failures"], 10, "{what}: {callers:#?}");
        PAGE_KEYS.iter().for_each(|by| check_pages(&output, by, &[]));
        for by in ["call_site", "function"] {
            let rows = json(&["pages", "--json", "--by", by, "--sort", "failed"], &output);
            let group = &rows["pages"]["groups"][0];
            let is_known = what != "allocations alone";
            assert_eq!(group["alloc_failures"], 10, "{what} {by}: {group}");
            assert_eq!(group[by].is_null(), !is_known, "{what} {by}: {group}");
        }
    }
    let screen = stdout(&run(&["pages", "--sort", "failed", "--wide"], &output));
    assert!(screen.contains("failed"), "{screen}");
}

/// A text may have no flags: they are unknown, not 0.
#[test]
fn flags_that_events_do_not_have_are_unknown() {
    let scratch = Scratch::new();
    let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
    let line = |time: u64, text: &str| format!("task-7 [000] ..... 1.{time:06}: {text}\n");
    let text = [
        line(1, "mm_page_alloc: page=ffffea0000000040 pfn=0x1 order=0 migratetype=0"),
        line(2, "kmalloc: call_site=f+0x1/0x20 ptr=ffff888100000100 bytes_req=64 bytes_alloc=64"),
        line(3, "kfree: call_site=f+0x1/0x20 ptr=ffff888100000100"),
    ]
    .concat();
    std::fs::write(&input, text).unwrap();
    convert(&input, &output, None).unwrap();
    let row = &json(&["pages", "--json"], &output)["pages"]["by_gfp_flags"][0];
    assert_eq!((&row["gfp_flags"], &row["gfp_flags_text"]), (&Value::Null, &"unknown".into()), "{row:#}");
    for args in [&["pages"][..], &["pages", "--by", "gfp"], &["callers", "--by", "gfp"]] {
        let screen = stdout(&run(args, &output));
        assert!(!screen.contains("0x0") && !screen.contains("0xfff"), "{args:?}: {screen}");
    }
    let csv = stdout(&run(&["export", "csv"], &output));
    assert!(csv.contains("f+0x1/0x20") && !csv.contains("1844674407"), "{csv}");
    let none = json(&["pages", "--json", "--where", "gfp=0"], &output);
    assert_eq!(none["pages"]["by_gfp_flags"].as_array().map(Vec::len), Some(0), "{none:#}");
}
