//! Growth that no event shows, against the two readings of /proc/slabinfo.
//!
//! Of caches that no event can be of, each number is that of the readings. Of others the readings are a bound.

use std::collections::{BTreeMap, HashSet};

use kmt_format::read::Trace;

use super::Case;

/// Columns of a line: active objects, bytes of an object, objects of a slab, slabs.
type Line = [u64; 4];

fn lines(text: &[u8]) -> BTreeMap<String, Line> {
    let text = String::from_utf8_lossy(text);
    let line = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let slabs = words.iter().position(|word| *word == "slabdata")? + 2;
        Some((words[0].to_owned(), [1, 3, 4, slabs].map(|at| words[at].parse().unwrap())))
    };
    text.lines().filter_map(line).collect()
}

pub fn check(case: &Case<'_>) {
    let bytes = std::fs::read(case.file).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    let metadata = trace.metadata();
    let found: BTreeMap<String, u64> = case
        .of_kind("unseen_growth")
        .iter()
        .map(|found| {
            let cache = found["sentence"].as_str().unwrap().split(" grew by ").next().unwrap();
            (cache.to_owned(), found["bytes"].as_u64().unwrap())
        })
        .collect();
    let files = ["slabinfo.before", "slabinfo.after"].map(|name| metadata.attachment(name));
    let ([Some(before), Some(after)], Some("live")) = (files, metadata.text("source")) else {
        return assert!(found.is_empty(), "{}: {found:?}", case.name);
    };
    let (before, after) = (lines(before), lines(after));
    let info = super::json(&["info", "--json"], case.file);
    let cpus = info["trace"]["per_cpu"].as_array().unwrap().len() as u64;
    let mut growths = Vec::new();
    for (name, [active, size, per_slab, slabs]) in &after {
        let [first, _, _, first_slabs] = before.get(name).copied().unwrap_or_default();
        let objects = active.saturating_sub(first);
        let new = slabs.saturating_sub(first_slabs) * per_slab;
        let is_large = objects > cpus * 8 * per_slab && objects * size >= 64 << 10 && new * 2 >= objects;
        let is_estimate = *slabs > 10_000 || first_slabs > 10_000;
        let is_in_events = case.seen.caches.contains(name) || case.seen.sizes.contains(size);
        let bytes = found.get(name).copied();
        if is_in_events || name.contains("kmalloc") {
            // Frees of older objects without an event of their allocation may hide growth.
            assert!(bytes.is_none() || !name.contains("kmalloc"), "{}: {name}", case.name);
        } else if is_large && !is_estimate && case.target.spans.is_empty() && case.seen.has_cache_events() {
            growths.push((objects * size, name));
        } else {
            assert_eq!(bytes, None, "{}: {name}", case.name);
        }
    }
    growths.sort_by_key(|growth| std::cmp::Reverse(growth.0));
    let is_full = found.len() == 3 || case.document["findings"].as_array().unwrap().len() == 10;
    for (bytes, name) in growths {
        let known = found.get(name);
        assert!(known == Some(&bytes) || known.is_none() && is_full, "{}: {name}: {found:?}", case.name);
    }
    let names: HashSet<&String> = after.keys().collect();
    assert!(found.keys().all(|name| names.contains(name)), "{}: {found:?}", case.name);
}
