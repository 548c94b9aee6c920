//! What a tool of a few lines finds with the library alone is what the reports say.

use std::collections::BTreeMap;
use std::fs;

use crate::support::files::{Scratch, data, json, run, stdout};

#[allow(dead_code)]
#[path = "../../examples/own_collector.rs"]
mod own_collector;
#[allow(dead_code)]
#[path = "../../../kmt-format/examples/reader.rs"]
mod reader;

#[test]
fn the_readers_waste_by_call_site_is_that_of_callers() {
    for name in ["x86_64-6.1", "x86_64-6.12", "s390x-6.1", "armhf-6.1", "duplicate-kmallocs.txt"] {
        let scratch = Scratch::new();
        let file = scratch.convert(&data(name));
        let mut by_report: BTreeMap<String, u64> = BTreeMap::new();
        let report = json(&["callers", "--json"], &file);
        for row in report["callers"].as_array().unwrap() {
            let sum = by_report.entry(row["symbol"].as_str().unwrap().to_owned()).or_default();
            *sum += row["bytes_wasted"].as_u64().unwrap();
        }
        let mut by_reader: BTreeMap<String, u64> = BTreeMap::new();
        for line in reader::run(&fs::read(&file).unwrap()).unwrap().lines() {
            let (waste, symbol) = line.trim_start().split_once(' ').unwrap();
            *by_reader.entry(symbol.to_owned()).or_default() += waste.parse::<u64>().unwrap();
        }
        assert!(by_report.len() > 20 && by_report.values().sum::<u64>() > 0, "{name}");
        assert_eq!(by_reader, by_report, "{name}");
    }
}

#[test]
fn the_example_with_an_own_collector_agrees_with_reports() {
    for name in ["x86_64-6.1", "s390x-6.1"] {
        let scratch = Scratch::new();
        let file = scratch.convert(&data(name));
        let totals = &json(&["summary", "--json"], &file)["slab"];
        let objects = stdout(&run(&["export", "ndjson", "--of", "objects", "-o", "-"], &file));
        let objects = objects.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let live = objects.filter(|object| object["fate"] == "live");
        let largest = live.map(|object| object["bytes_alloc"].as_u64().unwrap()).max().unwrap();
        let text = format!(
            "{} objects freed, {} logged late; largest live: {largest} bytes",
            totals["frees_matched"], totals["late_frees"]
        );
        assert_eq!(own_collector::run(&file).unwrap(), text, "{name}");
    }
}
