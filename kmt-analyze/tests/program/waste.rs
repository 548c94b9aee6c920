//! `waste`: each row against loops over the dump and over the text of /proc/slabinfo, and against other reports.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::model::{BASE, Crafted};
use crate::support::files::{Scratch, at, data, json as document, run, stdout};
use crate::support::model::{self, Event, Lived, Target, What};

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1")
}

fn each(check: impl Fn(&Path)) {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.1-reclaim");
    for input in [sample(), data("x86_64-6.1"), data("s390x-6.1"), data("x86_64-6.12"), own] {
        let scratch = Scratch::new();
        check(&scratch.convert(&input));
    }
}

fn waste(args: &[&str], file: &Path) -> Value {
    document(&[&["waste", "--json", "-l", "1000000"], args].concat(), file)["waste"].take()
}

fn rows<'v>(report: &'v Value, kind: &str) -> Vec<&'v Value> {
    let rows = at(report, "/places").as_array().unwrap();
    rows.iter().filter(|row| row["kind"] == kind).collect()
}

fn sums<'v>(report: &'v Value, kind: &str) -> &'v Value {
    let kinds = at(report, "/kinds").as_array().unwrap();
    kinds.iter().find(|row| row["kind"] == kind).unwrap()
}

fn number(row: &Value, key: &str) -> u64 {
    at(row, &format!("/{key}")).as_u64().unwrap_or_else(|| panic!("no number {key}: {row}"))
}

/// Waste at the end, by all allocations, x time; objects that were rounded up, of which live.
type Sums = [u128; 5];

fn add(sums: &mut Sums, life: &Lived, span: (u64, u64)) {
    let wasted = u128::from(life.bytes - life.bytes_req);
    let end = life.end.map_or(span.1, |(time, _)| time);
    let is_rounded = u128::from(wasted > 0);
    let is_live = u128::from(life.end.is_none());
    sums[0] += wasted * is_live;
    sums[1] += wasted;
    sums[2] += wasted * u128::from(end.min(span.1) - life.born.max(span.0));
    sums[3] += is_rounded;
    sums[4] += is_rounded * is_live;
}

/// The same of a row.
fn check(row: &Value, sums: &Sums, span: (u64, u64)) {
    let mean = sums[2] / u128::from(span.1 - span.0).max(1);
    let keys = ["bytes_wasted_live", "bytes_wasted", "bytes_wasted_on_average", "alloc_events", "objects"];
    for (key, expected) in keys.iter().zip([sums[0], sums[1], mean, sums[3], sums[4]]) {
        assert_eq!(u128::from(number(row, key)), expected, "{key}: {row}");
    }
}

fn check_rounding(file: &Path) {
    let target = Target::of(&document(&["info", "--json"], file));
    let dump = stdout(&run(&["dump", "--format", "jsonl"], file));
    let times = || dump.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let times: Vec<u64> = times().filter_map(|line| line["ts"].as_u64()).collect();
    let span = (*times.iter().min().unwrap(), *times.iter().max().unwrap());
    let ledger = model::run(&model::events(&dump), &target);
    let mut by_site: BTreeMap<(&str, u64), Sums> = BTreeMap::new();
    let mut by_kind: BTreeMap<&str, Sums> = BTreeMap::new();
    for ((site, kmalloc), lives) in &ledger.lives {
        for life in lives {
            let kind = match kmalloc {
                true if life.bytes > 2 * target.page_size => "order rounding",
                true => "class rounding",
                false => "cache alignment",
            };
            add(by_kind.entry(kind).or_default(), life, span);
            add(by_site.entry((kind, *site)).or_default(), life, span);
        }
    }
    let report = waste(&[], file);
    for (kind, expected) in &by_kind {
        check(sums(&report, kind), expected, span);
    }
    for kind in ["class rounding", "order rounding"] {
        let found = rows(&report, kind);
        let expected = by_site.iter().filter(|((of, _), sums)| *of == kind && sums[1] > 0);
        assert_eq!(found.len(), expected.count(), "{kind}");
        assert_eq!(found.len() as u64, number(sums(&report, kind), "places_total"));
        for row in found {
            let site = row["call_site"].as_str().unwrap().trim_start_matches("0x");
            let site = u64::from_str_radix(site, 16).unwrap();
            check(row, &by_site[&(kind, site)], span);
        }
    }
}

#[test]
fn rounding_is_that_of_a_slow_ledger() {
    each(check_rounding);
}

#[test]
fn alignment_is_that_of_the_caches() {
    each(|file| {
        let report = waste(&[], file);
        let found = rows(&report, "cache alignment");
        let caches = document(&["caches", "--json", "-l", "1000000"], file);
        let caches = at(&caches, "/caches").as_array().unwrap();
        let mut compared = 0;
        for row in &found {
            let Some(cache) = caches.iter().find(|cache| cache["cache"] == row["name"]) else { continue };
            for key in ["bytes_wasted", "bytes_wasted_live"] {
                assert_eq!(number(row, key), number(cache, key), "{row}");
            }
            compared += 1;
        }
        assert!(compared > 0 || found.is_empty(), "{found:?}");
    });
}

