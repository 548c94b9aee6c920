//! Files of survivors against files with every event, in reports of which a part needs each event: `waste`, `memory`, `pages`,
//! areas, `balance`, groups, the page. Numbers that sums have are the same; the others are reported as unknown.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kmt_capture::survivors::SurvivorArgs;
use serde_json::Value;

use crate::page::{page, whole_time};
use crate::support::files::{Scratch, at, json, run, stderr, stdout};
use crate::survivor_pairs::{Compared, MS, comparable, compare, compare_windows, difference, folded};

/// These reports. Call sites of pages need stacks, which sums lack.
pub const MORE: [Compared; 9] = [
    (&["waste", "-l", "0"], &["places_total"]),
    (&["waste", "-l", "0", "--sort", "mean_waste"], &["places_total"]),
    (&["pages", "-l", "0"], &["callers"]),
    (&["pages", "-l", "0", "--by", "order,migratetype,gfp"], &["callers"]),
    (&["callers", "-l", "0", "--by", "function,size"], &[]),
    (&["caches", "-l", "0", "--by", "cache,node,gfp"], &[]),
    (&["sizes", "-l", "0", "--by", "module"], &[]),
    (&["vmalloc", "-l", "0"], &[]),
    (&["percpu", "-l", "0"], &[]),
];

/// Recordings without and with stacks of pages.
fn recordings() -> [PathBuf; 3] {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    ["../docs/sample/x86_64-6.1", "tests/data/x86_64-6.1-reclaim", "tests/data/x86_64-6.18-stacks"]
        .map(|name| here.join(name))
}

/// Each recording with its files of survivors.
fn each(check: impl Fn(&str, &Path, &Path, u64)) {
    for input in recordings() {
        let scratch = Scratch::new();
        let whole = scratch.convert(&input);
        for (threshold, interval) in [(MS, 5 * MS), (100 * MS, 200 * MS), (1_000 * MS, 10_000 * MS)] {
            let survivors = folded(&whole, &SurvivorArgs { threshold, interval, memory: 8 << 20 });
            check(&format!("{}, {threshold} ns", input.display()), &whole, &survivors, interval);
        }
    }
}

#[test]
fn what_sums_show_is_the_same() {
    each(|name, whole, survivors, interval| {
        compare(name, whole, survivors, &MORE);
        compare_windows(name, whole, survivors, interval, &MORE);
    });
}

#[test]
fn sparse_slabs_are_unknown() {
    each(|name, _, survivors, _| {
        let waste = json(&["waste", "--json", "-l", "0"], survivors)["waste"].take();
        let kinds = at(&waste, "/kinds").as_array().unwrap();
        let sparse = kinds.iter().find(|row| row["kind"] == "sparse slabs").unwrap();
        assert_eq!(at(sparse, "/bytes_wasted_live"), &Value::Null, "{name}: {sparse}");
        assert!(sparse["unknown"].as_str().unwrap().contains("no addresses"), "{name}: {sparse}");
    });
}

/// Kinds of memory of each module, without those that none has.
fn by_module(file: &Path, kinds: &[&str]) -> BTreeMap<String, Vec<Value>> {
    let rows = json(&["memory", "--json", "-l", "0"], file)["groups"].take();
    let row = |row: &Value| {
        let parts: Vec<Value> = kinds.iter().map(|kind| at(row, &format!("/{kind}")).clone()).collect();
        (at(row, "/module").to_string(), parts)
    };
    let is_any = |part: &Value| part["alloc_events"] != 0 || part["bytes_live"] != 0;
    let rows = rows.as_array().unwrap().iter().map(row);
    rows.filter(|(_, parts)| parts.iter().any(|part| !part.is_null() && is_any(part))).collect()
}

#[test]
fn memory_of_modules_is_that_of_all_events() {
    let lacking = std::cell::Cell::new(0);
    each(|name, whole, survivors, _| {
        let all = ["slab", "pages", "vmalloc", "percpu"];
        let lacks_pages = by_module(survivors, &all).values().all(|parts| parts[1].is_null());
        let kinds: &[&str] = if lacks_pages { &["slab", "vmalloc", "percpu"] } else { &all };
        assert_eq!(by_module(whole, kinds), by_module(survivors, kinds), "{name}");
        let text = stdout(&run(&["memory"], survivors));
        assert_eq!(text.contains("Pages are unknown"), lacks_pages, "{name}: {text}");
        lacking.set(lacking.get() + usize::from(lacks_pages));
        let by_task = run(&["memory", "--by", "task"], survivors);
        let text = format!("{}{}", stdout(&by_task), stderr(&by_task));
        assert!(text.contains("record without --survivors"), "{name}: {text}");
    });
    assert_eq!(lacking.get(), 3, "of the recording with stacks");
}

