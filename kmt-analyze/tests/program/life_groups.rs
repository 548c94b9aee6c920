//! `lifetimes --by`: lifetimes by any key are those of call sites, and of the objects themselves.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::groups::{KEYS, sample};
use crate::support::files::{Scratch, at, data, json, run, stdout};

/// Frees of each call site, and lifetimes of the whole, are the same by any keys.
#[test]
fn lifetimes_by_any_key_are_those_of_call_sites() {
    let scratch = Scratch::new();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for folder in [own.join("x86_64-6.18-stacks"), own.join("x86_64-6.1-reclaim"), data("s390x-6.1")] {
        let file = scratch.convert(&folder);
        for by in KEYS {
            let rows = json(&["lifetimes", "--json", "--by", by], &file);
            let of = |table: &str, number: &dyn Fn(&Value) -> u64| -> u64 {
                rows[table].as_array().unwrap().iter().map(number).sum()
            };
            for key in ["censored", "freed_unseen", "uncertain", "bytes_freed"] {
                let number = |row: &Value| row[key].as_u64().unwrap();
                assert_eq!(of("groups", &number), of("lifetimes", &number), "{by} {key}");
            }
            let byte_time = |row: &Value| row["byte_time"].as_str().unwrap().parse::<u64>().unwrap();
            assert_eq!(of("groups", &byte_time), of("lifetimes", &byte_time), "{by}");
            let frees = |row: &Value| row["lifetime"]["n"].as_u64().unwrap();
            assert_eq!(of("groups", &frees), rows["all"]["n"].as_u64().unwrap(), "{by}");
            let places = |row: &Value| -> u64 {
                row["freed_by"].as_array().unwrap().iter().map(|f| f["frees"].as_u64().unwrap()).sum()
            };
            assert_eq!(of("groups", &places), of("groups", &frees), "{by}: all frees have a place");
        }
    }
}

/// Lifetimes by size, from the objects themselves: exact maximum, and percentiles within 1.6 %.
#[test]
fn lifetimes_by_size_are_those_of_the_objects() {
    let scratch = Scratch::new();
    let file = sample(&scratch);
    let text = stdout(&run(&["export", "csv", "--of", "objects"], &file));
    let mut lines = text.lines();
    let heading: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column =
        |name: &str| heading.iter().position(|h| *h == name).unwrap_or_else(|| panic!("{heading:?}"));
    let (size, lifetime, fate) = (column("bytes_alloc"), column("lifetime"), column("fate"));
    let mut expected: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        if cells[fate] == "freed" {
            expected.entry(cells[size].parse().unwrap()).or_default().push(cells[lifetime].parse().unwrap());
        }
    }
    let rows = json(&["lifetimes", "--json", "--by", "size"], &file);
    let groups = rows["groups"].as_array().unwrap();
    let mut seen = 0;
    for group in groups {
        let Some(lifetimes) = expected.get_mut(&group["size"].as_u64().unwrap()) else {
            assert_eq!(group["lifetime"]["n"], 0);
            continue;
        };
        seen += 1;
        lifetimes.sort_unstable();
        let of = |key: &str| group["lifetime"][key].as_u64().unwrap();
        assert_eq!((of("n"), of("max")), (lifetimes.len() as u64, *lifetimes.last().unwrap()));
        let median = lifetimes[lifetimes.len().div_ceil(2) - 1];
        assert!(of("p50").abs_diff(median) as f64 <= median as f64 * 0.016 + 1.0, "{group}");
    }
    assert!(seen > 10 && seen == expected.len(), "{seen}");
}

/// An object of the export: birth, end of a free, and bytes.
struct Object {
    born: u64,
    freed: Option<u64>,
    is_live: bool,
    bytes: u64,
}

/// Objects by call site and interface, as the export lists them.
fn objects(file: &Path) -> BTreeMap<(String, String), Vec<Object>> {
    let text = stdout(&run(&["export", "csv", "--of", "objects"], file));
    let mut lines = text.lines();
    let heading: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column =
        |name: &str| heading.iter().position(|h| *h == name).unwrap_or_else(|| panic!("{heading:?}"));
    let [site, api, born, lifetime, fate, bytes] =
        ["call_site", "api", "born", "lifetime", "fate", "bytes_alloc"].map(column);
    let mut sites: BTreeMap<_, Vec<Object>> = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let born: u64 = cells[born].parse().unwrap();
        let freed = (cells[fate] == "freed").then(|| born + cells[lifetime].parse::<u64>().unwrap());
        let is_live = cells[fate] == "live";
        let bytes = cells[bytes].parse().unwrap();
        let key = (cells[site].to_owned(), cells[api].to_owned());
        sites.entry(key).or_default().push(Object { born, freed, is_live, bytes });
    }
    sites
}

