//! Files of survivors against files with every event, in reports of which a part needs each event: `waste`. What is known of the sums is the same; the rest is reported as unknown.

use std::path::{Path, PathBuf};

use kmt_capture::survivors::SurvivorArgs;
use serde_json::Value;

use crate::support::files::{Scratch, at, json};
use crate::survivor_pairs::{Compared, MS, compare, compare_windows, folded};

/// These reports.
pub const MORE: [Compared; 2] = [
    (&["waste", "-l", "0"], &["places_total"]),
    (&["waste", "-l", "0", "--sort", "mean_waste"], &["places_total"]),
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