#[test]
fn tails_are_those_of_slabinfo() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.1-reclaim");
    for input in [sample(), own] {
        let scratch = Scratch::new();
        let report = waste(&[], &scratch.convert(&input));
        let mut expected: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for line in fs::read_to_string(input.join("slabinfo.after")).unwrap().lines().skip(2) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |at: usize| words[at].parse::<u64>().unwrap();
            let tail = number(5) * 4096 - number(4) * number(3);
            let bytes = tail * number(14);
            if bytes > 0 {
                expected.insert(words[0].to_owned(), (bytes, number(1)));
            }
        }
        let found = rows(&report, "slab tail");
        let key = |row: &&Value| {
            let numbers = (number(row, "bytes_wasted_live"), number(row, "objects"));
            (row["name"].as_str().unwrap().to_owned(), numbers)
        };
        assert_eq!(found.iter().map(key).collect::<BTreeMap<_, _>>(), expected);
        let sum: u64 = expected.values().map(|(bytes, _)| bytes).sum();
        assert_eq!(number(sums(&report, "slab tail"), "bytes_wasted_live"), sum);
        assert!(at(sums(&report, "slab tail"), "/bytes_wasted").is_null(), "slabs have no churn");
    }
}

#[test]
fn sums_of_kinds_are_those_of_fragmentation() {
    each(|file| {
        let report = waste(&[], file);
        let all = document(&["fragmentation", "--json", "-l", "1000000"], file);
        let internal = at(&all, "/fragmentation/internal");
        for (kind, theirs) in [
            ("class rounding", "kmalloc"),
            ("order rounding", "kmalloc_large"),
            ("cache alignment", "caches"),
        ] {
            for key in ["bytes_wasted", "bytes_wasted_live"] {
                let of_rows: u64 = rows(&report, kind).iter().map(|row| number(row, key)).sum();
                let total = number(at(internal, &format!("/{theirs}")), key);
                assert_eq!([number(sums(&report, kind), key), of_rows], [total; 2], "{kind} {key}");
            }
        }
        let tails = at(&all, "/fragmentation/slabs").get("tail_bytes").cloned().unwrap_or(Value::Null);
        assert_eq!(*at(sums(&report, "slab tail"), "/bytes_wasted_live"), tails);
        let occupancy = at(&all, "/fragmentation/occupancy");
        let sparse = sums(&report, "sparse slabs");
        assert_eq!(occupancy.get("refused").unwrap_or(&Value::Null), at(sparse, "/unknown"));
        let pinned = occupancy.get("pinned_by").and_then(Value::as_array).into_iter().flatten();
        let pinned: BTreeMap<(&str, &str), u64> = pinned
            .filter(|row| number(row, "pinned_sparse_bytes") > 0)
            .map(|row| {
                let key = (row["api"].as_str().unwrap(), row["call_site"].as_str().unwrap());
                (key, number(row, "pinned_sparse_bytes"))
            })
            .collect();
        let found = rows(&report, "sparse slabs");
        let found = found.iter().map(|row| {
            let key = (row["api"].as_str().unwrap(), row["call_site"].as_str().unwrap());
            (key, number(row, "bytes_wasted_live"))
        });
        assert_eq!(found.collect::<BTreeMap<_, _>>(), pinned);
    });
}

/// A request of each kind, of which one stays: 1,000 pages of time apart.
fn crafted(scratch: &Scratch) -> PathBuf {
    let mut crafted = Crafted::new();
    let slabinfo = "slabinfo - version: 2.1\nkmalloc-512 1 8 512 8 1 : tunables 0 0 0 : slabdata 1 1 0\n\
        cache_b 20 24 672 6 1 : tunables 0 0 0 : slabdata 4 4 0\n";
    crafted.writer.add_file("slabinfo.after", slabinfo.as_bytes()).unwrap();
    let mut time = 1_000_000;
    let mut event = |what| {
        time += 1_000;
        crafted.event(&Event { time, cpu: 0, pid: 7, what });
    };
    let alloc = |number: u64, kmalloc, site, req, alloc| What::Alloc {
        kmalloc,
        site,
        ptr: BASE + (number << 20),
        req,
        alloc,
    };
    event(alloc(1, true, 5, 20_500, 32_768));
    event(alloc(2, true, 5, 20_500, 32_768));
    event(alloc(3, true, 5, 536, 1_024));
    event(alloc(4, true, 6, 536, 1_024));
    event(alloc(5, false, 7, 136, 192));
    event(alloc(6, false, 7, 136, 192));
    event(What::Free { kfree: true, ptr: BASE + (2 << 20) });
    event(What::Free { kfree: true, ptr: BASE + (4 << 20) });
    event(What::Free { kfree: false, ptr: BASE + (6 << 20) });
    let file = scratch.0.join("crafted.kmt");
    fs::write(&file, crafted.writer.finish().unwrap()).unwrap();
    file
}