/// The product-limit estimate of the median, by its definition, and the longest age.
fn kaplan_meier(ends: &[u64], ages: &[u64]) -> (Option<u64>, Option<u64>) {
    let mut times = ends.to_vec();
    times.sort_unstable();
    times.dedup();
    let mut share = 1.0;
    for time in times {
        let ended = ends.iter().filter(|&&end| end == time).count() as f64;
        let at_risk = ends.iter().chain(ages).filter(|&&age| age >= time).count() as f64;
        share *= 1.0 - ended / at_risk;
        if share <= 0.5 {
            return (Some(time), None);
        }
    }
    (None, ends.iter().chain(ages).max().copied())
}

/// Bytes that outlive a time, and the estimated median of each call site, are those of the objects themselves.
#[test]
fn survival_is_that_of_the_objects() {
    let scratch = Scratch::new();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let (mut medians, mut bounds) = (0, 0);
    for file in [sample(&scratch), scratch.convert(&own.join("x86_64-6.18-stacks"))] {
        let report = json(&["lifetimes", "--json"], &file);
        let last = report["trace"]["last"].as_u64().unwrap();
        let by_site = objects(&file);
        let mut bytes_all = 0;
        for row in report["lifetimes"].as_array().unwrap() {
            let text = |key: &str| row[key].as_str().unwrap().to_owned();
            let objects = &by_site[&(text("call_site"), text("api"))];
            let survival = at(row, "/survival");
            let bytes = |is_so: &dyn Fn(&Object) -> bool| -> u64 {
                objects.iter().filter(|o| is_so(o)).map(|o| o.bytes).sum()
            };
            assert_eq!(at(survival, "/bytes_allocated"), bytes(&|_| true), "{row}");
            bytes_all += bytes(&|_| true);
            for (key, bound) in [("outlive_1ms", 1_000_000), ("outlive_1s", 1_000_000_000)] {
                let certain = |o: &Object| {
                    o.freed.or(o.is_live.then_some(last)).is_some_and(|end| end - o.born > bound)
                };
                let lifetimes_known = objects.iter().all(|o| o.freed.is_some() || o.is_live);
                let found = at(survival, &format!("/{key}"));
                assert_eq!(at(found, "/bytes_at_least"), bytes(&certain), "{row}");
                if lifetimes_known {
                    let possible = |o: &Object| certain(o) || o.is_live;
                    let short = |o: &Object| o.is_live && last - o.born <= bound;
                    let most = at(found, "/bytes_at_most").as_u64().unwrap();
                    assert_eq!(most, bytes(&possible), "{row}");
                    assert_eq!(most - bytes(&certain), bytes(&short), "{row}");
                }
            }
            assert_eq!(at(survival, "/outlive_trace/bytes_at_least"), bytes(&|o| o.is_live), "{row}");
            let ends: Vec<u64> = objects.iter().filter_map(|o| Some(o.freed? - o.born)).collect();
            let ages: Vec<u64> = objects.iter().filter(|o| o.is_live).map(|o| last - o.born).collect();
            let (median, longer_than) = kaplan_meier(&ends, &ages);
            let found = at(survival, "/median_estimate");
            assert_eq!(at(found, "/ends"), ends.len(), "{row}");
            assert_eq!(at(found, "/censored"), ages.len(), "{row}");
            assert_eq!(at(found, "/left_out"), objects.len() - ends.len() - ages.len(), "{row}");
            for (key, expected) in [("median", median), ("longer_than", longer_than)] {
                let found = at(found, &format!("/{key}")).as_u64();
                let near =
                    |found: u64, expected: u64| found.abs_diff(expected) as f64 <= expected as f64 * 0.032;
                assert!(found.zip(expected).map_or(found == expected, |(a, b)| near(a, b)), "{key} {row}");
            }
            medians += u32::from(median.is_some());
            bounds += u32::from(longer_than.is_some());
        }
        assert_eq!(at(&report, "/survival/bytes_allocated"), bytes_all);
    }
    assert!(medians >= 8 && bounds >= 8, "{medians} {bounds}");
}
