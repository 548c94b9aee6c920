//! `diff --by module`: sums by module of two recordings are those of `callers --by module` and of `summary`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::files::{Scratch, at, data, json, run};

/// Bytes allocated and live by module.
type Modules = BTreeMap<String, (u64, u64)>;

/// Those of one recording, by another report.
fn modules(file: &Path) -> Modules {
    let report = json(&["callers", "--json", "--by", "module"], file);
    let row = |row: &Value| {
        let name = at(row, "/module").as_str().unwrap_or("? (no symbol)").to_owned();
        (name, (at(row, "/bytes_alloc").as_u64().unwrap(), at(row, "/bytes_live").as_u64().unwrap()))
    };
    at(&report, "/groups").as_array().unwrap().iter().map(row).collect()
}

/// Those of one side of a comparison; a module without a row allocated nothing.
fn side(diff: &Value, side: &str) -> Modules {
    let rows = at(diff, "/diff/rows").as_array().unwrap();
    assert_eq!(at(diff, "/diff/rows_total"), rows.len());
    let row = |row: &Value| {
        let number = |figure: &str| at(row, &format!("/{figure}/{side}")).as_f64().unwrap() as u64;
        (at(row, "/name").as_str().unwrap().to_owned(), (number("bytes_alloc"), number("bytes_live")))
    };
    let slab = rows.iter().filter(|row| at(row, "/kind") == "slab");
    slab.map(row).filter(|(_, sums)| *sums != (0, 0)).collect()
}

fn recordings(scratch: &Scratch) -> [PathBuf; 2] {
    ["x86_64-6.1", "x86_64-6.12"].map(|name| {
        let file = scratch.0.join(format!("{name}.kmt"));
        fs::rename(scratch.convert(&data(name)), &file).unwrap();
        file
    })
}

#[test]
fn modules_of_two_recordings_are_compared() {
    let scratch = Scratch::new();
    let files = recordings(&scratch);
    let before = files[0].to_str().unwrap();
    let diff = json(&["diff", "--json", "--totals", "--by", "module", before], &files[1]);
    for (file, name) in files.iter().zip(["before", "after"]) {
        let found = side(&diff, name);
        let expected: Modules = modules(file).into_iter().filter(|(_, sums)| *sums != (0, 0)).collect();
        assert!(found.contains_key("[kernel]"), "{found:?}");
        assert_eq!(found, expected, "{name}");
        let slab = json(&["summary", "--json"], file)["slab"].take();
        let sum = found.values().fold((0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1));
        let expected = ["/bytes_alloc", "/bytes_live"].map(|key| at(&slab, key).as_u64().unwrap());
        assert_eq!([sum.0, sum.1], expected, "{name}");
    }
    let screen = run(&["diff", "--by", "module", "--all", before], &files[1]);
    let screen = String::from_utf8(screen.stdout).unwrap();
    assert!(screen.contains("[kernel]") && screen.contains("diff --by cache"), "{screen}");
}