#[test]
fn call_sites_of_pages_are_unknown() {
    each(|name, _, survivors, _| {
        let pages = json(&["pages", "--json"], survivors)["pages"].take();
        assert_eq!(at(&pages, "/callers"), &Value::Array(Vec::new()), "{name}");
        let text = stdout(&run(&["pages"], survivors)).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("the sums of objects that died young have no stacks"), "{name}: {text}");
        let by_caller = run(&["pages", "--by", "function"], survivors);
        assert!(!by_caller.status.success(), "{name}");
    });
}

/// The balance without keys that need each event: bytes that holders allocated, and those of uses by stack.
fn balance(file: &Path, has_stacks: bool) -> Value {
    let mut rows = json(&["balance", "--json", "-l", "0"], file);
    let pages = &mut rows["pages"];
    for holder in pages["holders"].as_array_mut().unwrap() {
        holder
            .as_object_mut()
            .unwrap()
            .retain(|key, _| !["bytes_alloc", "tasks_total"].contains(&key.as_str()));
    }
    if has_stacks {
        let uses = pages["uses"].as_array_mut().unwrap();
        uses.retain(|row| at(row, "/bytes_live") != 0);
        uses.iter_mut().for_each(|row| drop(row.as_object_mut().unwrap().remove("bytes_alloc")));
    }
    // Holders of equal memory are in the order of what they allocated.
    comparable(&mut rows, &[]);
    rows
}

/// Accounts are those of snapshots; uses and holders those of pages that are still allocated.
#[test]
fn the_balance_is_that_of_all_events() {
    for has_stacks in [false, true] {
        let scratch = Scratch::new();
        let made = crate::balance_pages::recording(&scratch, has_stacks, &[]);
        let compare = |whole: &Path, has_stacks: bool| {
            let survivors = folded(whole, &SurvivorArgs { threshold: MS, interval: 5 * MS, memory: 8 << 20 });
            let difference = difference("", &balance(whole, has_stacks), &balance(&survivors, has_stacks));
            assert_eq!(difference, None, "{has_stacks}");
            let own = json(&["balance", "--json"], &survivors)["pages"].take();
            let first = at(&own, "/uses/0/bytes_alloc");
            assert_eq!(first.is_null(), has_stacks, "{own:#}");
            let by = run(&["balance", "--by", "order"], &survivors);
            assert!(stderr(&by).contains("record without --survivors"), "{}", stderr(&by));
        };
        compare(&made, has_stacks);
        compare(&scratch.convert(&recordings()[0]), false);
    }
}

/// The page has call sites, caches, orders and lifetimes of all objects, no table by task, and no part that needs each event.
#[test]
fn the_page_has_the_numbers_of_all_events() {
    each(|name, whole, survivors, _| {
        let pages = [whole, survivors].map(|file| page(&[], file));
        let [expected, found] = pages.each_ref().map(|page| whole_time(page));
        for key in ["sites", "caches", "orders", "lifetimes"] {
            let of = |all: &BTreeMap<(String, String), [i64; 10]>| {
                let rows = all.iter().filter(|((table, _), row)| table == key && **row != [0; 10]);
                rows.map(|((_, name), row)| (name.clone(), *row)).collect::<BTreeMap<_, _>>()
            };
            assert_eq!(of(&expected), of(&found), "{name}: {key}");
        }
        assert!(found.keys().all(|(table, _)| !table.contains("task")), "{name}");
        let [_, page] = pages;
        assert!(page.contains("Objects that died young are sums of intervals of"), "{name}");
        let part = page.split_once("id=part-peak").unwrap().1.split_once("</section>").unwrap().0;
        assert!(part.contains("record without --survivors"), "{name}: {part}");
        let part = page.split_once("id=part-lifetimes").unwrap().1.split_once("</section>").unwrap().0;
        assert!(!part.contains("No answer"), "{name}: {part}");
    });
}
