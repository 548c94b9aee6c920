//! `pages --by` with several keys, against a plain loop over events.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::support::files::{Scratch, at, data, json, run, stdout};

/// Several keys: one row for each combination that a plain loop over the events of `dump` finds, with its sums.
#[test]
fn several_keys_make_a_row_for_each_combination() {
    let scratch = Scratch::new();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut rows = 0;
    for folder in [own.join("x86_64-6.1-reclaim"), own.join("x86_64-6.18-stacks"), data("x86_64-6.12")] {
        let file = scratch.convert(&folder);
        let found = combinations(&file);
        assert_eq!(found, combinations_of_dump(&file), "{}", folder.display());
        rows += found.len();
    }
    assert!(rows > 30, "{rows}");
}

/// Allocations and pages by order, migrate type, CPU and thread id.
type Combinations = BTreeMap<[String; 4], [u64; 2]>;

/// Those of `pages --by`; each of them has one row.
fn combinations(file: &Path) -> Combinations {
    let args = ["pages", "--json", "--by", "order,migratetype,cpu,task", "--sort", "allocs,allocated"];
    let pages = json(&args, file)["pages"].take();
    let types = at(&pages, "/by_order_and_migratetype").as_array().unwrap();
    let number = |name: &Value| {
        let row = types.iter().find(|row| row["migratetype_text"] == *name).unwrap();
        at(row, "/migratetype").to_string()
    };
    let pid = |task: &Value| task.as_str().unwrap().rsplit_once('-').unwrap().1.to_owned();
    let mut found = Combinations::new();
    for row in pages["groups"].as_array().unwrap() {
        let key = [
            at(row, "/order").to_string(),
            number(at(row, "/migratetype")),
            at(row, "/cpu").to_string(),
            pid(at(row, "/task")),
        ];
        let sums = ["/alloc_events", "/pages_alloc"].map(|key| at(row, key).as_u64().unwrap());
        if sums[0] > 0 {
            assert!(found.insert(key, sums).is_none(), "two rows of one combination: {row}");
        }
    }
    found
}

/// Those of the events.
fn combinations_of_dump(file: &Path) -> Combinations {
    let mut model = Combinations::new();
    for line in stdout(&run(&["dump", "--format", "jsonl"], file)).lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let fields = &event["fields"];
        if event["event"] != "kmem:mm_page_alloc" || fields["pfn"].as_u64() == Some(u64::MAX) {
            continue;
        }
        let order = at(fields, "/order").as_u64().unwrap();
        let key = [at(fields, "/order"), at(fields, "/migratetype"), at(&event, "/cpu"), at(&event, "/pid")];
        let sums = model.entry(key.map(Value::to_string)).or_default();
        sums[0] += 1;
        sums[1] += 1 << order;
    }
    model
}
