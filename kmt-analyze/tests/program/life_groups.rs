//! `lifetimes --by`: lifetimes by any key are those of call sites, and of the objects themselves.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::groups::{KEYS, sample};
use crate::support::files::{Scratch, data, json, run, stdout};

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