#[test]
fn each_kind_has_its_numbers_and_its_change() {
    let scratch = Scratch::new();
    let file = crafted(&scratch);
    let names = |args: &[&str]| -> Vec<Value> {
        let report = waste(args, &file);
        at(&report, "/places")
            .as_array()
            .unwrap()
            .iter()
            .map(|row| json!([row["kind"], row["call_site"]]))
            .collect()
    };
    let order = [
        json!(["order rounding", "0x5"]),
        json!(["class rounding", "0x5"]),
        json!(["slab tail", null]),
        json!(["cache alignment", null]),
        json!(["class rounding", "0x6"]),
    ];
    let in_order = |numbers: [usize; 5]| numbers.map(|at| order[at].clone());
    assert_eq!(names(&["--sort", "live_waste"]), order);
    assert_eq!(names(&["--sort", "wasted,name"]), in_order([0, 1, 4, 3, 2]));
    // The largest number of each row: 488 bytes of all allocations are before a tail of 256.
    assert_eq!(names(&[]), in_order([0, 1, 4, 2, 3]));
    let screen = stdout(&run(&["waste", "--bytes"], &file));
    let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        screen.starts_with("At the end: ") && screen.contains("; by all allocations: order rounding"),
        "{screen}"
    );
    assert!(screen.contains(". Largest waste by all allocations: 24,536 bytes in "), "{screen}");
    let report = waste(&["--sort", "live_waste"], &file);
    let numbers = |row: &Value| {
        ["bytes_wasted_live", "bytes_wasted", "objects", "alloc_events", "bytes_req"]
            .map(|key| row[key].clone())
    };
    let places = at(&report, "/places").as_array().unwrap();
    let null = Value::Null;
    assert_eq!(numbers(&places[0]), [json!(12_268), json!(24_536), json!(1), json!(2), json!(20_500)]);
    assert_eq!(numbers(&places[1]), [json!(488), json!(488), json!(1), json!(1), json!(536)]);
    assert_eq!(numbers(&places[2]), [json!(256), null.clone(), json!(20), null.clone(), null]);
    assert_eq!(numbers(&places[3]), [json!(56), json!(112), json!(1), json!(2), json!(136)]);
    let saves: Vec<&str> = places.iter().map(|row| row["saves"].as_str().unwrap()).collect();
    assert!(saves[0].contains("they take 24,576 bytes instead of 32,768"), "{}", saves[0]);
    assert!(saves[1].starts_with("Request 512 bytes instead of 536 (kmalloc-1k)"), "{}", saves[1]);
    assert!(
        saves[2].contains("7 in a slab instead of 6") || saves[2].starts_with("Slabs of"),
        "{}",
        saves[2]
    );
    assert!(saves[3].contains("136 bytes instead of 192"), "{}", saves[3]);
    let first = waste(&["--pid", "8"], &file);
    assert!(rows(&first, "class rounding").is_empty(), "task 8 allocated nothing");
    let one = document(&["waste", "--json", "-l", "1"], &file);
    assert_eq!(at(&one, "/waste/places").as_array().unwrap().len(), 1);
    assert_eq!(number(at(&one, "/waste"), "places_total"), 5);
}

/// Sizes that are lengths of names: a change of one of them saves little. Of two sizes one may have most of the waste.
#[test]
fn another_size_is_advised_where_one_size_has_most_of_the_waste() {
    let names: Vec<u64> = (65..90).collect();
    for (sizes, saves) in [
        (&names[..], None),
        (&[65, 66, 67], None),
        (&[600, 600], Some("Use a cache of its own with objects of 600 bytes instead of kmalloc-1k.")),
        (
            &[600, 1_000],
            Some(
                "Use a cache of its own with objects of 600 bytes instead of kmalloc-1k. This size has most of the waste of 2 sizes.",
            ),
        ),
    ] {
        let scratch = Scratch::new();
        let mut crafted = Crafted::new();
        for (number, req) in (1..).zip(sizes) {
            let ptr = BASE + (number << 20);
            let alloc = if *req > 96 { 1_024 } else { 96 };
            let what = What::Alloc { kmalloc: true, site: 5, ptr, req: *req, alloc };
            crafted.event(&Event { time: 1_000_000 + number * 1_000, cpu: 0, pid: 7, what });
        }
        let file = scratch.0.join("sizes.kmt");
        fs::write(&file, crafted.writer.finish().unwrap()).unwrap();
        let report = waste(&[], &file);
        assert_eq!(at(&report, "/places/0/saves"), saves.unwrap_or(""), "{sizes:?}");
        let screen = stdout(&run(&["waste"], &file));
        assert_eq!(screen.contains("what would save it"), saves.is_some(), "{sizes:?}: {screen}");
    }
}

#[test]
fn numbers_without_their_events_are_null_with_a_reason() {
    let scratch = Scratch::new();
    let report = waste(&[], &scratch.convert(&data("x86_64-6.1")));
    let tail = sums(&report, "slab tail");
    assert!(at(tail, "/places_total").is_null() && at(tail, "/bytes_wasted_live").is_null());
    assert_eq!(tail["unknown"], "the file has no /proc/slabinfo");
    assert!(at(sums(&report, "class rounding"), "/unknown").is_null());
}
